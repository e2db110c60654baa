"""Nodes that fall silent, in virtual time."""

import pytest
from support.lab.controller_cluster import on_cluster
from support.lab.scripted_nodes import Beats

from lastcall.adapters.kube.resources import EVENTS, NODES, PODS
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController, NodeLifecycleSettings
from lastcall_lab.controllers.nodes.zones import TaintRates, ZoneRateLimiter, ZoneState, zone_state
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.controllers.objects.taints import TaintEdits, apply_edits


def taints(cluster, name):
    return {(one["key"].partition("/")[2], one["effect"]) for one in cluster.get(NODES, name)["spec"].get("taints", ())}


def events(cluster, reason):
    return [one["message"] for one in cluster.all(EVENTS) if one["reason"] == reason]


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@on_cluster(NodeLifecycleController())
async def test_a_new_node_takes_pods_once_it_is_ready(cluster):
    beats = Beats(cluster)
    never = {"type": "Ready", "status": "False", "lastHeartbeatTime": timestamp(cluster.clock.wall())}
    node = {"metadata": {"name": "n1"}, "status": {"conditions": [never]}}
    await cluster.create(NODES, node, namespace="")
    await cluster.settle(0)
    assert taints(cluster, "n1") == {("not-ready", "NoSchedule")}
    await cluster.settle(0.05)
    await beats.say("n1")
    await cluster.settle()
    assert taints(cluster, "n1") == set()
    assert events(cluster, "RegisteredNode") == ["Node n1 event: Registered Node n1 in Controller"]
    await cluster.delete(NODES, "n1", namespace="")
    await cluster.settle()
    assert events(cluster, "RemovingNode") == ["Node n1 event: Removing Node n1 from Controller"]


@on_cluster(NodeLifecycleController())
async def test_a_node_that_never_says_anything_is_unknown_after_a_minute(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.settle(58)
    assert not condition_of(cluster.get(NODES, "n1"), "Ready")
    await cluster.settle(8)
    ready = condition_of(cluster.get(NODES, "n1"), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    assert events(cluster, "NodeNotReady") == []


@on_cluster(NodeLifecycleController())
async def test_silence(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2", "n3")
    await cluster.create(PODS, pod("web"))
    await beats.run("web", "n1")
    await cluster.settle(200)
    assert condition_of(cluster.get(NODES, "n1"), "Ready")["status"] == "True", "leases are signs of life too"
    beats.silent.add("n1")
    start = cluster.clock.boottime()
    await cluster.until(lambda: condition_of(cluster.get(NODES, "n1"), "Ready")["status"] == "Unknown")
    assert 40 <= cluster.clock.boottime() - start <= 56
    for kind in ("Ready", "MemoryPressure", "DiskPressure"):
        said = condition_of(cluster.get(NODES, "n1"), kind)
        assert (said["status"], said["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert said["message"] == "Kubelet stopped posting node status."
    assert condition_of(cluster.get(NODES, "n1"), "PIDPressure")["reason"] == "NodeStatusNeverUpdated"
    await cluster.settle(2)
    assert taints(cluster, "n1") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert all("timeAdded" in one for one in cluster.get(NODES, "n1")["spec"]["taints"])
    assert condition_of(cluster.get(PODS, "web"), "Ready")["status"] == "False"
    assert cluster.get(PODS, "web")["status"]["phase"] == "Running"
    assert sorted(events(cluster, "NodeNotReady")) == ["Node is not ready", "Node n1 status is now: NodeNotReady"]
    await beats.back("n1")
    await cluster.settle(6)
    assert taints(cluster, "n1") == set()
    await beats.stop()


@pytest.mark.parametrize("posts", [True, False])
def test_a_node_whose_clock_was_a_day_ahead_is_silent_once_at_most(posts):
    """Its leases are no signs until its status is posted, or it was written down that it is silent."""

    @on_cluster(NodeLifecycleController())
    async def test(cluster):
        beats, statuses = Beats(cluster), []
        await beats.start("n1")
        for _ in range(120):
            await cluster.settle(5)
            beats.ahead = 86400.0 if cluster.clock.boottime() < 60 else 0.0
            if posts and 70 <= cluster.clock.boottime() < 75:
                await beats.say("n1")
            statuses.append(condition_of(cluster.get(NODES, "n1"), "Ready")["status"])
            if statuses[-1] == "Unknown":
                await beats.say("n1")
        await beats.stop()
        assert (statuses.count("Unknown"), statuses[-1]) == (0 if posts else 1, "True")

    test()


@on_cluster(NodeLifecycleController())
async def test_a_node_that_says_it_is_not_ready_keeps_its_pods_ready(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2")
    await cluster.create(PODS, pod("web"))
    await beats.run("web", "n1")
    await cluster.settle()
    await beats.say("n1", "False", DiskPressure="True")
    await cluster.patch(NODES, "n2", {"spec": {"unschedulable": True}}, namespace="")
    await cluster.settle(7)
    assert taints(cluster, "n1") == {
        ("not-ready", "NoSchedule"),
        ("not-ready", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
    }
    assert taints(cluster, "n2") == {("unschedulable", "NoSchedule")}
    assert condition_of(cluster.get(PODS, "web"), "Ready")["status"] == "True"
    beats.silent.add("n1")
    await cluster.settle(70)
    assert {one for one in taints(cluster, "n1") if one[1] == "NoExecute"} == {("unreachable", "NoExecute")}
    await beats.stop()


@on_cluster(NodeLifecycleController())
async def test_one_node_after_another_is_tainted_and_others_taints_stay(cluster):
    beats = Beats(cluster)
    names = [f"n{number}" for number in range(7)]
    await beats.start(*names)
    own = {"key": "example.com/own", "value": "x", "effect": "NoExecute"}
    await cluster.patch(NODES, "n0", {"spec": {"taints": [own]}}, namespace="")
    beats.silent |= {"n0", "n1", "n2"}
    await cluster.settle(45)

    def tainted():
        return [name for name in names if ("unreachable", "NoExecute") in taints(cluster, name)]

    await cluster.until(lambda: len(tainted()) == 1)
    await cluster.settle(8)
    assert tainted() == ["n0"], "one in ten seconds"
    await cluster.settle(13)
    assert tainted() == ["n0", "n1", "n2"]
    assert own in cluster.get(NODES, "n0")["spec"]["taints"]
    await beats.stop()


@on_cluster(NodeLifecycleController())
async def test_a_small_zone_that_is_half_gone_is_left_alone(cluster):
    beats = Beats(cluster)
    names = [f"n{number}" for number in range(5)]
    await beats.start(*names)
    await cluster.settle(20)
    beats.silent |= {"n0", "n1", "n2"}
    await cluster.settle(120)
    assert {taint for name in names for taint in taints(cluster, name)} == {("unreachable", "NoSchedule")}
    await beats.stop()


@on_cluster(NodeLifecycleController())
async def test_when_all_fall_silent_nothing_is_evicted_and_all_get_their_time_anew(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2")
    await cluster.settle(20)
    beats.silent.add("n1")
    await cluster.until(lambda: ("unreachable", "NoExecute") in taints(cluster, "n1"))
    beats.silent.add("n2")
    await cluster.settle(70)
    assert taints(cluster, "n1") == taints(cluster, "n2") == {("unreachable", "NoSchedule")}
    await beats.back("n2")
    await cluster.until(lambda: ("unreachable", "NoExecute") in taints(cluster, "n1"))
    assert taints(cluster, "n2") == set()
    await beats.stop()


@on_cluster(NodeLifecycleController(NodeLifecycleSettings(period=0.5, grace=5)))
async def test_time_can_be_compressed(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2")
    beats.silent |= {"n1", "n2"}
    await cluster.settle(6)
    assert condition_of(cluster.get(NODES, "n1"), "Ready")["status"] == "Unknown"
    await beats.stop()


def test_the_list_of_taints_is_replaced_only_as_it_is_known():
    metadata = {"name": "n1", "uid": "u", "resourceVersion": "7"}
    theirs = {"key": "example.com/own", "effect": "NoExecute"}
    node = {"metadata": metadata, "spec": {"taints": [theirs]}}
    (patch,) = apply_edits(node, TaintEdits(add=frozenset([("k", "NoSchedule")])), 0.0)
    assert (patch.uid, patch.revision) == ("u", "7")
    assert patch.body["spec"]["taints"][0] == theirs
    assert apply_edits(node, TaintEdits(remove=frozenset([("k", "NoSchedule")])), 0.0) == ()


def test_states_of_zones():
    rates = TaintRates()
    assert zone_state([True] * 3, rates) is ZoneState.NORMAL
    assert zone_state([False], rates) is ZoneState.FULL
    assert zone_state([False, False, True], rates) is ZoneState.NORMAL, "fewer than three"
    assert zone_state([False] * 3 + [True] * 2, rates) is ZoneState.PARTIAL
    assert zone_state([False] * 3 + [True] * 3, rates) is ZoneState.NORMAL, "less than 55 in a hundred"


def test_a_limiter_keeps_its_emptiness_when_its_rate_changes():
    full = ZoneRateLimiter(0.1, 0.0)
    assert full.ready_in(0) == 0
    empty = full.with_token_taken(0)
    assert empty.ready_in(4) == pytest.approx(6)
    assert empty.with_rate(0.01, 4).ready_in(4) == pytest.approx(100)
    assert full.with_rate(0.01, 4).ready_in(4) == 0
    assert full.with_rate(0, 4).ready_in(1e9) == float("inf")
