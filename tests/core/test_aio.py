"""Waiting for several things at once."""

import asyncio
import contextlib

import pytest

from lastcall.aio import ChangeCounter, OrderedTaskGroup, Signal, cancel_and_wait, timeout, wait_all, wait_first


def test_a_group_keeps_no_task_that_went_well():
    async def run():
        group = OrderedTaskGroup()
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
        canceller = asyncio.create_task(cancel_and_wait(task))
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
        await wait_all(*tasks)
        turns = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        await wait_all(*tasks)
        await cancel_and_wait(*tasks)
        assert (turns, [task.cancelled() for task in tasks]) == ([], [False, False, False])

    asyncio.run(run())


def test_what_is_waited_for_is_left_as_it_is():
    async def run():
        task = asyncio.create_task(asyncio.sleep(0.05))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await wait_all(task)
        await task

    asyncio.run(run())


def test_the_first_of_one_needs_no_task_and_fails_and_is_cancelled_as_that_one():
    async def run():
        async def who():
            return asyncio.current_task()

        async def tell():
            told.append(await who())

        told = []
        assert (await wait_first(tell()), told) == (0, [asyncio.current_task()])
        with pytest.raises(ValueError, match="on purpose"):
            await wait_first(fail())
        future = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await wait_first(future)
        assert future.cancelled()

    async def fail():
        raise ValueError("on purpose")

    asyncio.run(run())


# -- time limits: the same on every supported Python -------------------------------------------------------------------


def test_a_time_limit_in_the_clean_up_of_a_cancelled_task_is_a_timeout():
    """CPython 3.11.2 raises CancelledError here: its Timeout does not subtract the requests of before."""

    async def run():
        async def working():
            try:
                await asyncio.sleep(1000)
            finally:
                try:
                    async with timeout(0.01):
                        await asyncio.sleep(1000)
                except TimeoutError as error:
                    log.append((type(error.__cause__), asyncio.current_task().cancelling()))

        log = []
        task = asyncio.create_task(working())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == [(asyncio.CancelledError, 1)]

    asyncio.run(run())


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("during", [0, 1, 2])
def test_only_a_request_to_cancel_during_a_time_limit_is_no_timeout(before, during):
    async def run():
        async def working():
            for _ in range(before):
                with contextlib.suppress(asyncio.CancelledError):
                    asyncio.current_task().cancel()
                    await asyncio.sleep(0)
            async with timeout(0.01):
                try:
                    await asyncio.sleep(1000)
                finally:  # the time has run out
                    for _ in range(during):
                        asyncio.current_task().cancel()

        task = asyncio.create_task(working())
        with pytest.raises(asyncio.CancelledError if during else TimeoutError):
            await task
        assert task.cancelling() == before + during

    asyncio.run(run())


def test_the_outer_of_two_time_limits_ends_both():
    async def run():
        outer, inner = timeout(0.01), timeout(1000)

        async def both():
            async with outer, inner:
                await asyncio.sleep(1000)

        with pytest.raises(TimeoutError):
            await both()
        assert (outer.expired(), inner.expired(), asyncio.current_task().cancelling()) == (True, False, 0)

    asyncio.run(run())


def test_what_the_body_raises_when_its_time_has_run_out_is_raised():
    async def run():
        limit = timeout(0.01)

        async def failing():
            async with limit:
                try:
                    await asyncio.sleep(1000)
                finally:
                    raise ValueError("on purpose")

        with pytest.raises(ValueError, match="on purpose"):
            await failing()
        assert limit.expired()

    asyncio.run(run())


def test_a_time_limit_can_be_moved_and_taken_away():
    async def run():
        async def moved():
            async with timeout(None) as limit:
                limit.reschedule(asyncio.get_running_loop().time())
                await asyncio.sleep(1000)

        async with timeout(0.01) as limit:
            limit.reschedule(None)
            await asyncio.sleep(0.05)
        with pytest.raises(RuntimeError):
            limit.reschedule(None)
        with pytest.raises(TimeoutError):
            await moved()

    asyncio.run(run())


async def test_who_waits_for_another_count_than_he_has_seen_misses_no_change():
    counter = ChangeCounter(-1)
    counter.add()
    assert await counter.wait_for_change(-1) == 0
    waiting = [asyncio.create_task(counter.wait_for_change(0)) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    counter.add()
    counter.add()
    assert await asyncio.gather(*waiting) == [2, 2]
    counter.restart()
    assert counter.count == -1
