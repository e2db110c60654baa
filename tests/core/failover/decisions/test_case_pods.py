"""What is left on a node, as it is read: what decides whether a pod goes, stays or is stuck."""

import msgspec
import pytest

from lastcall.failover.decisions import case_pods, remaining
from lastcall.model.observed import FailoverPod, LiveNode

NODE = msgspec.convert({"metadata": {"name": "n1"}}, LiveNode)
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]


def pod(*, phase="Running", spec=None, **metadata):
    found = {"metadata": {"name": "db-0", "namespace": "shop", "uid": "u1", **metadata}, "spec": spec or {}}
    return msgspec.convert({**found, "status": {"phase": phase}}, FailoverPod)


def read(found):
    return case_pods.case_pod(found, NODE, {("shop", "data-db-0"): "pv-1"}, {}, 0.0)


@pytest.mark.parametrize(("phase", "stuck"), [("Failed", True), ("Succeeded", True), ("Running", False)])
def test_a_pod_that_was_removed_by_force_and_has_finalizers_is_stuck(phase, stuck):
    found = pod(
        phase=phase,
        deletionTimestamp="2026-11-21T12:00:00Z",
        deletionGracePeriodSeconds=0,
        finalizers=["example.com/x"],
    )
    assert remaining.is_stuck(read(found)) is stuck


@pytest.mark.parametrize(
    ("found", "stays"),
    [
        (pod(spec={"volumes": CLAIM}), False),
        (pod(spec={"volumes": CLAIM, "tolerations": [{"operator": "Exists"}]}), True),
        (pod(spec={"tolerations": [{"operator": "Exists"}]}), False),
        (pod(spec={"volumes": CLAIM}, annotations={"lastcall.dev/failover": "Disabled"}), True),
        (pod(spec={"volumes": CLAIM}, annotations={"kubernetes.io/config.mirror": "x"}), True),
    ],
)
def test_volumes_of_pods_that_stay_have_to_be_known(found, stays):
    assert case_pods.has_staying_volumes([found], NODE, 0.0) is stays


def test_the_volumes_of_a_pod():
    assert read(pod(spec={"volumes": CLAIM})).volumes == ("pv-1",)
