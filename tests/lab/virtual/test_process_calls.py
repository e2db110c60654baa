"""What processes in virtual time ask of each other, while one of them may die: calls, streams, requests."""

import asyncio
import contextlib
from random import Random

import pytest
from support.lab.pod_requests import pod
from support.virtual_time.worker import in_virtual_time, worker

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.virtual import VirtualProcess, current_process, run_within, stream_within


@in_virtual_time
async def test_a_call_runs_in_the_other_process():
    server, client = VirtualProcess("server"), VirtualProcess("client")

    async def whose(seconds):
        await asyncio.sleep(seconds)
        return current_process()

    async def fail():
        raise LookupError("no")

    async def main():
        assert await run_within(server, whose(1)) is server
        assert await run_within(client, whose(1)) is client
        with pytest.raises(LookupError, match="no"):
            await run_within(server, fail())

    await client.start(main(), "main")


@in_virtual_time
async def test_the_work_outlives_the_caller():
    log = []
    server, client = VirtualProcess("server"), VirtualProcess("client")

    async def work():
        await asyncio.sleep(2)
        log.append("written")

    async def main():
        try:
            await run_within(server, work())
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
    server = VirtualProcess("server")
    asyncio.get_running_loop().call_later(3, server.kill)
    with pytest.raises(Unavailable, match="server has died"):
        await run_within(server, worker(log))
    assert asyncio.get_running_loop().time() == 3
    with pytest.raises(Unavailable, match="server is dead"):
        await run_within(server, worker(log))
    assert log == ["worker 0", "worker 1", "worker 2"]


@in_virtual_time
async def test_a_cancelled_call_is_cancelled_there():
    log = []
    server = VirtualProcess("server")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.5):
            await run_within(server, worker(log))
    await asyncio.sleep(0)
    assert log == ["worker 0", "worker 1", "worker is cancelled", "worker cleans up"]


@in_virtual_time
async def test_a_call_that_somebody_else_cancels_is_no_cancellation_of_the_caller():
    async def give_up():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(Unavailable, match="server has given up"):
        await run_within(VirtualProcess("server"), give_up())


async def numbers(log, pause=1.0, end=1_000_000):
    try:
        for number in range(end):
            log.append(current_process().name)
            yield number
            await asyncio.sleep(pause)
    finally:
        log.append("closed")


@in_virtual_time
async def test_a_stream_is_made_by_the_other_process():
    log = []
    stream = stream_within(VirtualProcess("server"), numbers(log, end=3))
    assert [number async for number in stream] == [0, 1, 2]
    assert log == ["server", "server", "server", "closed"]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()
    await stream.aclose()


@in_virtual_time
async def test_a_stream_ends_with_its_process():
    log, got = [], []
    server = VirtualProcess("server")
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
    server, client = VirtualProcess("server"), VirtualProcess("client")

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

    stream = stream_within(VirtualProcess("server"), source())
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
    stream = stream_within(VirtualProcess("server"), numbers(log, pause=0))
    await asyncio.sleep(10)
    made = len(log)
    assert made < 100
    assert [await anext(stream) for _ in range(made + 10)] == list(range(made + 10))
    with contextlib.suppress(StopAsyncIteration):
        await stream.aclose()


@in_virtual_time
async def test_a_request_happens_in_one_step():
    """So no death of who asks leaves it half done, if nothing that waits (a webhook, a disk) is in its way."""
    accounts, budgets = (
        dict_resource("", "v1", "serviceaccounts"),
        dict_resource("policy", "v1", "poddisruptionbudgets"),
    )
    server = ApiServer(virtual.VirtualClock(), Random(1))
    client, where = Client(InProcessTransport(server), manager="test"), {"namespace": "default"}

    async def use_it():
        await client.create(accounts, {"metadata": {"name": "default"}}, **where)
        chosen = {"selector": {"matchLabels": {"app": "p"}}, "maxUnavailable": 1}
        await client.create(budgets, {"metadata": {"name": "p"}, "spec": chosen}, **where)
        for name in "abc":
            await client.create(PODS, pod(name, metadata={"labels": {"app": "p"}}), **where)
        await client.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}}, **where)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
        await client.create_subresource(PODS, "b", "eviction", eviction, **where)
        await client.delete(PODS, "c", grace=0, **where)
        return [one["metadata"]["name"] for one in (await client.list(PODS)).items]

    process = VirtualProcess("client")
    left = await process.start(use_it(), "use it")
    assert "c" not in left
    assert process.steps == 1
