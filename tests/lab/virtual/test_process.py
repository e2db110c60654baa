"""Processes that die in virtual time: nothing of them is run after that, and nobody hears of them."""

import asyncio
import contextlib
import gc
import logging
import sys
import warnings

import pytest
from support.virtual_time.worker import in_virtual_time, worker

from lastcall_lab import virtual
from lastcall_lab.virtual import VirtualProcess, current_process


@in_virtual_time
async def test_nothing_of_a_dead_process_is_run():
    log = []

    async def main():
        child = asyncio.create_task(worker(log, "child"), name="child")
        child.add_done_callback(lambda _: log.append("callback"))
        asyncio.get_running_loop().call_later(2.5, log.append, "timer")
        shared.add_done_callback(lambda _: log.append("callback on a future of others"))
        await worker(log, "parent")

    shared = asyncio.get_running_loop().create_future()
    process = VirtualProcess("p")
    process.start(main(), "main")
    await asyncio.sleep(1.5)
    before = list(log)
    assert before == ["parent 0", "child 0", "parent 1", "child 1"]
    process.kill()
    process.kill()
    shared.set_result(None)
    await asyncio.sleep(100)
    gc.collect()
    assert not process.alive
    assert log == before


@in_virtual_time
async def test_it_goes_without_a_word():
    """No warning, also of what it has not awaited yet, and of generators that it had open."""
    shown = []

    async def numbers():
        try:
            yield 1
        finally:
            shown.append("generator")

    async def main():
        never = asyncio.sleep(1)
        open_one = numbers()
        await anext(open_one)
        try:
            await asyncio.Event().wait()
        finally:
            await never

    process = VirtualProcess("p")
    process.start(main(), "main")
    await asyncio.sleep(1)
    process.start(main(), "not begun")
    process.kill()
    del process
    gc.collect()
    assert shown == []
    return lambda: shown == [] or pytest.fail(str(shown))


@in_virtual_time
async def test_a_dead_process_is_no_reason_to_wait():
    """Its timers do not hold off the deadlock, nor move the time."""
    process = VirtualProcess("p")
    process.start(asyncio.sleep(1000), "sleep")
    await asyncio.sleep(1)
    process.kill()
    asyncio.get_running_loop().call_later(5, lambda: None)
    await asyncio.sleep(3000)
    assert asyncio.get_running_loop().time() == 3001


@in_virtual_time
async def test_who_waits_for_a_dead_task_waits_for_ever_but_can_be_cancelled():
    log = []
    process = VirtualProcess("p")
    task, other = process.start(worker(log), "worker"), process.start(worker([]), "other")
    await asyncio.sleep(1.5)
    process.kill()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(50):
            await task
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(50):
            await asyncio.gather(other)
    assert log == ["worker 0", "worker 1"]


@in_virtual_time
async def test_a_fuse_ends_it_at_every_await():
    """With n steps it has done what n awaits allow, and never less than with fewer."""
    done, deaths = [], []
    for fuse in range(6):
        log = []

        async def count(log=log):
            for number in range(3):
                log.append(number)
                await asyncio.sleep(0)

        process = VirtualProcess("p", fuse=fuse, on_death=lambda fuse=fuse: deaths.append((fuse, current_process())))
        process.start(count(), "count")
        await asyncio.sleep(1)
        done.append((len(log), process.alive, process.steps))
        process.kill()
    assert done == [(0, False, 0), (1, False, 1), (2, False, 2), (3, False, 3), (3, True, 4), (3, True, 4)]
    assert deaths == [(fuse, None) for fuse in range(6)]


@in_virtual_time
async def test_an_exception_that_the_dead_were_to_look_at_is_nobodys():
    """Of two tasks one has failed, and the other fails later; their process dies before anybody is told of that."""

    async def fail(seconds):
        await asyncio.sleep(seconds)
        raise ValueError

    async def main():
        try:
            await asyncio.gather(fail(0.1), fail(0.2))
        except ValueError:
            await asyncio.sleep(5)

    for fuse in range(20):
        process = VirtualProcess("p", fuse=fuse)
        process.start(main(), "main")
        await asyncio.sleep(1)
        process.kill()
        del process
        gc.collect(1)  # of what is young: to look at all that other tests have left takes half a second
        await asyncio.sleep(0)


@in_virtual_time
async def test_who_kills_himself_ends_at_the_next_await():
    log = []

    async def main():
        current_process().kill()
        log.append("still this step")
        later = asyncio.create_task(worker(log), name="too late")
        await asyncio.sleep(0)
        log.append(later)

    process = VirtualProcess("p")
    process.start(main(), "main")
    await asyncio.sleep(1)
    assert log == ["still this step"]
    with pytest.raises(RuntimeError, match="p is dead: it cannot start"):
        process.start(worker(log), "worker")
    with pytest.raises(RuntimeError, match="p is dead: it cannot call"):
        process.call(print)


@in_virtual_time
async def test_what_a_process_calls_belongs_to_it():
    log = []
    process = VirtualProcess("p")
    task = process.call(lambda: asyncio.create_task(worker(log), name="w"))
    seen = process.call(current_process)
    await asyncio.sleep(0.5)
    process.kill()
    await asyncio.sleep(5)
    assert (seen, current_process(), log, task.done()) == (process, None, ["worker 0"], False)


@in_virtual_time
async def test_on_death_it_is_restarted_as_who_made_it():
    log = []

    def boot():
        process = VirtualProcess("p", fuse=3, on_death=boot)
        log.append((asyncio.get_running_loop().time(), current_process().name))
        process.start(worker([]), "w")

    machine = VirtualProcess("machine")
    machine.call(boot)
    await asyncio.sleep(5)
    assert log == [(0, "machine"), (2, "machine"), (4, "machine")]


def test_no_warning_is_ever_shown():
    """Also not by what is left for the garbage collector after the run."""

    async def main():
        processes = [VirtualProcess(f"p{number}") for number in range(3)]
        for process in processes:
            process.start(worker([]), "w")
            process.start(asyncio.sleep(5), "s")
        await asyncio.sleep(1)
        for process in processes:
            process.kill()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        virtual.run(main())
        gc.collect()
    assert caught == []


def test_at_the_end_processes_stop_where_they_stand():
    """Nobody hears of it, and nothing of them runs on; who belongs to none is cancelled, and ends in order."""
    log = []

    async def main():
        process = VirtualProcess("p", on_death=lambda: log.append("died"))
        task = process.start(worker(log), "worker")

        async def wait_for_it(name):
            try:
                await asyncio.sleep(1000)
            finally:
                log.append(f"{name} ends")
                with contextlib.suppress(asyncio.CancelledError):
                    await task

        main.tasks = [asyncio.create_task(wait_for_it(name), name=name) for name in "ba"]
        await asyncio.sleep(1.5)

    virtual.run(main())
    assert log == ["worker 0", "worker 1", "b ends", "a ends", "worker cleans up"]


def test_the_end_comes_although_processes_are_started_again():
    """Who begins in the end stops too, and who is killed then is not waited for."""
    log = []

    async def main():
        def boot():
            process = VirtualProcess("p", fuse=3, on_death=boot)
            process.start(worker(log), "w")

        async def kill_at_the_end():
            try:
                await asyncio.sleep(1000)
            finally:
                boot()
                victim.kill()

        asyncio.create_task(kill_at_the_end(), name="killer")  # noqa: RUF006  (the loop ends it)
        victim = VirtualProcess("victim")
        victim.start(worker([]), "victim")
        boot()
        await asyncio.sleep(5)

    virtual.run(main())
    assert log[-1] == "worker cleans up"
    assert "worker is cancelled" not in log


def test_what_the_dead_have_left_complains_nowhere_when_it_is_closed(caplog, recwarn):
    """It cannot start tasks in its ``finally`` any more, and a program that logs that would be heard after its death."""

    async def program():
        try:
            try:
                await asyncio.sleep(100)
            finally:
                asyncio.create_task(worker([]), name="too late")  # noqa: RUF006  (it cannot be)
        except RuntimeError:
            logging.getLogger("program").exception("broke off")

    async def main():
        process = VirtualProcess("p")
        process.start(program(), "main")
        await asyncio.sleep(1)
        process.kill()

    virtual.run(main())
    gc.collect()
    assert (caplog.records, list(recwarn)) == ([], [])
    logging.getLogger("program").error("heard")
    assert [record.message for record in caplog.records] == ["heard"]


def test_the_dead_are_ended_from_within_also_in_the_middle_of_a_list(monkeypatch):
    """Pages of a list are a generator, and whoever tells changes is one around it; a cycle keeps that beyond the run."""
    heard, shown, kept = [], [], {}

    async def pages():
        try:
            await asyncio.sleep(100)
            yield "page"
        finally:
            heard.append("pages")
            await asyncio.sleep(1)

    async def read():
        async with contextlib.aclosing(pages()) as reading:
            async for _ in reading:
                pass

    async def changes(owner):
        try:
            await read()
            yield "change"
        finally:
            heard.append("changes")

    async def program():
        cycle = {}
        kept["cycle"] = cycle["changes"] = changes(cycle)
        async for _ in cycle["changes"]:
            pass

    async def main():
        process = VirtualProcess("p")
        process.start(program(), "main")
        await asyncio.sleep(1)
        process.kill()

    monkeypatch.setattr(sys, "unraisablehook", lambda told: shown.append(told.exc_value))
    virtual.run(main())
    kept.clear()
    gc.collect()
    assert (heard, shown) == (["pages", "changes"], [])


# -- a process that is stopped -----------------------------------------------------------------------------------------


@in_virtual_time
async def test_what_is_stopped_does_nothing_and_goes_on_in_order():
    log = []
    process = VirtualProcess("p")
    process.start(worker(log, "one"), "one")
    await asyncio.sleep(1.5)
    before = list(log)
    process.pause()
    process.pause()
    await asyncio.sleep(100)
    assert log == before
    process.resume()
    process.resume()
    await asyncio.sleep(0.1)
    assert log[len(before) :] == ["one 101.5"], "the timer that has passed comes once"
    assert process.alive


@in_virtual_time
async def test_what_is_stopped_can_be_killed():
    log = []
    process = VirtualProcess("p")
    process.start(worker(log, "one"), "one")
    await asyncio.sleep(1.5)
    before = list(log)
    process.pause()
    await asyncio.sleep(10)
    process.kill()
    process.resume()
    await asyncio.sleep(10)
    assert (log, process.alive) == (before, False)
