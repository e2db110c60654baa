"""A node that is drained fails: failover takes it over and names the drain, which gives it up."""

import asyncio

import pytest
from support.drain.drain_world import CountingTransport, drain_running, in_world, prepare_drain
from support.failover.virtual_cluster import failing_over

from lastcall import errors
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_ownership import KubeNodeOwnership
from lastcall.adapters.kube.resources import EVENTS, LEASES, NAMESPACES, NODES
from lastcall.aio import cancel_and_wait
from lastcall.model.node_ownership import MEDIK8S_LEASES, OwnershipClaim
from lastcall.names import DRAINS_NAMESPACE, FAILOVER_ANNOTATION

MARK = '{"bootID": "b1", "policy": "p", "began": "2026-11-28T20:00:00Z", "by": "c_0"}'
FAILS_OVER = "lastcall controller c_0 fails it over since 2026-11-28T20:00:00Z"


async def refuse(method, target):
    """A budget that lets nothing go."""
    if method == "POST" and target.partition("?")[0].endswith("/eviction"):
        raise errors.TooManyRequests("no disruption is allowed", code=429, reason="TooManyRequests")


@failing_over
async def test_failover_goes_on_and_names_the_drain_which_gives_the_node_up(world):
    world.start()
    cluster, node = world.cluster, world.place()
    await cluster.client.create(NAMESPACES, {"metadata": {"name": DRAINS_NAMESPACE}})
    run = await prepare_drain(cluster.server, cluster.clock, node, reason="new kernel")
    run.transport.trouble = refuse
    async with drain_running(run) as task:
        await world.until(lambda: run.recorder.of("refused"))
        world.nodes.pull(node)
        await task
        await world.until(lambda: world.place() not in (None, node))
    assert run.recorder.why.startswith("lastcall controller c_0 fails it over since ")
    assert run.recorder.why.endswith(": a node under failover is left to it")
    [begun] = [one["message"] for one in cluster.all(EVENTS) if one["reason"] == "FailoverBegun"]
    assert "; admin-1 drains it since " in begun
    assert begun.endswith(" (new kernel), and the drain leaves it to failover")
    assert not [one for one in cluster.all(LEASES) if one["metadata"]["namespace"] == DRAINS_NAMESPACE]


async def mark(world, name, text):
    await world.client.patch(NODES, name, {"metadata": {"annotations": {FAILOVER_ANNOTATION: text}}})


@pytest.mark.parametrize(("text", "who"), [(MARK, FAILS_OVER), ("?", "lastcall controller fails it over")])
@in_world()
async def test_the_lease_of_a_node_that_is_given_up_does_not_stay_while_the_others_go_on(world, text, who):
    await world.bare("a", "n1")
    await world.bare("b", "n2")
    run = await world.drain("n1", "n2")
    run.transport.trouble = refuse
    async with world.running(run):
        await world.until(lambda: run.recorder.of("refused"))
        assert world.leases() == ["node-n1", "node-n2"]
        await mark(world, "n1", text)
        await world.until(lambda: run.recorder.of("failed"))
        await world.settle(30)
        assert world.leases() == ["node-n2"], "and no renewal makes it again"
        assert run.recorder.why == f"{who}: a node under failover is left to it"
    assert world.on("n1") == ["a"]


@in_world()
async def test_a_lease_that_is_released_while_others_are_renewed_is_not_made_again(world):
    client, uids = world.client, {name: world.node(name)["metadata"]["uid"] for name in ("n1", "n2")}
    transport, is_renewing, goes_on = CountingTransport(world.server), asyncio.Event(), asyncio.Event()

    async def trouble(method, target):
        if method == "PUT":
            is_renewing.set()
            await goes_on.wait()

    await client.create(NAMESPACES, {"metadata": {"name": MEDIK8S_LEASES}})
    claim = OwnershipClaim("one", "")
    ownership = KubeNodeOwnership(Client(transport), claim, uids, world.clock)
    await ownership.take(uids)
    transport.trouble = trouble
    keeping = asyncio.create_task(ownership.keep())
    await is_renewing.wait()
    releasing = asyncio.create_task(ownership.release(["n2"]))
    await world.settle(1)
    goes_on.set()
    await releasing
    await world.settle(60)
    assert not keeping.done()
    assert set(world.leases()) == {"node-n1"}
    await cancel_and_wait(keeping)


@in_world()
async def test_a_mark_that_the_plan_has_passed_by_does_not_end_the_drain(world):
    await world.bare("a", "n1")
    await mark(world, "n1", MARK)
    run = await world.drain("n1")
    await run.run()
    assert not run.has_failed


@pytest.mark.parametrize(
    ("change", "subresource", "said"),
    [
        (
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            "status",
            f"it is not ready (Ready=Unknown), so nothing confirms the end of its pods: {FAILS_OVER}",
        ),
        (
            {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}},
            "",
            f"its machine is off, and its pods are removed by failover; {FAILS_OVER}",
        ),
    ],
)
@in_world()
async def test_a_node_under_failover_is_not_begun(world, change, subresource, said):
    await world.bare("a", "n1")
    await mark(world, "n1", MARK)
    await world.client.patch(NODES, "n1", change, subresource=subresource)
    run = await world.drain("n1")
    await run.run()
    assert run.recorder.why.endswith(said)
    assert not world.is_cordoned("n1")
