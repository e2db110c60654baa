"""A lost node that is not fenced says why: by an event, by a metric, and in what explains it."""

from dataclasses import replace
from itertools import count

import pytest
from support.failover.cases import BMC, NOW, SAME
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import EVENTS
from lastcall.errors import Unavailable
from lastcall.failover.decisions.fencer_choice import choose_action
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.failover.reporting.event_series import TEXTS

METRIC = "lastcall_failover_not_fenced_nodes"


def events(world, reason="NotFenced"):
    return [one["message"] for one in world.cluster.all(EVENTS) if one["reason"] == reason]


@pytest.mark.parametrize("how", ["deaf", "no library"])
def test_a_fencer_that_always_fails_is_told(how):
    """Its BMC answers nothing, or what speaks to it cannot be made: the last error, and when it is tried again."""

    @failing_over
    async def run(world):
        candidate, gone = world.start(), world.place()
        world.fences[gone].away = True
        if how == "no library":

            async def of(node, policy):
                raise Unavailable("No module named 'sushy'")

            world.fences.make_fences = of
        world.nodes.pull(gone)
        await world.until(lambda: events(world), 60)
        await world.cluster.settle(180)
        said = events(world)
        error = "no answer" if how == "deaf" else "bmc cannot be used: No module named 'sushy'"
        assert all(one.startswith(f"node {gone} is not fenced: ") and error in one for one in said)
        assert len(said) == (2 if how == "deaf" else 1), "it is told again if it is another error, not at each attempt"
        if how == "deaf":
            assert any("(bmc: no answer, attempts: 2); tried again every 30s" in one for one in said)
        assert candidate.counted[METRIC, "Fencers"] == 1
        assert not events(world, "FailoverBegun")

    run()


@pytest.mark.parametrize("how", ["two fencers", "another text each time"])
def test_fencers_that_fail_for_hours_do_not_flood_the_events(how):
    """Several fail in turns, or the error names each request."""
    fencers = [{"name": name, "attempts": 2, "timeoutSeconds": 10, "manual": {}} for name in ("bmc", "pdu")]

    @failing_over(policy={"fencers": fencers})
    async def run(world):
        gone, numbers = world.place(), count()
        world.fences[gone].away = True
        if how == "another text each time":

            async def target():
                raise Unavailable("no answer to request " + chr(ord("a") + next(numbers) % 26))

            world.fences[gone].read_target = target
        world.start()
        world.nodes.pull(gone)
        await world.until(lambda: events(world), 60)
        await world.cluster.settle(1200)
        texts = 3 if how == "two fencers" else TEXTS + 1
        assert texts <= len(events(world)) <= 3 * texts, "each at once, and after 5 and 15 minutes"
        await world.nodes.boot(gone)
        await world.cluster.settle(60)
        before = len(events(world))
        world.nodes.pull(gone)
        await world.until(lambda: len(events(world)) > before, 60)

    run()


@failing_over(settle=5)
async def test_a_bmc_that_refuses_each_order_for_an_hour_does_not_flood_the_events(world):
    """It is told twice, has half a minute's pause, and is told again."""
    gone = world.place()

    async def off(within):
        raise Unavailable("no right to do that")

    world.fences[gone].switch_off = off
    world.start()
    world.nodes.silent.add(gone)
    await world.until(lambda: world.verbs("off"), 60)
    await world.cluster.settle(3600)
    assert len(world.verbs("off")) > 100
    for reason in ("FenceOff", "FenceFailed", "NotFenced"):
        told = [one for one in world.cluster.all(EVENTS) if one["reason"] == reason]
        assert len(told) <= 8, "each text at once, and after 5, 15 and 35 minutes"
        last = max(told, key=lambda one: one["count"])
        assert last["count"] > 50
        assert last["firstTimestamp"] < last["lastTimestamp"]


@failing_over(policy={"limits": {"minHealthy": 5, "settle": "5s"}})
async def test_a_limit_that_stands_against_it_is_told(world):
    candidate, gone = world.start(), world.place()
    world.nodes.pull(gone)
    await world.until(lambda: events(world), 60)
    assert events(world) == [f"node {gone} is not fenced: 4 of 5 nodes are healthy without it, and 5 have to be"]
    assert candidate.counted[METRIC, "MinHealthy"] == 1
    await world.cluster.patch(POLICIES, "p", {"spec": {"limits": {"minHealthy": 1}}}, namespace="")
    await world.until(lambda: world.place() not in (None, gone), 90)
    assert candidate.counted[METRIC, "MinHealthy"] == 0


def test_an_order_to_a_device_that_names_no_machine_does_not_read_like_an_error():
    silent = replace(
        BMC, judgement=TargetJudgement(TargetMatch.UNKNOWN, "the fence's target names neither"), unchecked=True
    )
    step = choose_action([silent], boot_id="a", apart=1.0, now=NOW)
    assert step.why == (
        "bmc is told to switch off, attempt 1 of 2: the policy says which machine is behind it, and has it not checked"
        " (targetCheck: Disabled)"
    )
    checked = choose_action([replace(BMC, judgement=SAME)], boot_id="a", apart=1.0, now=NOW)
    assert checked.why == "bmc is told to switch off, attempt 1 of 2: it is the same machine"
