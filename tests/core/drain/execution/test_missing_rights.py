"""A drain without one of its rights, from the beginning and from the middle on: it ends, says which, and leaves nothing."""

import pytest
from support.drain.drain_world import CountingTransport, in_world

from lastcall import errors
from lastcall.adapters.kube.resources import BUDGETS, NODES
from lastcall.errors import ApiNotPermitted
from lastcall.model.drain_limits import TimeoutPolicy
from lastcall.names import DRAINS_NAMESPACE
from lastcall_lab.simulation.drains.taken_rights import RightsTransport, TakenRights

NECESSARY = (
    "get nodes",
    "patch nodes",
    "list nodes",
    "watch nodes",
    "list pods",
    "watch pods",
    "create pods/eviction",
)
"""What a drain cannot do without."""

BESIDES = (
    "patch nodes/status",
    "create events",
    "get namespaces",
    "list poddisruptionbudgets",
    "watch poddisruptionbudgets",
    "get leases",
    "create leases",
    "update leases",
    "delete leases",
)
"""What it can do without."""


async def drain_without(world, right, **how):
    """A run of n1 for whom ``right`` can be taken, and the rights."""
    rights = TakenRights(lambda right, program: None)
    transport = CountingTransport(world.server)
    run = await world.drain("n1", transport=RightsTransport(transport, rights, "drain"), **how)
    return run, rights


async def outcome(run, task):
    """How the run has ended: its error, or what it says of the node."""
    try:
        await task
    except ApiNotPermitted as error:
        return str(error)
    return run.recorder.why


def words(right):
    """How the API server names a right that is missing."""
    verb, _, resource = right.partition(" ")
    return f'cannot {verb} resource "{resource}"'


@in_world()
@pytest.mark.parametrize("right", [*NECESSARY, *BESIDES])
async def test_from_the_beginning(world, right):
    await world.deploy(replicas=3, budget=0 if right == "watch nodes" else None)
    left = world.on("n1")
    run, rights = await drain_without(world, right)
    rights.take(right)
    async with world.running(run) as task:
        said = await outcome(run, task)
    if right in NECESSARY:
        assert words(right) in said
    else:
        assert said == ""
    asks = right not in NECESSARY or right == "watch pods"
    assert world.on("n1") == ([] if asks else left), "without the watch it does not hear that they are gone"
    assert world.leases() == (["node-n1"] if right == "delete leases" else [])


@in_world()
async def test_without_the_right_to_namespaces_the_lease_is_held_if_there_is_its_namespace(world):
    await world.deploy(replicas=3, budget=0)
    run, rights = await drain_without(world, "get namespaces")
    rights.take("get namespaces")
    async with world.running(run):
        await world.until(lambda: run.recorder.of("refused"))
        assert world.leases() == ["node-n1"]
    assert run.recorder.of("warn") == []

    async def missing(method, target):
        if method == "POST" and "/leases" in target:
            raise errors.NotFound(f'namespaces "{DRAINS_NAMESPACE}" not found', code=404)

    again = await world.drain("n1", timeout=50)
    again.transport.trouble = missing
    await again.run()
    assert again.recorder.of("warn")[0].endswith(f"mend: kubectl create namespace {DRAINS_NAMESPACE}")


@in_world()
@pytest.mark.parametrize("right", [*NECESSARY, *BESIDES])
@pytest.mark.parametrize("timeout", [None, 50])
async def test_from_the_middle_on(world, right, timeout):
    """While a budget holds a pod; later it makes room, and a right that is not needed any more is not missed."""
    await world.deploy(replicas=3, budget=0)
    run, rights = await drain_without(world, right, **({"timeout": timeout} if timeout else {}))
    async with world.running(run) as task:
        await world.until(lambda: run.recorder.of("refused"))
        rights.take(right)
        await world.settle(45)
        if not timeout:
            await world.patch(BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
        said = await outcome(run, task)
    if right in ("create pods/eviction", "update leases"):
        assert words(right) in said
    elif timeout:
        assert "global timeout reached: 50s" in said
    else:
        assert (said, world.on("n1")) == ("", [])
    assert world.is_cordoned("n1")
    assert world.leases() == (["node-n1"] if right == "delete leases" else [])


@in_world()
@pytest.mark.parametrize("right", ["watch nodes", "get nodes"])
@pytest.mark.parametrize("deletes", [False, True])
async def test_what_becomes_of_a_node_is_seen_though_it_cannot_be_watched(world, right, deletes, caplog):
    """The pods of a node that somebody has uncordoned or deleted stay, though their budget makes room."""
    await world.deploy(replicas=3, budget=0)
    left = world.on("n1")
    run, rights = await drain_without(world, "watch nodes")
    rights.take("watch nodes")
    async with world.running(run) as task:
        await world.until(lambda: run.recorder.of("refused"))
        if right == "get nodes":
            rights.take(right)
        if deletes:
            await world.client.delete(NODES, "n1")
        else:
            await world.client.patch(NODES, "n1", {"spec": {"unschedulable": None}})
        await world.patch(BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
        said = await outcome(run, task)
    why = "its Node was deleted" if deletes else "somebody else has uncordoned it"
    assert said == why if right == "watch nodes" else words("watch nodes") in said
    assert sum("no pod is evicted while" in one.message for one in caplog.records) == (right == "get nodes")
    assert world.on("n1") == left


@in_world()
@pytest.mark.parametrize("right", ["list pods", "watch pods", "list nodes", "watch nodes"])
@pytest.mark.parametrize("seconds", [16, 19])
async def test_a_watch_that_is_refused_for_a_moment_ends_nothing(world, right, seconds):
    """Nothing is asked for between two attempts of a watch: the last refusal may be old."""
    await world.deploy(replicas=3)
    run, rights = await drain_without(world, right)
    rights.take(right)
    async with world.running(run) as task:
        await world.settle(seconds)
        rights.give_back(right)
        assert await outcome(run, task) == ""
    assert world.on("n1") == []


@in_world()
async def test_a_renewal_that_is_refused_for_a_moment_ends_nothing(world):
    """An API server that has just started may refuse what its roles permit, until it has read them."""
    await world.deploy(replicas=3, budget=0)
    run, rights = await drain_without(world, "update leases")
    async with world.running(run) as task:
        await world.until(lambda: run.recorder.of("refused"))
        rights.take("update leases")
        await world.until(lambda: rights.has_refused("leases", "drain"))
        rights.give_back("update leases")
        await world.settle(45)
        await world.patch(BUDGETS, "web", {"spec": {"maxUnavailable": 1}})
        assert await outcome(run, task) == ""
    assert world.on("n1") == []


@in_world()
@pytest.mark.parametrize("policy", TimeoutPolicy)
async def test_the_time_ends_a_drain_though_the_api_server_is_away(world, policy):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", timeout=50, on_timeout=policy)

    async def away(method, target):
        raise errors.ApiUnavailable("no answer", code=503)

    async with world.running(run) as task:
        await world.until(lambda: run.recorder.of("refused"))
        run.transport.trouble = away
        await task
    assert run.has_failed
    assert "global timeout reached: 50s" in run.recorder.why
    assert run.recorder.of("delete") == []


@in_world()
async def test_the_time_ends_a_drain_that_cannot_list_its_pods(world):
    await world.deploy(replicas=3)
    left = world.on("n1")
    run = await world.drain("n1", timeout=50)

    async def away(method, target):
        if "/pods" in target:
            raise errors.ApiUnavailable("no answer", code=503)

    run.transport.trouble = away
    await run.run()
    assert "global timeout reached: 50s; its pods could not be listed" in run.recorder.why
    assert world.on("n1") == left
    assert world.leases() == []
