"""Drains by EvictionRequests at the lab's API server in virtual time: followed, withdrawn, and without any controller."""

import asyncio
import contextlib
from random import Random

import pytest
from support.drain.drain_world import in_world

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import KubeDrainCluster
from lastcall.adapters.kube.eviction_requests import (
    EVICTIONS,
    REQUESTS,
    KubeEvictionCluster,
    KubeEvictionObjects,
)
from lastcall.aio import cancel_and_wait
from lastcall.guard.eviction_requests.decisions.request_answers import PATIENCE
from lastcall.guard.eviction_requests.eviction_request_controller import EvictionRequestController
from lastcall.guard.eviction_requests.eviction_request_loop import EvictionRequestLoop
from lastcall.guard.eviction_requests.pod_evictor import PodEvictor
from lastcall.model.drain_limits import TimeoutPolicy
from lastcall.wiring.eviction_requests import open_requested_evictions
from lastcall_lab.apiserver.catalog.optional_resources import LIFECYCLE
from lastcall_lab.apiserver.server.in_process import InProcessTransport

RESPONDERS = [{"name": "acme.io/operator", "priority": 10000}]


@contextlib.asynccontextmanager
async def controlling(world):
    """The controller of EvictionRequests and the last evictor, meanwhile."""
    client = Client(InProcessTransport(world.server))
    objects = KubeEvictionObjects(client, world.clock, Random(3), with_requests=True)
    cluster = KubeEvictionCluster(client)
    parts = [EvictionRequestController(objects, cluster, world.clock), PodEvictor(objects, cluster, world.clock)]
    task = asyncio.create_task(EvictionRequestLoop(objects, cluster, parts, world.clock).run())
    try:
        yield
    finally:
        await cancel_and_wait(task)


@contextlib.asynccontextmanager
async def draining(world, **more):
    """A drain by EvictionRequests, and its task, meanwhile."""
    client = Client(InProcessTransport(world.server))
    direct = KubeDrainCluster(client, world.clock, "test")
    async with open_requested_evictions(client, direct, world.clock, Random(4)) as evictions:
        run = await world.drain("n1", evictions=evictions, **more)
        async with world.running(run) as task:
            yield run, task


def intents(world):
    return {one["spec"]["target"]["pod"]["name"]: one["spec"]["intent"] for one in world.all(REQUESTS)}


def evictions_asked(run):
    return [path for method, path in run.transport.asked if method == "POST" and path.endswith("/eviction")]


@in_world(optional=(LIFECYCLE,))
async def test_a_node_is_emptied_by_evictionrequests_that_the_pods_own(world):
    await world.deploy(replicas=6, budget=1)
    gone = world.on("n1")
    async with controlling(world), draining(world) as (run, task):
        await world.until(lambda: sorted(intents(world)) == gone)
        owners = [one["metadata"]["ownerReferences"][0] for one in world.all(REQUESTS)]
        await task
    assert {(one["kind"], one["name"]) for one in owners} == {("Pod", name) for name in gone}
    assert world.on("n1") == []
    assert sorted(run.recorder.of("gone")) == gone
    assert evictions_asked(run) == []
    assert [one["spec"]["requester"] for one in world.all(REQUESTS)] == ["lastcall.dev/drain"] * len(gone)


async def hold_pod(world):
    """A pod whose responder keeps its turn."""
    await world.bare("held", "n1", evictionResponders=RESPONDERS)


@in_world(optional=(LIFECYCLE,))
async def test_what_a_responder_says_is_told_and_a_drain_that_ends_withdraws(world):
    await hold_pod(world)
    async with controlling(world), draining(world) as (run, task):
        await world.until(lambda: run.recorder.of("refused") and "acme.io/operator" in run.recorder.refusal)
        assert intents(world) == {"held": "Eviction"}
        await cancel_and_wait(task)
        assert intents(world) == {"held": "Withdrawn"}
        await world.until(lambda: "Canceled" in str(world.all(EVICTIONS)))
    assert world.on("n1") == ["held"]
    async with draining(world) as (_, task):
        await world.until(lambda: intents(world) == {"held": "Eviction"})


@pytest.mark.parametrize("policy", [TimeoutPolicy.STOP, TimeoutPolicy.FORCE])
@in_world(optional=(LIFECYCLE,))
async def test_a_pod_that_is_given_up_is_not_forced_past_its_responder_and_its_request_is_withdrawn(world, policy):
    await hold_pod(world)
    async with controlling(world), draining(world, timeout=30.0, on_timeout=policy) as (run, task):
        await task
    assert run.has_failed
    assert world.on("n1") == ["held"]
    assert intents(world) == {"held": "Withdrawn"}


@in_world(optional=(LIFECYCLE,))
async def test_where_nothing_acts_on_the_requests_the_eviction_api_is_asked(world):
    await world.deploy(replicas=3)
    await world.bare("later", "n1", priorityClassName="later")
    begun = world.clock.boottime()
    async with draining(world) as (_, task):
        await task
    assert world.on("n1") == []
    assert PATIENCE <= world.clock.boottime() - begun < 2 * PATIENCE, "it is waited for once, not for each tier"


@in_world()
async def test_where_they_are_not_served_the_eviction_api_is_asked(world):
    await world.deploy(replicas=3)
    async with draining(world) as (run, task):
        await task
    assert world.on("n1") == []
    assert evictions_asked(run)
