"""Waiting for several things at once."""

import asyncio

import pytest

from lastcall.aio import Group, Signal


def test_a_group_keeps_no_task_that_went_well():
    async def run():
        group = Group()
        for _ in range(1000):
            await group.start(asyncio.sleep(0), "short")
        assert len(group._tasks) <= 65
        failing = group.start(fail(), "failing")
        await asyncio.gather(failing, return_exceptions=True)
        for _ in range(1000):
            await group.start(asyncio.sleep(0), "short")
        with pytest.raises(ValueError, match="on purpose"):
            await group.join()

    async def fail():
        raise ValueError("on purpose")

    asyncio.run(run())


def test_a_signal_wakes_all_who_wait_in_their_order():
    async def run():
        signal, woken = Signal(), []

        async def wait(name):
            await signal.next()
            woken.append(name)

        tasks = [asyncio.create_task(wait(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        signal.set()
        signal.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert woken == ["a", "c"]

    asyncio.run(run())


def test_a_signal_keeps_nobody_who_has_given_up():
    async def run():
        signal = Signal()
        for _ in range(1000):
            signal.next().cancel()
        assert len(signal._waiting) <= 65

    asyncio.run(run())
