"""Drains at the lab's API server in virtual time: what goes, in which order, and what the Nodes say."""

import asyncio
import itertools
import json
import re

import pytest
from support.drain.drain_world import in_world
from support.lab.workloads import moments, up

from lastcall import errors
from lastcall.adapters.kube.resources import BUDGETS, LEASES, NAMESPACES, NODES, PODS
from lastcall.aio import cancel_and_wait
from lastcall.drain.execution.drain_run import NodeIsOwned
from lastcall.model.node_ownership import MEDIK8S_LEASES
from lastcall.names import DRAIN_MARK, DRAINS_NAMESPACE

STARTED = (("True", "LastcallDrainStarted"), ("False", "LastcallDrainStarted"))
COMPLETED = (("False", "LastcallDrainCompleted"), ("True", "LastcallDrainCompleted"))
FAILED = (("False", "LastcallDrainFailed"), ("False", "LastcallDrainFailed"))
INTERRUPTED = (("False", "LastcallDrainInterrupted"), ("False", "LastcallDrainInterrupted"))
UNCORDONED = (("False", "LastcallUncordoned"), ("False", "LastcallUncordoned"))


def mark(world, node):
    text = (world.node(node)["metadata"].get("annotations") or {}).get(DRAIN_MARK)
    return text and json.loads(text)


@in_world()
async def test_a_node_is_emptied_and_says_so(world):
    await world.deploy(replicas=6)
    gone = world.on("n1")
    run = await world.drain("n1")
    await run.run()
    assert not run.has_failed
    assert world.on("n1") == []
    assert world.is_cordoned("n1")
    assert world.conditions("n1") == COMPLETED
    assert mark(world, "n1") is None
    assert world.leases() == []
    assert sorted(run.recorder.of("gone")) == gone
    assert run.recorder.said[0] == ("cordoned", "n1")
    assert run.recorder.said[-1] == ("drained", "n1")
    assert world.events() == {"LastcallDrainStarted", "LastcallDrainCompleted"}
    gets = [path for method, path in run.transport.asked if method == "GET" and "/pods" in path]
    assert len(gets) == 2, "one list and one watch, however many pods"


@in_world()
async def test_a_budget_is_kept_at_every_instant_and_blocks_until_a_replica_is_ready(world):
    await world.deploy(replicas=6, budget=1)
    run = await world.drain("n1", "n2")
    await run.run()
    assert world.on("n1", "n2") == []
    assert len(world.on("n3")) == 6
    ready = [sum(map(up, moment.values())) for moment in moments(world.kubelet)]
    assert min(ready[ready.index(6) :]) == 5
    assert run.recorder.of("refused")
    assert "it would violate the pod's disruption budget" in run.recorder.refusal


@in_world()
async def test_tiers_go_one_after_another(world):
    await world.bare("late", "n1", priorityClassName="later")
    await world.bare("critical", "n1", priorityClassName="system-cluster-critical")
    await world.bare("soon", "n1")
    run = await world.drain("n1")
    await run.run()
    assert run.recorder.of("evict", "gone") == ["soon", "soon", "late", "late", "critical", "critical"]


@in_world()
async def test_what_others_depend_on_stays_if_one_of_these_fails(world):
    await world.bare("critical", "n1", priorityClassName="system-cluster-critical")
    await world.deploy(replicas=1, budget=1)
    pod = world.pods_of("web")[0]
    await world.create(BUDGETS, {"metadata": {"name": "b"}, "spec": {"selector": {}, "maxUnavailable": 1}})
    await world.settle()
    node = pod["spec"]["nodeName"]
    await world.bare("other", node)
    await world.patch(PODS, "other", {"metadata": {"labels": {"app": "x"}}})
    run = await world.drain(*{"n1", node})
    await run.run()
    assert run.has_failed
    assert "has more than one PodDisruptionBudget" in run.recorder.why or "not asked for" in run.recorder.why
    assert pod["metadata"]["name"] in world.on(node)
    assert "critical" in world.on("n1")
    assert "other" not in world.on(node), "others of the tier go on"


@in_world()
@pytest.mark.parametrize("uncordons", [False, True])
async def test_the_time_is_over(world, uncordons):
    await world.deploy(replicas=3, budget=0)
    left = world.on("n1")
    run = await world.drain("n1", timeout=20, uncordons=uncordons)
    begun = world.clock.boottime()
    await run.run()
    assert run.has_failed
    assert world.clock.boottime() - begun == pytest.approx(20, abs=1)
    assert "global timeout reached: 20s" in run.recorder.why
    assert world.on("n1")[: len(left)] == left
    assert world.is_cordoned("n1") is not uncordons
    assert world.conditions("n1") == (UNCORDONED if uncordons else FAILED)
    assert (mark(world, "n1") is None) is uncordons
    assert world.leases() == []


@in_world()
async def test_a_cordon_from_before_always_stays(world):
    await world.deploy(replicas=3, budget=0)
    await world.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    run = await world.drain("n1", timeout=20, uncordons=True)
    await run.run()
    assert run.recorder.said[0] == ("already cordoned", "n1")
    assert world.is_cordoned("n1")
    assert world.conditions("n1") == FAILED


@in_world()
async def test_ctrl_c_ends_cleanly_and_the_next_run_goes_on(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", timeout=100, reason="new kernel")
    async with world.running(run):
        await world.settle(40)
        assert world.conditions("n1") == STARTED
        assert world.leases() == ["node-n1"]
    first = mark(world, "n1")
    assert world.conditions("n1") == INTERRUPTED
    assert world.is_cordoned("n1")
    assert world.leases() == []
    assert (first["cordoned"], first["spent"], first["reason"]) == (True, 40, "new kernel")
    await world.settle(1000)
    again = await world.drain("n1", timeout=100, uncordons=True)
    begun = world.clock.boottime()
    await again.run()
    assert world.clock.boottime() - begun == pytest.approx(60, abs=2), "the time between does not count"
    assert not world.is_cordoned("n1"), "the cordon of the first run is its own"


@in_world()
async def test_a_run_that_dies_is_followed_when_its_lease_expires(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", timeout=100)
    process = virtual_process(run)
    await world.settle(41)
    process.kill()
    first = mark(world, "n1")
    again = await world.drain("n1", timeout=100)
    begun = world.clock.boottime()
    async with world.running(again):
        await world.settle(25)
        assert again.recorder.said == [], "the Lease may be renewed yet"
        await world.settle(20)
        assert again.recorder.said[0] == ("already cordoned", "n1")
        assert mark(world, "n1")["since"] == first["since"]
        assert mark(world, "n1")["cordoned"]
        await world.until(lambda: again.has_failed and again.course.nodes[0].outcome)
    assert world.clock.boottime() - begun == pytest.approx(60, abs=5), "what the dead run took counts"
    assert re.search(r"global timeout reached: \S+ \(earlier runs of this drain took \d+s\)", again.recorder.why)


@in_world()
async def test_the_leases_of_a_run_that_has_died_are_waited_for_together(world):
    await world.deploy(replicas=3, budget=0)
    nodes = ("n1", "n2", "n3")
    run = await world.drain(*nodes, timeout=100)
    process = virtual_process(run)
    await world.settle(5)
    process.kill()
    again = await world.drain(*nodes, timeout=100)
    async with world.running(again):
        await world.settle(40)
        assert [what for what, _ in again.recorder.said[:3]] == ["already cordoned"] * 3, (
            "else the Lease that was taken first expires before the last one is taken"
        )


def virtual_process(run):
    from lastcall_lab import virtual

    process = virtual.VirtualProcess("drain")
    process.start(run.run(), "drain")
    return process


@in_world()
async def test_two_drains_of_overlapping_nodes(world):
    await world.deploy(replicas=3, budget=0)
    one = await world.drain("n1", "n2", reason="new kernel")
    other = await world.drain("n3", "n2")
    async with world.running(one):
        await world.settle(5)
        with pytest.raises(NodeIsOwned) as refused:
            await other.run()
    assert "node n2: run-1 has it since" in str(refused.value)
    assert "new kernel" in str(refused.value)
    assert not world.is_cordoned("n3")
    assert other.recorder.said == []


@in_world()
async def test_without_the_namespace_a_drain_says_that_nothing_keeps_another_one_away(world):
    await world.bare("a", "n1")
    run = await world.drain("n1")

    async def missing(method, target):
        if target.startswith(f"/api/v1/namespaces/{DRAINS_NAMESPACE}"):
            raise errors.NotFound('namespaces "lastcall-drains" not found', code=404)

    run.transport.trouble = missing
    await run.run()
    assert "nothing keeps two drains of one node apart" in run.recorder.of("warn")[0]
    assert run.recorder.of("warn")[0].endswith("; mend: kubectl create namespace lastcall-drains")
    assert world.on("n1") == []


@in_world()
async def test_without_the_right_to_leases_the_same(world):
    await world.bare("a", "n1")
    run = await world.drain("n1")

    async def refuse(method, target):
        if "/leases" in target:
            raise errors.ApiNotPermitted("leases is forbidden", code=403)

    run.transport.trouble = refuse
    await run.run()
    assert run.recorder.of("warn")[0].endswith("leases is forbidden")
    assert world.on("n1") == []


async def maintain(world, holder):
    """node-maintenance-operator, or a sister, has the node for an hour, and renews its Lease."""
    await world.client.create(NAMESPACES, {"metadata": {"name": MEDIK8S_LEASES}})
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    await world.client.create(LEASES, {"metadata": {"name": "node-n1"}, "spec": spec}, namespace=MEDIK8S_LEASES)

    async def renew():
        for number in itertools.count():
            await world.clock.sleep(2)
            patch = {"spec": {"leaseTransitions": number}}
            await world.client.patch(LEASES, "node-n1", patch, namespace=MEDIK8S_LEASES)

    return asyncio.create_task(renew())


@in_world()
async def test_the_leases_of_medik8s_are_held_too(world):
    await world.client.create(NAMESPACES, {"metadata": {"name": MEDIK8S_LEASES}})
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1", reason="new kernel")
    async with world.running(run):
        await world.until(lambda: run.recorder.of("refused"))
        held = [(one["metadata"]["namespace"], one["spec"]["holderIdentity"]) for one in world.all(LEASES)]
        assert sorted(held) == [(DRAINS_NAMESPACE, "run-1"), (MEDIK8S_LEASES, "run-1")]
    assert world.leases() == []


@in_world()
async def test_a_node_that_a_medik8s_operator_maintains_is_not_drained_unless_owners_are_ignored(world):
    await world.bare("a", "n1")
    renewing = await maintain(world, "node-maintenance")
    try:
        with pytest.raises(NodeIsOwned, match=r"n1: node-maintenance has it, by Lease medik8s-leases/node-n1"):
            await (await world.drain("n1")).run()
        assert world.on("n1") == ["a"]
        assert len(world.leases()) == 1
        await (await world.drain("n1", ignores_others=True)).run()
    finally:
        await cancel_and_wait(renewing)
    assert world.on("n1") == []
    assert [one["spec"]["holderIdentity"] for one in world.all(LEASES)] == ["node-maintenance"]


@in_world()
async def test_a_lost_node_is_left_to_failover(world):
    await world.bare("a", "n1")
    await world.bare("b", "n2")
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    await world.client.patch(NODES, "n1", {"status": status}, subresource="status")
    run = await world.drain("n1", "n2")
    await run.run()
    assert run.has_failed
    assert world.on("n1") == ["a"]
    assert world.on("n2") == []
    assert not world.is_cordoned("n1")
    assert run.recorder.of("failed") == ["n1"]


@in_world()
async def test_a_node_that_is_lost_meanwhile_or_uncordoned_by_another_is_given_up(world):
    await world.deploy(replicas=3, budget=0)
    for change, subresource, why in (
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "status", "it is not ready"),
        ({"spec": {"unschedulable": False}}, "", "somebody else has uncordoned it"),
    ):
        name = "n1" if subresource else "n2"
        run = await world.drain(name)
        async with world.running(run) as task:
            await world.settle(12)
            await world.client.patch(NODES, name, change, subresource=subresource)
            await task
        assert run.has_failed
        assert why in run.recorder.why


@in_world()
async def test_while_it_may_have_lost_its_lease_it_asks_for_nothing(world):
    """Only requests for Leases fail."""
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1")
    away = False

    async def trouble(method, target):
        if away and "/leases" in target:
            raise errors.ApiUnavailable("no answer", code=503)

    run.transport.trouble = trouble
    async with world.running(run):
        await world.settle(12)
        away = True
        await world.settle(30)
        asked = len(run.transport.asked)
        evictions = run.recorder.of("evict")
        await world.settle(60)
        assert run.recorder.of("evict") == evictions
        assert len(run.transport.asked) > asked
        away = False
        await world.settle(20)
        assert len(run.recorder.of("evict")) > len(evictions)


@in_world()
async def test_another_owner_ends_the_run(world):
    await world.deploy(replicas=3, budget=0)
    run = await world.drain("n1")
    async with world.running(run) as task:
        await world.settle(5)
        taken = {"spec": {"holderIdentity": "somebody"}}
        await world.client.patch(LEASES, "node-n1", taken, namespace=DRAINS_NAMESPACE)
        await task
    assert run.has_failed
    assert "somebody has taken node n1 over" in run.recorder.why
    assert world.get(LEASES, "node-n1")["spec"]["holderIdentity"] == "somebody"


@in_world()
async def test_a_cordon_that_fails_ends_the_drain(world):
    await world.bare("a", "n1")
    run = await world.drain("n1")

    async def trouble(method, target):
        if method == "PATCH":
            raise errors.ApiNotPermitted("nodes is forbidden", code=403)

    run.transport.trouble = trouble
    with pytest.raises(errors.ApiNotPermitted):
        await run.run()
    assert world.on("n1") == ["a"]
    assert world.leases() == []
