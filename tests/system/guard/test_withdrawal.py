"""A guard in pods of the lab, with failurePolicy Fail: both replicas are killed, and the whole cluster starts anew.

The real programs: the guard's Deployment, ``lastcall controller`` as its own ServiceAccount, kubectl.
"""

import pytest
from support.failover.controller_process import ControllerProcess
from support.guard.guard_pods import SYSTEM, GuardPods

from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.manifests.guard_webhooks import FAIL

pytestmark = pytest.mark.timeout(270)


class GuardedLab(GuardPods):
    """Two nodes, the guard in two pods, one guarded pod; its data outlives it."""

    def __init__(self, directory):
        super().__init__(directory, f"--data={directory / 'data'}")
        self.controller = None

    def start(self):
        rights = [one for one in controller_objects(ControllerChoices()) if one["kind"] != "Deployment"]
        return super().start(*rights)

    def describe(self):
        return *super().describe(), self.controller and self.controller.said[-9:]

    def run_controller(self):
        access = self.write_kubeconfig("lastcall-controller")
        self.controller = ControllerProcess(self.directory, access, "--guard-withdrawal=10s")

    def end(self):
        if self.controller:
            self.controller.kill()
        super().end()


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
