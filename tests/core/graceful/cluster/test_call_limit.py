"""How many writes to pods are under way at a time, in virtual time."""

import asyncio

import pytest

from lastcall.aio import cancel_and_wait
from lastcall.graceful.cluster.call_limit import FIRST_CALLS, GROW_SECONDS, MOST_CALLS, CallLimit
from lastcall_lab import virtual


class Calls:
    """Calls that take so many seconds each; how many were under way at a time, and when each began."""

    def __init__(self, seconds):
        self.clock = virtual.VirtualClock()
        self.limit = CallLimit(self.clock)
        self.seconds = seconds
        self.running = self.most = 0
        self.order = []

    async def make_call(self, number):
        async with self.limit:
            self.order.append(number)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await self.clock.sleep(self.seconds)
            finally:
                self.running -= 1

    async def make_calls(self, count):
        await asyncio.gather(*map(self.make_call, range(count)))


@pytest.mark.parametrize(
    ("seconds", "count", "most"),
    [
        (0.001, 13, FIRST_CALLS),
        (GROW_SECONDS / 2, 2 * FIRST_CALLS, FIRST_CALLS),
        (4 * GROW_SECONDS, FIRST_CALLS + 1, FIRST_CALLS + 1),
        (3600.0, 50, MOST_CALLS),
    ],
)
def test_calls_that_wait_let_more_in(seconds, count, most):
    async def scene():
        calls = Calls(seconds)
        await calls.make_calls(count)
        assert calls.most == most
        assert calls.order == list(range(count))

    virtual.run(scene())


def test_a_server_that_takes_long_soon_gets_as_many_as_it_may():
    async def scene():
        calls = Calls(3600.0)
        making = asyncio.ensure_future(calls.make_calls(50))
        await calls.clock.sleep((MOST_CALLS - FIRST_CALLS) * GROW_SECONDS + 0.001)
        assert calls.running == MOST_CALLS
        await cancel_and_wait(making)

    virtual.run(scene())


def test_a_call_that_is_given_up_makes_room():
    async def scene():
        calls = Calls(3600.0)
        tasks = [asyncio.ensure_future(calls.make_call(number)) for number in range(50)]
        await calls.clock.sleep(60)
        await cancel_and_wait(*tasks[:45])
        await calls.clock.sleep(60)
        assert calls.running == 5
        await cancel_and_wait(*tasks)
        assert calls.running == 0
        calls.seconds = 0.0
        await calls.make_calls(MOST_CALLS)

    virtual.run(scene())
