"""What is left at the end of a rehearsal, and what says why: told by hand."""

from types import SimpleNamespace

import pytest

from lastcall.adapters.kube.resources import ATTACHMENTS, DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, STATEFUL_SETS
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation import unfinished_work

HERE, AWAY = "here", "away"
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}


def node(name, *, ready=True, taints=()):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name},
        "spec": {"taints": [{"key": key} for key in taints]},
        "status": {"conditions": conditions},
    }


def pod(name="web-1", *, on=HERE, phase="Running", ready=True, deleted=False, conditions=()):
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    said = [{"type": "Ready", "status": str(ready)}, *conditions]
    spec = {"nodeName": on} if on else {}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": said}}


def workload(status, **spec):
    metadata = {"name": "web", "namespace": "default"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}, "status": status}


def left(found, *, here=PowerSwitch.ON):
    """What is left in a cluster with these objects, by resource."""
    found = {NODES: [node(HERE), node(AWAY, ready=False)], **found}
    machines = {HERE: SimpleNamespace(switch=here), AWAY: SimpleNamespace(switch=PowerSwitch.OFF)}
    hosts = {HERE: SimpleNamespace(clock=SimpleNamespace(furthest=3600.0))}
    clock = SimpleNamespace(wall=lambda: parse_seconds("2026-01-01T12:00:00Z"))
    cluster = SimpleNamespace(
        list_objects=lambda kind: found.get(kind, []), machines=machines, hosts=hosts, clock=clock
    )
    return unfinished_work.describe_unfinished(cluster)


def test_all_is_well():
    assert left({PODS: [pod()], DEPLOYMENTS: [workload({"readyReplicas": 1})]}) == []


def test_a_machine_that_is_on_has_a_node_that_is_ready():
    found = {NODES: [node(HERE, ready=False), node(AWAY, ready=False)]}
    assert left(found) == ["here is on, and not ready"]
    assert left(found, here=PowerSwitch.HUNG) == []


@pytest.mark.parametrize("key", ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"])
def test_a_taint_that_stays(key):
    assert left({NODES: [node(HERE, taints=[key])]}) == [f"here is ready, and has the taint {key}"]
    assert left({NODES: [node(HERE), node(AWAY, ready=False, taints=[key])]}) == []
    assert left({NODES: [node(HERE, taints=["example.com/mine"])]}) == []


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (pod(deleted=True), "pod default/web-1 is Terminating on here"),
        (pod(deleted=True, on=AWAY), None),
        (pod(phase="Pending", ready=False), "pod default/web-1 is Pending on here, and does not say why"),
        (pod(phase="Pending", ready=False, on=""), "pod default/web-1 is Pending on no node, and does not say why"),
        (pod(phase="Pending", ready=False, on="", conditions=[UNSCHEDULED]), None),
        (pod(ready=False), "pod default/web-1 runs on here, and is not ready"),
        (pod(ready=False, on=AWAY), None),
        (pod(ready=False, phase="Succeeded"), None),
    ],
)
def test_pods(one, said):
    assert left({PODS: [one]}) == ([said] if said else [])


@pytest.mark.parametrize(
    ("kind", "status", "spec"),
    [
        (DEPLOYMENTS, {"readyReplicas": 1}, {"replicas": 2}),
        (STATEFUL_SETS, {}, {}),
        (DAEMON_SETS, {"desiredNumberScheduled": 2, "numberReady": 1}, {}),
    ],
)
def test_pods_that_are_missing(kind, status, spec):
    found = {kind: [workload(status, **spec)]}
    [said] = left(found)
    assert said.startswith(f"{kind.plural} default/web: ")
    assert left(found | {PODS: [pod(on="", phase="Pending", ready=False, conditions=[UNSCHEDULED])]}) == []
    assert left(found | {PODS: [pod(on=AWAY)]}) == []
    assert len(left(found | {PODS: [pod()]})) == 1
    assert left(found | {PODS: [pod(on=AWAY, phase="Failed")]}) == [said]


def test_a_controller_that_believes_in_pods_that_are_gone():
    said = "deployments default/web: 1 of 2 pods are ready, and none says why"
    assert left({PODS: [pod()], DEPLOYMENTS: [workload({"readyReplicas": 2}, replicas=2)]}) == [said]


@pytest.mark.parametrize(
    ("status", "spec", "well"),
    [
        ({}, {}, False),
        ({"active": 1}, {}, True),
        ({"conditions": [{"type": "Complete", "status": "True"}]}, {}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, {}, True),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, {}, False),
        ({}, {"suspend": True}, True),
    ],
)
def test_jobs(status, spec, well):
    assert left({JOBS: [workload(status, **spec)]}) == (
        [] if well else ["job default/web is not over, and has no pod that works"]
    )


@pytest.mark.parametrize(
    ("ended", "phase", "on", "well"),
    [
        ("2026-01-01T12:30:00Z", "Failed", HERE, True),
        ("2026-01-01T11:30:00Z", "Failed", HERE, False),
        ("2026-01-01T14:00:00Z", "Failed", HERE, False),
        ("2026-01-01T12:30:00Z", "Succeeded", HERE, False),
        ("2026-01-01T12:30:00Z", "Failed", AWAY, False),
    ],
)
def test_a_job_may_wait_for_what_a_clock_that_was_ahead_has_said(ended, phase, on, well):
    """The clock of this machine was an hour ahead, and never more."""
    job, failed = workload({}), pod(phase=phase, on=on)
    job["metadata"]["uid"] = "j"
    failed["metadata"]["ownerReferences"] = [{"uid": "j"}]
    failed["status"]["containerStatuses"] = [{"state": {"terminated": {"finishedAt": ended}}}]
    assert (left({JOBS: [job], PODS: [failed]}) == []) == well


@pytest.mark.parametrize(("where", "deleted", "well"), [(HERE, True, False), (HERE, False, True), (AWAY, True, True)])
def test_attachments(where, deleted, well):
    metadata = {"name": "csi-1"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    said = "volume attachment csi-1 is not detached from here"
    assert left({ATTACHMENTS: [{"metadata": metadata, "spec": {"nodeName": where}}]}) == ([] if well else [said])
