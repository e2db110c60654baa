"""What ``ports_fences.Fence`` promises, asked of every fence there is."""

import asyncio
import os
from pathlib import Path
from uuid import uuid4

import pytest
from support.fencing.fences import LONG, a_bench, shared_bench

from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.failover.limits.fence_targets import TargetMatch, judge_target
from lastcall.model.fence_node import FenceNode
from lastcall.model.power import PowerState

__all__ = ["a_bench", "shared_bench"]

pytestmark = pytest.mark.timeout(270)
BOUND = 60.0
"""Seconds in which something is over that was given one second; machines are loaded."""


def children():
    """Of this process, those that have ended included."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


async def becomes(fence, power):
    async with asyncio.timeout(LONG):
        while (answer := await fence.read_power()).power is not power:
            await asyncio.sleep(0.1)
    assert not answer.why
    return answer


async def test_its_name_is_that_in_the_policy(bench):
    assert (await bench.fence()).name == "bmc"


async def test_off_and_on_each_also_a_second_time(bench):
    fence = await bench.fence()
    await becomes(fence, PowerState.ON)
    for _ in range(2):
        await fence.switch_off(LONG)
        await becomes(fence, PowerState.OFF)
        assert not bench.on
    for _ in range(2):
        await fence.switch_on(LONG)
        await becomes(fence, PowerState.ON)
        assert bench.on


async def test_what_is_on_its_way_down_is_on(bench):
    if not bench.lag:
        pytest.skip("its machine takes no time")
    bench.slow(delay=3600)
    fence = await bench.fence()
    try:
        await fence.switch_off(4)
    except TimedOut:
        pass  # some wait until the power is off
    assert (await fence.read_power()).power is PowerState.ON


async def test_it_says_its_machine_or_nothing(bench):
    target = await (await bench.fence()).read_target()
    known = bench.node.system_uuid or bench.node.provider_id
    assert judge_target(target, bench.node).match is (TargetMatch.SAME if known else TargetMatch.UNKNOWN)
    other = FenceNode(name="other", system_uuid=str(uuid4()), provider_id="aws:///x/i-0")
    assert judge_target(target, other).match is (TargetMatch.OTHER if known else TargetMatch.UNKNOWN)


async def test_a_dead_device_is_unknown_and_why(bench):
    fence = await bench.fence(patience=1)
    began = asyncio.get_running_loop().time()
    with bench.dead():
        answer = await fence.read_power()
    assert answer.power is PowerState.UNKNOWN
    assert answer.why
    assert asyncio.get_running_loop().time() - began < BOUND


@pytest.mark.parametrize("verb", ["switch_off", "switch_on"])
async def test_an_order_to_a_dead_device_is_over_in_time_and_changes_nothing(bench, verb):
    fence = await bench.fence()
    before, began = children(), asyncio.get_running_loop().time()
    with bench.dead():
        with pytest.raises((TimedOut, Unavailable)):
            await getattr(fence, verb)(1)
        assert asyncio.get_running_loop().time() - began < BOUND
        assert children() == before
    await becomes(fence, PowerState.ON)
    assert bench.on


async def test_nothing_runs_on_when_nobody_waits_any_more(bench):
    fence = await bench.fence()
    before = children()
    with bench.dead():
        for seconds in (0, 0.1, 0.5):
            order = asyncio.create_task(fence.switch_off(LONG))
            await asyncio.sleep(seconds)
            order.cancel()
            with pytest.raises(asyncio.CancelledError):
                await order
            assert children() == before
    await becomes(fence, PowerState.ON)


async def test_without_time_nothing_is_asked(bench):
    fence = await bench.fence()
    with pytest.raises(LastcallError):
        await fence.switch_off(0)
    await becomes(fence, PowerState.ON)


async def test_a_wrong_password_is_unknown_and_in_no_message(bench):
    if not bench.password:
        pytest.skip("it asks for no password")
    wrong = "not 'the right' one"
    fence = await bench.fence(password=wrong)
    answer = await fence.read_power()
    assert answer.power is PowerState.UNKNOWN
    with pytest.raises(LastcallError) as failed:
        await fence.switch_off(LONG)
    for message in (answer.why, str(failed.value), repr(failed.value)):
        assert message
        assert wrong not in message
    assert bench.on
