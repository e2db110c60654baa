"""What a drain sets for external load balancers: with the cordon, and taken back exactly if it is lastcall's."""

import asyncio
import contextlib
from random import Random

import pytest
from support.drain.drain_world import CountingTransport, in_world

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import KubeDrainCluster
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import NODES
from lastcall.aio import OrderedTaskGroup
from lastcall.drain.execution.balancer_mark_remover import LOOK_SECONDS, NOT_PERMITTED_SECONDS, BalancerMarkRemover
from lastcall.errors import ApiNotPermitted, Unavailable
from lastcall.model.balancer_marks import BalancerMark
from lastcall.model.observed import WatchedNode
from lastcall.names import BALANCER_EXCLUSION, BALANCER_MARKS, TO_BE_DELETED

ALL = tuple(BalancerMark)
DATED = {"key": "dedicated", "value": "db", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


def taints(world, name="n1"):
    """The taints of a Node without those of its lifecycle."""
    found = world.node(name)["spec"].get("taints") or ()
    return [one for one in found if not one["key"].startswith("node.kubernetes.io/")]


def excluded(world, name="n1"):
    """The label, the keys of the taints, and the annotation of a Node."""
    node = world.node(name)
    about = node["metadata"]
    keys = [one["key"] for one in taints(world, name)]
    return (
        (about.get("labels") or {}).get(BALANCER_EXCLUSION),
        keys,
        (about.get("annotations") or {}).get(BALANCER_MARKS),
    )


BOTH, NONE = ("true", [TO_BE_DELETED], "label,taint"), (None, [], None)


async def uncordon(world, name="n1"):
    await world.client.patch(NODES, name, {"spec": {"unschedulable": None}})


@in_world()
async def test_they_are_set_with_the_cordon_and_stay_after_the_drain(world):
    await world.client.patch(NODES, "n1", {"spec": {"taints": [DATED]}})
    await world.deploy(replicas=3)
    seen = []
    run = await world.drain("n1", balancers=ALL)
    following = Informer(world.client, NODES, clock=world.clock, random=Random(1))

    async def follow():
        async for change in following.changes():
            if change.key.name == "n1" and change.new is not None:
                node = change.new
                labels = node["metadata"].get("labels") or {}
                seen.append((bool(node["spec"].get("unschedulable")), BALANCER_EXCLUSION in labels))

    world.group.start(follow(), "follow")
    await run.run()
    await world.settle(1)
    assert {*seen} == {(False, False), (True, True)}, "never one without the other"
    assert not run.has_failed
    assert excluded(world) == ("true", ["dedicated", TO_BE_DELETED], "label,taint")
    assert DATED in taints(world), "the times of others' taints stay"


@in_world()
@pytest.mark.parametrize("uncordons", [False, True])
async def test_a_drain_that_fails_takes_them_back(world, uncordons):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", timeout=20, uncordons=uncordons, balancers=ALL)
    async with world.running(run) as task:
        await world.settle(5)
        assert excluded(world) == BOTH
        await task
    assert run.has_failed
    assert excluded(world) == NONE
    assert world.is_cordoned("n1") is not uncordons


@in_world()
async def test_what_was_there_before_stays(world):
    await world.deploy(replicas=3, budget=0)
    await world.client.patch(NODES, "n1", {"metadata": {"labels": {BALANCER_EXCLUSION: "by-hand"}}})
    run = await world.drain("n1", timeout=20, balancers=ALL)
    async with world.running(run) as task:
        await world.settle(5)
        assert excluded(world) == ("by-hand", [TO_BE_DELETED], "taint")
        await task
    assert excluded(world) == ("by-hand", [], None)


@in_world()
async def test_after_an_interruption_the_next_run_takes_them_back(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", balancers=ALL)
    async with world.running(run):
        await world.settle(5)
    assert excluded(world) == BOTH
    again = await world.drain("n1", timeout=20)
    await again.run()
    assert excluded(world) == NONE


@in_world()
async def test_somebody_uncordons_the_node_during_the_drain(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", balancers=ALL)
    async with world.running(run) as task:
        await world.settle(5)
        await uncordon(world)
        await task
    assert excluded(world) == NONE


@contextlib.asynccontextmanager
async def removing(world, trouble=None):
    """The controller's part, with its own watch of the Nodes."""
    transport = CountingTransport(world.server)
    transport.trouble = trouble
    cluster = KubeDrainCluster(Client(transport, manager="controller"), world.clock, "controller")
    informer = Informer(world.client, NODES.with_shape(WatchedNode), clock=world.clock, random=Random(1))

    async def follow():
        async for _ in informer.changes():
            pass

    group = OrderedTaskGroup()
    group.start(follow(), "follow")
    group.start(BalancerMarkRemover(cluster, lambda: [*informer.objects.values()], world.clock).run(), "remove")
    try:
        yield transport
    finally:
        await group.cancel()


@in_world()
async def test_a_node_that_is_uncordoned_after_its_drain_gets_its_traffic_back(world):
    await world.client.patch(NODES, "n1", {"spec": {"taints": [DATED]}})
    await world.client.patch(NODES, "n2", {"metadata": {"labels": {BALANCER_EXCLUSION: "by-hand"}}})
    run = await world.drain("n1", balancers=ALL)
    await run.run()
    async with removing(world) as transport:
        await world.settle(5 * LOOK_SECONDS)
        assert excluded(world)[2] == "label,taint", "as long as it is cordoned"
        await uncordon(world)
        await world.settle(2 * LOOK_SECONDS)
        assert excluded(world) == (None, ["dedicated"], None)
        assert taints(world) == [DATED]
        assert excluded(world, "n2") == ("by-hand", [], None)
        await world.settle(5 * LOOK_SECONDS)
        assert transport.asked == [("PATCH", "/api/v1/nodes/n1")]


@in_world()
async def test_an_api_server_that_is_away_is_asked_again(world):
    run = await world.drain("n1", balancers=ALL)
    await run.run()
    await uncordon(world)
    away = True

    async def trouble(method, target):
        if away:
            raise Unavailable("away")

    async with removing(world, trouble):
        await world.settle(3 * LOOK_SECONDS)
        assert excluded(world) == BOTH
        away = False
        await world.settle(2 * LOOK_SECONDS)
    assert excluded(world) == NONE


@contextlib.asynccontextmanager
async def removing_without_right(world):
    """After a drain of n1 and an uncordon: the transport of a remover that may patch Nodes from ``granted`` on."""
    run = await world.drain("n1", balancers=ALL)
    await run.run()
    await uncordon(world)
    granted = asyncio.Event()

    async def trouble(method, target):
        if not granted.is_set():
            raise ApiNotPermitted("may not patch nodes")

    async with removing(world, trouble) as transport:
        yield transport, granted


@in_world()
async def test_a_missing_right_is_asked_for_every_five_minutes(world):
    async with removing_without_right(world) as (transport, granted):
        await world.settle(NOT_PERMITTED_SECONDS - LOOK_SECONDS)
        assert len(transport.asked) == 1
        granted.set()
        await world.settle(3 * LOOK_SECONDS)
    assert excluded(world) == NONE


@in_world()
async def test_a_node_that_was_cordoned_again_meanwhile_is_tried_at_its_next_uncordon(world):
    """What was refused is over then: who cordoned it may have granted the right, too."""
    async with removing_without_right(world) as (transport, granted):
        await world.settle(2 * LOOK_SECONDS)
        assert len(transport.asked) == 1
        await world.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
        await world.settle(2 * LOOK_SECONDS)
        granted.set()
        await uncordon(world)
        await world.settle(2 * LOOK_SECONDS)
        assert excluded(world) == NONE, "within the five minutes"
