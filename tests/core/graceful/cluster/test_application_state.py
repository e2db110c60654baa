"""What the guard says of a pod's application, as the agent waits for it."""

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from support.agents.virtual_parts import pod

from lastcall.graceful.cluster.application_state import FRESH_SECONDS, LOOK_SECONDS, ApplicationState
from lastcall.model.pods import StatusCondition
from lastcall.names import GUARD_READY
from lastcall.ports.node import ApplicationReadiness
from lastcall_lab import virtual

EPOCH = 1_800_000_000.0
"""The wall clock at the beginning."""


def guarded(status, reason="Preparing", message="", probed=None):
    db = pod("db", uid="db")
    stamp = datetime.fromtimestamp(EPOCH + probed, UTC) if probed is not None else None
    said = StatusCondition(
        GUARD_READY, status, reason, message, last_probe_time=stamp and f"{stamp:%Y-%m-%dT%H:%M:%SZ}"
    )
    return replace(db, status=replace(db.status, conditions=(StatusCondition("Ready", "True"), said)))


def wait(states, until):
    """What came of the wait, and when; ``states`` are pods by the time from which they are known."""

    async def scene():
        clock = virtual.VirtualClock(EPOCH)

        def find_pod(uid):
            assert uid == "db"
            return [found for at, found in states.items() if at <= clock.boottime()][-1]

        found = await ApplicationState(find_pod, clock).wait_until_ready("db", lambda: until)
        return clock.boottime(), found

    return virtual.run(scene())


def test_the_wait_ends_when_the_application_is_ready():
    at, found = wait({0: guarded("False"), 3: guarded("True", "Ready", probed=3)}, until=10)
    assert found.is_ready
    assert 3 <= at <= 3 + LOOK_SECONDS


@pytest.mark.parametrize(
    ("reason", "message", "told"), [("Stalled", "no quorum", "no quorum"), ("NotRequested", "", "NotRequested")]
)
def test_the_wait_ends_at_its_deadline(reason, message, told):
    not_ready = ApplicationReadiness(is_ready=False, message=told)
    assert wait({0: guarded("False", reason, message)}, until=10) == (10, not_ready)


@pytest.mark.parametrize("probed", [0, FRESH_SECONDS - 1])
def test_what_was_verified_a_moment_ago_counts_at_once(probed):
    at, found = wait({0: guarded("True", "Ready", probed=probed)}, until=10)
    assert (at, found.is_ready) == (0, True)


@pytest.mark.parametrize("probed", [None, -3600, 3600])
def test_what_was_verified_long_ago_or_by_another_clock_does_not_count_until_it_is_verified_again(probed):
    old = guarded("True", "Ready", probed=probed)
    assert wait({0: old}, until=10) == (10, ApplicationReadiness(is_ready=False, message="Ready"))
    again = guarded("True", "Ready", probed=(probed or 0) + 4)
    at, found = wait({0: old, 4: again}, until=10)
    assert found.is_ready
    assert 4 <= at <= 4 + LOOK_SECONDS


def test_a_pod_that_is_not_guarded_is_not_waited_for_and_costs_no_turn_of_the_loop():
    async def scene():
        ran = []
        asyncio.get_running_loop().call_soon(ran.append, "another")
        assert await ApplicationState(lambda _: pod("web"), virtual.VirtualClock()).wait_until_ready("w", float) is None
        assert ran == []

    virtual.run(scene())
