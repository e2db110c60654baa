"""A lab with two guards as programs of their own: one of this version, and one of ``next_version``.

Nothing but the test asks them: it sends each a review as the API server does.
"""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import yaml
from support.guard.guarded_jobs import POLICY, stateful_set, wait
from support.guard.next_version import FIELD, STATE
from support.guard.reviews import deletion
from support.guard.server_ports import free_ports
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.manifests.guard_policy_definition import guard_policy_definition

SYSTEM, GUARD = "lastcall-system", "lastcall-guard"
THIS, NEXT = "this", "next"
MODULES = {THIS: "lastcall", NEXT: "support.guard.next_version"}
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Lease", "Secret")


def next_definition():
    """That of the next version, which an upgrade applies first."""
    definition = guard_policy_definition()
    [version] = definition["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    fields = status["properties"]["pods"]["items"]["properties"]
    fields["state"]["enum"] = [*fields["state"]["enum"], STATE]
    fields[FIELD] = {"type": "string"}
    return definition


class TwoVersions:
    """``guards`` are those that run, by their version; the application is that of ``guarded_jobs`` with two members."""

    def __init__(self, directory):
        self.directory = directory
        self.books = directory / "books"
        self.books.mkdir()
        self.lab = LabProcess(directory / "lab", "--nodes=1")
        self.ports = dict(zip(MODULES, free_ports(len(MODULES)), strict=True))
        self.guards = {}

    def start(self):
        self.lab.start()
        objects = [one for one in guard_objects(GuardChoices()) if one["kind"] in RIGHTS]
        for obj in (*objects, next_definition(), *guarded_namespace_objects("default")):
            self.kubectl("apply -f -", obj)
        workload = stateful_set(self.books)
        workload["spec"]["replicas"] = 2
        wait(
            lambda: "jobs" in self.kubectl("apply -f -", POLICY | {"spec": POLICY["spec"] | {"maxUnavailable": 2}}),
            "kind",
        )
        self.kubectl("apply -f -", workload)
        wait(lambda: self.read("statefulset jobs")["status"].get("readyReplicas") == 2, "pods")
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self.kubectl(f"create token {GUARD} -n {SYSTEM}").strip()}
        (self.directory / "kubeconfig").write_text(yaml.safe_dump(config))
        return self

    def end(self):
        for version in list(self.guards):
            self.stop(version)
        self.lab.end()

    def kubectl(self, line, obj=None):
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def read(self, what):
        return json.loads(self.kubectl(f"get {what} -o json"))

    def entries(self):
        """What the policy records, by pod."""
        return {one["name"]: one for one in self.read("guardpolicy jobs").get("status", {}).get("pods", ())}

    # -- guards --------------------------------------------------------------------------------------------------------

    def run(self, version):
        """Starts a guard, and waits until it answers."""
        arguments = ["guard", "run", f"--kubeconfig={self.directory / 'kubeconfig'}", "--metrics-bind-address=0"]
        arguments += [f"--webhook-bind-address=127.0.0.1:{self.ports[version]}", "--allowed-network=127.0.0.0/8"]
        arguments += ["--drain-seconds=0"]
        path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
        with (self.directory / version).open("wb") as log:
            self.guards[version] = subprocess.Popen(
                [sys.executable, "-m", MODULES[version], *arguments],
                stdout=log,
                stderr=log,
                env=os.environ | {"POD_NAME": version, "PYTHONPATH": path},
            )
        wait(lambda: "the webhook is at" in self.said(version), "webhook")

    def stop(self, version):
        process = self.guards.pop(version)
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    def said(self, version):
        return (self.directory / version).read_text()

    def wait_for_leader(self, version):
        def leads():
            holder = self.read(f"lease {GUARD} -n {SYSTEM}")["spec"].get("holderIdentity") or ""
            return holder.startswith(f"{version}_")

        wait(leads, "leader")

    def ask(self, version, name):
        """Whether a guard allows the pod's deletion, and what it says."""
        token = base64.b64decode(self.read(f"secret {GUARD}-tls -n {SYSTEM}")["data"]["path-token"]).decode()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        request = urllib.request.Request(  # noqa: S310 - https
            f"https://127.0.0.1:{self.ports[version]}/review/{token}",
            json.dumps(deletion(self.read(f"pod {name}"))).encode(),
            {"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:  # noqa: S310 - the same
            response = json.load(answer)["response"]
        assert response["allowed"] or response["status"]["code"] == 429
        return response["allowed"], response.get("status", {}).get("message", "")
