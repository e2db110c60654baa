"""A guard in pods of the lab, with failurePolicy Fail: both replicas are killed, and the whole cluster starts anew.

The real programs: the guard's Deployment, ``lastcall controller`` as its own ServiceAccount, kubectl.
"""

import json
import subprocess
import sys
import time

import pytest
import yaml
from support.failover.controller_process import ControllerProcess
from support.kube.kubectl import PROGRAM
from support.lab.up_process import LabProcess

from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.manifests.guard_webhooks import FAIL

pytestmark = pytest.mark.timeout(270)

SYSTEM = "lastcall-system"
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "GuardPolicy",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}, "provider": {"redis": {}}},
}
"""No Redis answers, so the pod is held for ever."""
POD = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "db", "image": "i", "command": ["sleep", "1h"]}],
    },
}
WORKLOAD = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": POD},
}


def guard_manifests(kubeconfig):
    """Those of ``lastcall manifests guard``, but for what a pod of the lab cannot have: an image, another user."""
    for obj in guard_objects(GuardChoices(failure_policy=FAIL)):
        if obj["kind"] == "Deployment":
            spec = obj["spec"]["template"]["spec"]
            del spec["securityContext"]
            spec["containers"][0]["command"] = [sys.executable, "-m", "lastcall"]
            spec["containers"][0]["args"].append(f"--kubeconfig={kubeconfig}")
        yield obj


class GuardedLab:
    """Two nodes, the guard in two pods, one guarded pod."""

    def __init__(self, directory):
        self.directory = directory
        self.lab = LabProcess(directory / "lab", "--nodes=2", f"--data={directory / 'data'}")
        self.controller = None

    def start(self):
        self.lab.start()
        rights = [one for one in controller_objects(ControllerChoices()) if one["kind"] != "Deployment"]
        guard = list(guard_manifests(self.directory / "lastcall-guard.kubeconfig"))
        for obj in [*rights, *guard, *guarded_namespace_objects("default"), WORKLOAD]:
            self("apply -f -", obj)
        self.write_kubeconfig("lastcall-guard")
        self.wait("the kind GuardPolicy", lambda: "db" in self("apply -f -", POLICY))
        self.wait("a guard that holds the pod", lambda: "TooManyRequests" in self.try_delete())
        return self

    def __call__(self, line, obj=None):
        """What kubectl says, errors too."""
        said = subprocess.run(
            [PROGRAM, f"--kubeconfig={self.lab.kubeconfig}", *line.split()],
            input=json.dumps(obj) if obj else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        return said.stdout + said.stderr

    def wait(self, what, condition, seconds=90):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                shown = self("get pods -A -o wide"), self.try_delete(), self.controller and self.controller.said[-9:]
                raise AssertionError(f"no {what} in {seconds} s: {shown}")
            time.sleep(0.2)

    def try_delete(self):
        """What is said about the deletion of the guarded pod, which is not carried out."""
        return self("delete pod db-0 --dry-run=server --wait=false")

    def webhooks(self):
        found = json.loads(self("get validatingwebhookconfiguration lastcall-guard -o json"))
        return found.get("webhooks") or []

    def write_kubeconfig(self, account):
        """The access of a ServiceAccount; its path."""
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self(f"create token {account} -n {SYSTEM}").strip()}
        path = self.directory / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def run_controller(self):
        access = self.write_kubeconfig("lastcall-controller")
        self.controller = ControllerProcess(self.directory, access, "--guard-withdrawal=10s")

    def end(self):
        if self.controller:
            self.controller.kill()
        self.lab.end()


@pytest.fixture
def cluster(tmp_path):
    made = GuardedLab(tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


def test_both_replicas_are_killed_and_one_comes_back(cluster):
    before = cluster.webhooks()
    assert before[0]["failurePolicy"] == FAIL
    cluster(f"scale deployment lastcall-guard -n {SYSTEM} --replicas=0")
    cluster(f"delete pods -n {SYSTEM} -l app.kubernetes.io/component=guard --force --grace-period=0")
    cluster.wait("refusal", lambda: "failed calling webhook" in cluster.try_delete())
    cluster.run_controller()
    cluster.wait("withdrawal", lambda: "deleted" in cluster.try_delete())
    assert cluster.webhooks() == []
    assert "WebhooksWithdrawn" in cluster("get events -n default")
    assert "lastcall_guard_webhooks_withdrawn 1.0" in cluster.controller.page("/metrics")[1]
    cluster(f"scale deployment lastcall-guard -n {SYSTEM} --replicas=1")
    cluster.wait("hold", lambda: "TooManyRequests" in cluster.try_delete())
    assert cluster.webhooks() == before
    assert "WebhooksRestored" in cluster("get events -n default")
    assert cluster.controller.stop() == 0


def test_the_whole_cluster_starts_anew(cluster):
    """Nobody answers the webhook until the guard's own pods run again, which are never guarded; no controller helps."""
    cluster(f"label namespace {SYSTEM} lastcall.dev/guard-enabled=true")
    assert cluster.lab.stop() == 0
    cluster.lab.start()
    said = cluster(f"delete pods -n {SYSTEM} -l app.kubernetes.io/component=guard --force --grace-period=0")
    assert said.count("force deleted") == 2, said
    cluster.wait("hold", lambda: "TooManyRequests" in cluster.try_delete(), 150)
    cluster.wait("guards", lambda: "2/2" in cluster(f"get deployment lastcall-guard -n {SYSTEM}"), 150)
    assert cluster("get pod db-0 -o jsonpath={.status.phase}") == "Running"
