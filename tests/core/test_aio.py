"""Waiting for several things at once."""

import asyncio

import pytest

from lastcall.aio import Group, Signal, all_done, cancel, first


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


def test_who_is_cancelled_while_he_cancels_waits_for_the_end_all_the_same():
    async def run():
        log = []

        async def stubborn():
            try:
                await asyncio.sleep(1000)
            finally:
                try:
                    await asyncio.sleep(1000)
                finally:
                    log.append("over")

        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        canceller = asyncio.create_task(cancel(task))
        await asyncio.sleep(0.01)
        assert not log
        canceller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await canceller
        assert log == ["over"]

    asyncio.run(run())


def test_all_that_have_ended_are_not_waited_for():
    async def run():
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
        await all_done(*tasks)
        turns = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        await all_done(*tasks)
        await cancel(*tasks)
        assert (turns, [task.cancelled() for task in tasks]) == ([], [False, False, False])

    asyncio.run(run())


def test_what_is_waited_for_is_left_as_it_is():
    async def run():
        task = asyncio.create_task(asyncio.sleep(0.05))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await all_done(task)
        await task

    asyncio.run(run())


def test_the_first_of_one_needs_no_task_and_fails_and_is_cancelled_as_that_one():
    async def run():
        async def who():
            return asyncio.current_task()

        async def tell():
            told.append(await who())

        told = []
        assert (await first(tell()), told) == (0, [asyncio.current_task()])
        with pytest.raises(ValueError, match="on purpose"):
            await first(fail())
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await first(future)
        assert future.cancelled()

    async def fail():
        raise ValueError("on purpose")

    asyncio.run(run())
