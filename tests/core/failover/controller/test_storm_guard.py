"""What stands against fencing a node, as a controller learns it in its turns: of other terms, of most nodes, and of etcd."""

import msgspec
import pytest
from support.failover.virtual_cluster import NAMES, failing_over

from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.storm_guard import StormGuard
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedLease, WatchedNode
from lastcall_lab.simulation.network_faults import NetworkFault

CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}
DEFAULTS = {"suspectAfter": "40s", "limits": {"settle": "60s"}}


# -- etcd --------------------------------------------------------------------------------------------------------------


class Healthy:
    """An API server that has not failed."""

    watch_trouble, api_failed_at, api_trouble = "", None, ""


def node(name, ready="True"):
    labels = CONTROL_PLANE if name.startswith("c") else {}
    status = {"nodeInfo": {"bootID": name}, "conditions": [{"type": "Ready", "status": ready}]}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "status": status}, WatchedNode)


def renewed(name, at):
    metadata = {"name": name, "resourceVersion": str(int(at))}
    return msgspec.convert({"metadata": metadata, "spec": {"renewTime": str(at)}}, WatchedLease)


def fence_policy():
    spec = {"limits": {"minHealthy": 1, "perDomain": 9}, "fencers": [{"name": "f", "manual": {}}]}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, FencePolicy)


def test_the_first_look_at_leases_is_no_sign_of_life_although_the_nodes_are_known():
    """Nobody knows how old a renewal is that was there before; the next one is a sign."""
    observing = ClusterView(lambda _: None)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "w1", node("w1")), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.NODES, "", None), 0.0)
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "w1", renewed("w1", 5)), 5.0)
    assert observing.tracked_nodes["w1"].seen.heard is None
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "", None), 5.0)
    assert observing.tracked_nodes["w1"].seen.heard is None
    observing.handle_change(ObjectChange(WatchedKind.LEASES, "w1", renewed("w1", 15)), 15.0)
    assert observing.tracked_nodes["w1"].seen.heard == 15.0


def test_the_quorum_of_etcd_counts_whoever_was_asked_about_before():
    """One of three members is not Ready, and another is silent; so is a worker, for whom etcd does not matter."""
    observing = ClusterView(lambda _: None)
    for one in (node("c1", "False"), node("c2"), node("c3"), node("w1"), node("w2")):
        observing.handle_change(ObjectChange(WatchedKind.NODES, one.metadata.name, one), 0.0)
    for what in WatchedKind:
        observing.handle_change(ObjectChange(what, "", None), 0.0)
    for at, heard in ((100.0, ("c1", "c2", "c3", "w1", "w2")), (150.0, ("c1", "c3", "w2"))):
        for name in heard:
            observing.handle_change(ObjectChange(WatchedKind.LEASES, name, renewed(name, at)), at)
    guard, etcd = StormGuard(Healthy(), observing), frozenset({"c1", "c2", "c3"})
    guard.learn_nodes([], now=150.0, wall=0.0)
    guard.may_fence("w1", "w1", fence_policy(), etcd=frozenset(), now=150.9, wall=0.0)
    answer = guard.may_fence("c2", "c2", fence_policy(), etcd=etcd, now=151.0, wall=0.0)
    assert not answer.allowed
    assert "quorum" in answer.why


# -- other terms -------------------------------------------------------------------------------------------------------


@failing_over
async def test_who_follows_a_leader_that_was_killed_does_so_as_soon_as_its_lease_may_be_taken(world):
    """Not at its next look by chance after that."""
    first = world.start("a")
    await world.until(lambda: first.election.leads, 30)
    second = world.start("b")
    for moment in (21.3, 8.1, 9.9):
        await world.cluster.settle(moment)
        leader, other = (first, second) if first.election.leads else (second, first)
        leader.process.kill()
        await world.cluster.settle(10)
        over = other.election._seen.since + 15
        await world.until(lambda who=other: who.election.leads, 30)
        assert over <= world.now < over + 0.2
        first, second = other, world.start(f"c{moment}")


@failing_over
async def test_what_was_claimed_in_an_earlier_term_is_looked_at_again(world):
    """One marks a node and is cut off; the other ends it; the first leads again, and another node is lost."""
    first = world.start("a")
    await world.until(lambda: first.election.leads, 30)
    second = world.start("b")
    gone = world.place()
    world.nodes.pull(gone)
    await world.until(lambda: world.mark(gone))
    cut = NetworkFault(programs=("a",), refused=1.0)
    world.weather.begin(cut)
    await world.until(lambda: world.place() not in (None, gone), 200)
    assert second.election.leads
    await world.nodes.boot(gone)
    await world.until(lambda: not world.mark(gone), 200)
    world.weather.end(cut)
    await world.cluster.settle(60)
    second.process.kill()
    await world.until(lambda: first.election.leads)
    other = world.place()
    world.nodes.pull(other)
    await world.until(lambda: world.place() not in (None, other), 200)


# -- most nodes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [20, 44])
def test_while_most_nodes_come_back_the_last_of_them_are_not_fenced(later):
    """The ways of all nodes to the API server are cut for two minutes; two come back a while after the others."""

    @failing_over(policy=DEFAULTS)
    async def run(world):
        world.start()
        await world.cluster.settle(60)
        last = NAMES[:2]
        world.nodes.silent.update(NAMES)
        await world.cluster.settle(120)
        for name in NAMES[2:]:
            await world.nodes.back(name)
        await world.cluster.settle(later)
        assert world.verbs() == []
        for name in last:
            await world.nodes.back(name)
        await world.cluster.settle(120)
        assert world.verbs() == []

    run()


@failing_over(policy=DEFAULTS)
async def test_who_does_not_come_back_with_the_others_is_failed_over(world):
    world.start()
    await world.cluster.settle(60)
    gone = world.place()
    world.nodes.silent.update(NAMES)
    world.nodes.pull(gone)
    await world.cluster.settle(120)
    for name in NAMES:
        if name != gone:
            await world.nodes.back(name)
    await world.until(lambda: world.place() not in (None, gone), 200)
