"""The loop whose clock jumps, and processes that die in it."""

import asyncio
import contextlib
import gc
import logging
import warnings
from random import Random

import pytest
from support.lab_pods import pod

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, resource
from lastcall.errors import Unavailable
from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.lab.virtual import Process, current, stream_within, within


def in_virtual_time(test):
    """Runs an async test so; what it returns is called when the loop is closed."""

    def run():
        after = virtual.run(test())
        gc.collect()
        if after:
            after()

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def worker(log, name="worker", pause=1.0):
    try:
        while True:
            log.append(f"{name} {asyncio.get_running_loop().time():g}")
            await asyncio.sleep(pause)
    except asyncio.CancelledError:
        log.append(f"{name} is cancelled")
        raise
    finally:
        log.append(f"{name} cleans up")


# -- time --------------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_time_jumps_and_equal_times_are_in_order():
    log = []

    async def sleeper(name, seconds):
        await asyncio.sleep(seconds)
        log.append(name)

    await asyncio.gather(sleeper("c", 7200), sleeper("a", 3600), sleeper("b", 3600))
    assert log == ["a", "b", "c"]
    assert asyncio.get_running_loop().time() == 7200


def test_a_deadlock_is_an_error():
    async def main():
        await asyncio.sleep(5)
        await asyncio.Event().wait()

    with pytest.raises(virtual.Deadlock, match=r"^at 5\.000 s every task waits and no timer is set$"):
        virtual.run(main())


def test_time_that_does_not_go_on_is_an_error(monkeypatch):
    monkeypatch.setattr("lastcall.lab.virtual.loop._MOST_TURNS", 1000)

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


# -- processes ---------------------------------------------------------------------------------------------------------


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
    process = Process("p")
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

    process = Process("p")
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
    process = Process("p")
    process.start(asyncio.sleep(1000), "sleep")
    await asyncio.sleep(1)
    process.kill()
    asyncio.get_running_loop().call_later(5, lambda: None)
    await asyncio.sleep(3000)
    assert asyncio.get_running_loop().time() == 3001


@in_virtual_time
async def test_who_waits_for_a_dead_task_waits_for_ever_but_can_be_cancelled():
    log = []
    process = Process("p")
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

        process = Process("p", fuse=fuse, on_death=lambda fuse=fuse: deaths.append((fuse, current())))
        process.start(count(), "count")
        await asyncio.sleep(1)
        done.append((len(log), process.alive, process.steps))
        process.kill()
    assert done == [(0, False, 0), (1, False, 1), (2, False, 2), (3, False, 3), (3, True, 4), (3, True, 4)]
    assert deaths == [(fuse, None) for fuse in range(6)]


@in_virtual_time
async def test_who_kills_himself_ends_at_the_next_await():
    log = []

    async def main():
        current().kill()
        log.append("still this step")
        later = asyncio.create_task(worker(log), name="too late")
        await asyncio.sleep(0)
        log.append(later)

    process = Process("p")
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
    process = Process("p")
    task = process.call(lambda: asyncio.create_task(worker(log), name="w"))
    seen = process.call(current)
    await asyncio.sleep(0.5)
    process.kill()
    await asyncio.sleep(5)
    assert (seen, current(), log, task.done()) == (process, None, ["worker 0"], False)


@in_virtual_time
async def test_on_death_it_is_restarted_as_who_made_it():
    log = []

    def boot():
        process = Process("p", fuse=3, on_death=boot)
        log.append((asyncio.get_running_loop().time(), current().name))
        process.start(worker([]), "w")

    machine = Process("machine")
    machine.call(boot)
    await asyncio.sleep(5)
    assert log == [(0, "machine"), (2, "machine"), (4, "machine")]


# -- between processes -------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_call_runs_in_the_other_process():
    server, client = Process("server"), Process("client")

    async def whose(seconds):
        await asyncio.sleep(seconds)
        return current()

    async def fail():
        raise LookupError("no")

    async def main():
        assert await within(server, whose(1)) is server
        assert await within(client, whose(1)) is client
        with pytest.raises(LookupError, match="no"):
            await within(server, fail())

    await client.start(main(), "main")


@in_virtual_time
async def test_the_work_outlives_the_caller():
    log = []
    server, client = Process("server"), Process("client")

    async def work():
        await asyncio.sleep(2)
        log.append("written")

    async def main():
        try:
            await within(server, work())
        finally:
            log.append("never")

    client.start(main(), "main")
    await asyncio.sleep(1)
    client.kill()
    await asyncio.sleep(5)
    assert log == ["written"]


@in_virtual_time
async def test_the_caller_hears_of_the_death_of_the_other_process():
    log = []
    server = Process("server")
    asyncio.get_running_loop().call_later(3, server.kill)
    with pytest.raises(Unavailable, match="server has died"):
        await within(server, worker(log))
    assert asyncio.get_running_loop().time() == 3
    with pytest.raises(Unavailable, match="server is dead"):
        await within(server, worker(log))
    assert log == ["worker 0", "worker 1", "worker 2"]


@in_virtual_time
async def test_a_cancelled_call_is_cancelled_there():
    log = []
    server = Process("server")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await within(server, worker(log))
    await asyncio.sleep(0)
    assert log == ["worker 0", "worker 1", "worker is cancelled", "worker cleans up"]


@in_virtual_time
async def test_a_call_that_somebody_else_cancels_is_no_cancellation_of_the_caller():
    async def give_up():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(Unavailable, match="server has given up"):
        await within(Process("server"), give_up())


async def numbers(log, pause=1.0, end=1_000_000):
    try:
        for number in range(end):
            log.append(current().name)
            yield number
            await asyncio.sleep(pause)
    finally:
        log.append("closed")


@in_virtual_time
async def test_a_stream_is_made_by_the_other_process():
    log = []
    stream = stream_within(Process("server"), numbers(log, end=3))
    assert [number async for number in stream] == [0, 1, 2]
    assert log == ["server", "server", "server", "closed"]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()
    await stream.aclose()


@in_virtual_time
async def test_a_stream_ends_with_its_process():
    log, got = [], []
    server = Process("server")
    asyncio.get_running_loop().call_later(2.5, server.kill)

    async def read():
        async for number in stream_within(server, numbers(log)):
            got.append(number)  # noqa: PERF401  (what came before the error counts)

    with pytest.raises(Unavailable, match="server has died"):
        await read()
    assert got == [0, 1, 2]
    assert "closed" not in log
    with pytest.raises(Unavailable, match="server is dead"):
        await anext(stream_within(server, numbers(log)))


@in_virtual_time
async def test_a_stream_is_closed_when_its_reader_dies_or_goes():
    log = []
    server, client = Process("server"), Process("client")

    async def read():
        async for _ in stream_within(server, numbers(log)):
            pass

    client.start(read(), "read")
    await asyncio.sleep(1.5)
    client.kill()
    await asyncio.sleep(0)
    assert log == ["server", "server", "closed"]

    stream = stream_within(server, numbers(log))
    assert await anext(stream) == 0
    await stream.aclose()
    await asyncio.sleep(0)
    assert log[3:] == ["server", "closed"]


@in_virtual_time
async def test_a_stream_raises_what_its_source_raises_and_loses_nothing_by_a_timeout():
    async def source():
        yield 1
        await asyncio.sleep(10)
        yield 2
        raise LookupError("broken")

    stream = stream_within(Process("server"), source())
    assert await anext(stream) == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(9.9):
            await anext(stream)
    assert await anext(stream) == 2
    with pytest.raises(LookupError, match="broken"):
        await anext(stream)


@in_virtual_time
async def test_a_stream_waits_for_its_reader():
    log = []
    stream = stream_within(Process("server"), numbers(log, pause=0))
    await asyncio.sleep(10)
    made = len(log)
    assert made < 100
    assert [await anext(stream) for _ in range(made + 10)] == list(range(made + 10))
    with contextlib.suppress(StopAsyncIteration):
        await stream.aclose()


def test_no_warning_is_ever_shown():
    """Also not by what is left for the garbage collector after the run."""

    async def main():
        processes = [Process(f"p{number}") for number in range(3)]
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


# -- the trace ---------------------------------------------------------------------------------------------------------


def traced(*, steps=False, late=0.0, name="b"):
    """The trace of a small run, and its lines."""
    lines = []

    async def main():
        loop = virtual.this_loop()
        process = Process("p")
        process.call(loop.mark, "begins")
        process.start(asyncio.sleep(1), "a")
        asyncio.create_task(asyncio.sleep(2 + late), name=name)  # noqa: RUF006  (the loop ends it)
        asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(3)
        loop.mark("ends")
        return loop.trace()

    return virtual.run(main(), steps=steps, listen=lines.append), lines


def test_a_trace_is_what_was_marked():
    trace, lines = traced()
    assert lines == ["0.0 p begins\n", "3.0 - ends\n"]
    assert (trace, lines) == traced(late=0.5)


def test_a_trace_of_steps_has_times_processes_and_names():
    trace, lines = traced(steps=True)
    assert (trace, lines) == traced(steps=True)
    assert trace not in {traced(steps=True, late=0.5)[0], traced(steps=True, name="c")[0], traced()[0]}
    assert {"0.0 p a\n", "1.0 p a\n", "2.0 - b\n", "1.0 - sleep\n"} <= {*lines}


def test_marks_and_processes_are_for_virtual_time_only():
    async def main():
        virtual.this_loop()

    with pytest.raises(RuntimeError, match="virtual time only"):
        asyncio.run(main())


def test_the_end_comes_although_processes_are_started_again():
    """A fuse does not burn in the end, and who dies then is not waited for."""
    log = []

    async def main():
        def boot():
            process = Process("p", fuse=3, on_death=boot)
            process.start(worker(log), "w")

        async def kill_at_the_end():
            try:
                await asyncio.sleep(1000)
            finally:
                victim.kill()

        asyncio.create_task(kill_at_the_end(), name="killer")  # noqa: RUF006  (the loop ends it)
        victim = Process("victim")
        victim.start(worker([]), "victim")
        boot()
        await asyncio.sleep(5)

    virtual.run(main())
    assert log.count("worker is cancelled") == 1


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
        process = Process("p")
        process.start(program(), "main")
        await asyncio.sleep(1)
        process.kill()

    virtual.run(main())
    gc.collect()
    assert (caplog.records, list(recwarn)) == ([], [])
    logging.getLogger("program").error("heard")
    assert [record.message for record in caplog.records] == ["heard"]


# -- the API server ----------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_request_happens_in_one_step():
    """So no death of who asks leaves it half done, if nothing that waits (a webhook, a disk) is in its way."""
    accounts, budgets = resource("", "v1", "serviceaccounts"), resource("policy", "v1", "poddisruptionbudgets")
    server = ApiServer(virtual.VirtualClock(), Random(1))
    client, where = Client(InProcess(server), manager="test"), {"namespace": "default"}

    async def use_it():
        await client.create(accounts, {"metadata": {"name": "default"}}, **where)
        chosen = {"selector": {"matchLabels": {"app": "p"}}, "maxUnavailable": 1}
        await client.create(budgets, {"metadata": {"name": "p"}, "spec": chosen}, **where)
        for name in "abc":
            await client.create(PODS, pod(name, metadata={"labels": {"app": "p"}}), **where)
        await client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, **where)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
        await client.create_below(PODS, "b", "eviction", eviction, **where)
        await client.delete(PODS, "c", grace=0, **where)
        return [one["metadata"]["name"] for one in (await client.list(PODS)).items]

    process = Process("client")
    left = await process.start(use_it(), "use it")
    assert "c" not in left
    assert process.steps == 1
