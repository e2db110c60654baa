"""A lab of one node where the real Helm has installed the guard, and a pod that the provider http guards."""

import json
import shutil
import sys

import yaml
from support.guard.guard_pods import GUARD, SYSTEM
from support.guard.guarded_jobs import POLICY, stateful_set, wait
from support.kube import helm
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import guarded_namespace_objects

_IMAGE = "          command: [lastcall]\n"
_USER = "        runAsNonRoot: true\n        runAsUser: 65532\n        runAsGroup: 65532\n"
COMES_AND_GOES = ("events", "events.events.k8s.io", "endpointslices.discovery.k8s.io", "nodes")


class ChartGuard:
    """``books`` is where the application notes its calls, and is told to hang."""

    def __init__(self, directory):
        self.directory, self.books = directory, directory / "books"
        self.books.mkdir()
        self.lab = LabProcess(directory / "lab", "--nodes=1")
        self.access = directory / f"{GUARD}.kubeconfig"
        self.before = set()

    def __call__(self, line, obj=None):
        """What kubectl says, errors too."""
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def read(self, what):
        return json.loads(self(f"get {what} -o json"))

    def start(self):
        """Until the pod is held, and its application prepares."""
        self.lab.start()
        self(f"create namespace {SYSTEM}")
        wait(lambda: "default" in self(f"get serviceaccounts -n {SYSTEM}"), "service account")
        self.before = self.everything()
        self.helm("install", self._copy_chart(), "lastcall", self.values)
        self._write_access()
        wait(lambda: "guardpolicies" in self("api-resources --api-group=lastcall.dev"), "the kind GuardPolicy")
        for obj in (*guarded_namespace_objects("default"), POLICY, stateful_set(self.books)):
            self("apply -f -", obj)
        wait(lambda: self.read("statefulset jobs")["status"].get("readyReplicas") == 1, "pod")
        wait(
            lambda: "TooManyRequests" in self("delete pod jobs-0 --wait=false --dry-run=server"), "a guard that answers"
        )
        assert "TooManyRequests" in self("delete pod jobs-0 --wait=false")
        wait(lambda: "prepare" in self.calls(), "preparation")
        return self

    @property
    def chart(self):
        """That of the repository, but for what a pod of the lab cannot have."""
        return self.directory / "chart"

    @property
    def values(self):
        options = [f"--kubeconfig={self.access}", "--allowed-network=127.0.0.0/8"]
        off = {"enabled": False}
        return {"agent": off, "controller": off, "guard": {"enabled": True, "replicas": 1, "extraArgs": options}}

    def helm(self, method, *arguments):
        return helm.Helm(self.lab.kubeconfig, self.directory)(method, *arguments)

    def is_held(self):
        return "TooManyRequests" in self("delete pod jobs-0 --wait=false --dry-run=server")

    def calls(self):
        book = self.books / "calls"
        return book.read_text().split() if book.exists() else []

    def entry(self):
        [found] = self.read("guardpolicy jobs")["status"]["pods"]
        return found

    def kill_guard(self):
        """No replica answers any more, nor comes back."""
        self(f"scale deployment {GUARD} -n {SYSTEM} --replicas=0")
        self(f"delete pods -n {SYSTEM} -l app.kubernetes.io/component=guard --force --grace-period=0")

    def everything(self):
        """The names of all objects that a list shows."""
        kinds = [one for one in self("api-resources --verbs=list -o name").split() if one not in COMES_AND_GOES]
        return {one for one in self(f"get {','.join(kinds)} -A -o name").split() if "/" in one}

    def _copy_chart(self):
        """With the tests' Python in place of the image, as the lab's own user."""
        shutil.copytree(helm.CHART, self.chart)
        template = self.chart / "templates/guard/deployment.yaml"
        text = template.read_text()
        assert _IMAGE in text
        assert _USER in text
        text = text.replace(_IMAGE, f"          command: [{sys.executable}, -m, lastcall]\n").replace(_USER, "")
        template.write_text(text)
        return self.chart

    def _write_access(self):
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self(f"create token {GUARD} -n {SYSTEM}").strip()}
        self.access.write_text(yaml.safe_dump(config))
