"""What ``ports.guard.GuardProvider`` promises, asked of the model that the guard is tested with, and of real providers."""

import asyncio
import shutil

import pytest
from support.guard.provider_benches import BENCHES, PROGRAMS, SECRET, wait_for

from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.ports.guard import PreparationProgress, PreparationReport

PREPARING, READY, LOST = PreparationProgress.PREPARING, PreparationProgress.READY, PreparationProgress.LOST
CALLS = ("check_health", "prepare", "check_progress", "cancel")
BOUND = 60.0
"""Seconds in which something is over that was given a few; machines are loaded."""


def list_kinds():
    """Those that share servers run where these are, and the first one waits for their start."""
    for name, kind in BENCHES.items():
        yield pytest.param(name, marks=[pytest.mark.xdist_group(name), pytest.mark.timeout(240)] if kind.shares else [])


@pytest.fixture(params=list_kinds())
async def bench(request, tmp_path, unused_tcp_port_factory):
    program = PROGRAMS.get(request.param)
    if program and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    kind = BENCHES[request.param]
    made = kind(request.getfixturevalue(kind.shares)) if kind.shares else kind(tmp_path, unused_tcp_port_factory)
    try:
        provider = made.provider()
        await wait_for(lambda: provider.check_health(made.member), lambda found: getattr(found, "is_healthy", False))
        yield made
    finally:
        made.end()


async def until(bench, *progress, prepares=False):
    """As the guard does: what is lost is prepared again, if the test says so. Each time by another process."""

    async def ask():
        report = await bench.provider().check_progress(bench.member)
        if prepares and report.progress is LOST:
            await bench.provider().prepare(bench.member)
        return report

    found = await wait_for(ask, lambda found: isinstance(found, PreparationReport) and found.progress in progress)
    assert found.percent is None or 0 <= found.percent <= 100
    assert found.eta_seconds is None or found.eta_seconds >= 0
    return found


async def prepare(bench):
    """As the guard does: an application that refuses is asked again. Under load a Sentinel takes its replicas for lost."""
    await wait_for(lambda: bench.provider().prepare(bench.member), lambda found: found is None)


async def test_without_a_preparation_a_member_with_work_is_not_ready(bench):
    for _ in range(3):
        assert (await bench.provider().check_progress(bench.member)).progress is LOST
        assert (await bench.provider().check_health(bench.member)).is_healthy


async def test_a_preparation_makes_it_ready_and_may_be_begun_twice(bench):
    await prepare(bench)
    await prepare(bench)
    await until(bench, READY, prepares=True)
    await prepare(bench)
    await until(bench, READY, prepares=True)


async def test_two_processes_may_prepare_at_the_same_time(bench):
    begun = (bench.provider().prepare(bench.member) for _ in range(2))
    for outcome in await asyncio.gather(*begun, return_exceptions=True):
        assert outcome is None or isinstance(outcome, LastcallError)
    await until(bench, READY, prepares=True)


async def test_a_cancel_leaves_an_application_that_can_prepare_again(bench):
    await bench.provider().cancel(bench.member)  # without a preparation
    await prepare(bench)
    await until(bench, READY, prepares=True)
    for _ in range(2):
        await bench.provider().cancel(bench.member)
    provider = bench.provider()
    await wait_for(lambda: provider.check_health(bench.member), lambda found: getattr(found, "is_healthy", False))
    await until(bench, READY, prepares=True)


async def test_a_release_ends_it_when_the_member_is_gone_and_may_be_asked_twice(bench):
    await prepare(bench)
    await until(bench, READY, prepares=True)
    for _ in range(2):
        await bench.provider().release(bench.gone)


async def test_who_does_not_answer_is_not_ready_and_it_is_said_in_time(bench):
    await prepare(bench)
    await until(bench, READY, prepares=True)
    bench.silence()
    async with asyncio.timeout(BOUND):
        for call in ("check_progress", "cancel"):
            with pytest.raises((Unavailable, TimedOut)) as caught:
                await getattr(bench.provider(), call)(bench.member)
            assert SECRET not in str(caught.value)
        try:
            health = await bench.provider().check_health(bench.member)
            assert not health.is_healthy
            assert health.message
        except (Unavailable, TimedOut):
            pass


@pytest.mark.parametrize("call", CALLS)
async def test_no_call_outlasts_its_cancellation(bench, call):
    bench.silence()
    running = asyncio.create_task(getattr(bench.provider(), call)(bench.member))
    await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(BOUND):
        with pytest.raises((asyncio.CancelledError, LastcallError)):
            await running
    assert len(asyncio.all_tasks()) == 1
