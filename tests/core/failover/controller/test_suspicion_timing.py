"""When a node that falls silent is noticed: as soon as its policy's time is over, whenever it was heard of last."""

import msgspec
import pytest

from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedLease, WatchedNode

PATIENCE = 40.0
"""Of nodes for which no policy holds."""


def node(labels=None, revision=""):
    status = {"nodeInfo": {"bootID": "a"}, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": "n1", "labels": labels or {}, "resourceVersion": revision}
    return msgspec.convert({"metadata": metadata, "status": status}, WatchedNode)


def lease(renewed):
    found = {"metadata": {"name": "n1", "resourceVersion": str(renewed)}, "spec": {"renewTime": str(renewed)}}
    return msgspec.convert(found, WatchedLease)


@pytest.mark.parametrize("last", [0, 10, 30, 39, 40, 70, 100])
def test_silence_is_noticed_in_time(last):
    """The last renewal comes ``last`` seconds after the first look; each second it is asked who is late."""
    touched = []
    observing = ClusterView(touched.append)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", node()), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "", None), 0.0)
    now = 0
    while now < last + PATIENCE:
        if now % 10 == 0 and now <= last or now == last:
            observing.handle_change(ObjectChange(WatchedKind.LEASES, "n1", lease(now)), float(now))
        touched.clear()
        observing.touch_late_nodes(float(now))
        assert touched == []
        now += 1
    observing.touch_late_nodes(last + PATIENCE)
    assert touched == ["n1"]


@pytest.mark.parametrize("reports", [False, True])
def test_who_could_not_be_heard_was_not_silent(reports):
    """The Leases are listed a minute after the Nodes, as when the API server was cut off in between."""
    touched = []
    observing = ClusterView(touched.append)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", node()), 0.0)
    if reports:
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        status = {"nodeInfo": {"bootID": "a"}, "conditions": [condition]}
        again = msgspec.convert({"metadata": {"name": "n1"}, "status": status}, WatchedNode)
        observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", again), 1.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "n1", lease(55)), 60.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "", None), 60.0)
    touched.clear()
    observing.touch_late_nodes(60.0 + PATIENCE - 1)
    assert touched == []
    assert not observing.tracked_nodes["n1"].is_silent(60.0 + PATIENCE - 1)
    observing.touch_late_nodes(60.0 + PATIENCE)
    assert touched == ["n1"]


def policy(name, after):
    spec = {
        "suspectAfter": after,
        "nodeSelector": {"matchLabels": {"policy": name}},
        "fencers": [{"name": "f", "manual": {}}],
    }
    return {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": name}, "spec": spec}


def test_another_policy_by_another_label_is_another_patience():
    touched = []
    observing = ClusterView(touched.append)
    for name, after in (("slow", "1h"), ("quick", "60s")):
        observing.handle_change(ObjectChange(WatchedKind.POLICIES, name, policy(name, after)), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", node({"policy": "slow"}, "1")), 0.0)
    for what in WatchedKind:
        observing.handle_change(ObjectChange(what, "", None), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", node({"policy": "quick"}, "2")), 10.0)
    touched.clear()
    observing.touch_late_nodes(59.0)
    assert touched == []
    observing.touch_late_nodes(60.0)
    assert touched == ["n1"]


def test_when_most_were_lost_at_once_is_remembered():
    observing = ClusterView(lambda _: None)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "n1", node()), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "", None), 0.0)
    observing.count_reachable(PATIENCE - 1)
    assert observing.most_lost is None
    observing.count_reachable(PATIENCE)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "n1", lease(50)), 50.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "n1", lease(51)), 51.0)
    observing.count_reachable(52.0)
    assert observing.most_lost == PATIENCE
