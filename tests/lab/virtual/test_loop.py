"""The loop whose clock jumps: time, deadlocks, how it ends, and what it does not have."""

import asyncio
import weakref

import pytest
from support.virtual_time.worker import in_virtual_time

from lastcall_lab import virtual


@in_virtual_time
async def test_time_jumps_and_equal_times_are_in_order():
    log = []

    async def sleeper(name, seconds):
        await asyncio.sleep(seconds)
        log.append(name)

    await asyncio.gather(sleeper("c", 7200), sleeper("a", 3600), sleeper("b", 3600))
    assert log == ["a", "b", "c"]
    assert asyncio.get_running_loop().time() == 7200


@in_virtual_time
async def test_what_is_cancelled_does_not_run_and_holds_nothing():
    class Held:
        """Something that a callback holds."""

        def call(self):
            log.append("called")

    log, loop, held = [], asyncio.get_running_loop(), Held()
    there = weakref.ref(held)
    step, timer = loop.call_soon(held.call), loop.call_later(5, held.call)
    del held
    assert there()
    for handle in (step, timer):
        handle.cancel()
        assert handle.cancelled()
    assert not there()
    await asyncio.sleep(10)
    assert not log


@in_virtual_time
async def test_debug_mode_knows_where_a_step_was_set():
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    with pytest.raises(TypeError, match="callable object was expected"):
        loop.call_soon("no function")
    step, timer = loop.call_soon(print), loop.call_later(5, print)
    assert f"created at {__file__}" in repr(step)
    assert "created at " in repr(timer)
    step.cancel()
    timer.cancel()
    loop.set_debug(False)


def test_a_deadlock_is_an_error():
    async def main():
        await asyncio.sleep(5)
        await asyncio.Event().wait()

    with pytest.raises(virtual.Deadlock, match=r"^at 5\.000 s every task waits and no timer is set$"):
        virtual.run(main())


def test_time_that_does_not_go_on_is_an_error(monkeypatch):
    monkeypatch.setattr("lastcall_lab.virtual.loop._MOST_TURNS", 1000)

    async def busy():
        while True:
            await asyncio.sleep(0)

    async def main():
        for _ in range(900):
            await asyncio.sleep(0)
        await asyncio.sleep(4)
        asyncio.create_task(busy(), name="busy one")  # noqa: RUF006  (the loop ends it)
        await asyncio.sleep(1)

    with pytest.raises(virtual.Standstill, match=r"^time does not go on at 4\.000 s; next: busy one$"):
        virtual.run(main())


def test_an_exception_that_nobody_handles_ends_the_run():
    async def main():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError):
        virtual.run(main())


def test_what_is_left_running_is_cancelled_in_order_of_start():
    log = []

    async def leave(name):
        try:
            await asyncio.sleep(1000)
        finally:
            log.append(name)

    async def main():
        main.tasks = [asyncio.create_task(leave(name), name=name) for name in "zyxa"]
        await asyncio.sleep(1)

    virtual.run(main())
    assert log == ["z", "y", "x", "a"]


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: asyncio.to_thread(print),
        lambda: asyncio.open_connection("127.0.0.1", 1),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.start_server(print, "127.0.0.1", 0),
    ],
    ids=["thread", "connection", "process", "server"],
)
def test_there_are_no_threads_and_sockets(attempt):
    async def main():
        await attempt()

    with pytest.raises(RuntimeError, match="there are no threads, sockets"):
        virtual.run(main())


@in_virtual_time
async def test_an_async_generator_that_is_left_cleans_up():
    log = []

    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)
            log.append("clean")

    async for _ in numbers():
        break
    await asyncio.sleep(2)
    assert log == ["clean"]
