"""Whether the watchdog may be petted, and what is done next with it: tables."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import InvalidInput
from lastcall.model.watchdog import WatchdogSettings, WatchdogTiming
from lastcall.watchdog.pet_rules import (
    DeviceState,
    KeeperStep,
    LeaseState,
    may_pet,
    next_step,
    round_seconds,
    state_after_write,
    state_before_write,
)

PETS = {
    "a new life": (LeaseState(), 1000, False),
    "just renewed": (LeaseState(renewed=100), 100, True),
    "the last moment": (LeaseState(renewed=100), 119.9, True),
    "over": (LeaseState(renewed=100), 120, False),
    "over, and nothing is promised": (LeaseState(promised=False, renewed=100), 1000, True),
}


@pytest.mark.parametrize(("standing", "now", "may"), PETS.values(), ids=PETS)
def test_may_it_be_petted(standing, now, may):
    assert may_pet(standing, lease=20, now=now) is may


def test_what_was_sent_may_have_arrived_and_what_was_answered_stands():
    at = LeaseState()
    assert state_before_write(at, armed=False).promised  # until the answer is there
    at = state_after_write(at, armed=False, sent=5)
    assert at == LeaseState(promised=False, renewed=5)
    at = state_before_write(at, armed=True)
    assert at == LeaseState(promised=True, renewed=5)  # nobody knows, but it may have been seen
    at = state_after_write(at, armed=True, sent=6)
    assert at == LeaseState(promised=True, renewed=6)
    assert state_before_write(at, armed=False) == at


STEPS = {
    # wanted, promised, open
    "a new life": ((True, True, False), KeeperStep.TAKE_BACK),
    "it is told": ((True, False, False), KeeperStep.OPEN),
    "it runs": ((True, False, True), KeeperStep.PROMISE),
    "it is armed": ((True, True, True), KeeperStep.PROMISE),
    "down, armed": ((False, True, True), KeeperStep.TAKE_BACK),
    "down, taken back": ((False, False, True), KeeperStep.STOP),
    "down, stopped": ((False, False, False), KeeperStep.REST),
    "down, a new life": ((False, True, False), KeeperStep.TAKE_BACK),
}


@pytest.mark.parametrize(("where", "step"), STEPS.values(), ids=STEPS)
def test_what_comes_next(where, step):
    wanted, promised, is_open = where
    assert next_step(DeviceState(wanted=wanted, promised=promised, open=is_open)) is step


@pytest.mark.parametrize(
    ("situation", "step"),
    [
        (DeviceState(wanted=True, promised=False, open=True, fit=False), KeeperStep.STOP),
        (DeviceState(wanted=True, promised=True, open=True, fit=False), KeeperStep.TAKE_BACK),
        (DeviceState(wanted=True, promised=False, open=False, fit=False), KeeperStep.REST),
        (DeviceState(wanted=True, promised=False, open=True, fit=False, stuck=True), KeeperStep.REST),
        (DeviceState(wanted=False, promised=False, open=True, stuck=True), KeeperStep.REST),
        (DeviceState(wanted=True, promised=False, open=True, stuck=True), KeeperStep.PROMISE),
        (DeviceState(wanted=False, promised=False, open=False, stray=True), KeeperStep.OPEN),
        (DeviceState(wanted=False, promised=True, open=False, stray=True), KeeperStep.TAKE_BACK),
    ],
)
def test_devices_that_do_not_fit_cannot_be_stopped_or_were_left_running(situation, step):
    assert next_step(situation) is step


@pytest.mark.parametrize("flags", [*product([False, True], repeat=6)])
def test_in_no_situation_is_anything_done_that_breaks_a_promise(flags):
    at = DeviceState(**dict(zip(("wanted", "promised", "open", "fit", "stuck", "stray"), flags, strict=True)))
    step = next_step(at)
    assert not (at.promised and step in (KeeperStep.STOP, KeeperStep.OPEN))
    assert not (step is KeeperStep.PROMISE and not (at.open and at.fit and at.wanted))
    assert not (step is KeeperStep.STOP and not at.open)
    assert not (step is KeeperStep.OPEN and at.open)


@pytest.mark.parametrize(
    ("timeout", "fit", "seconds"), [(10, True, 4), (3, False, 1), (60, False, 4), (float("inf"), False, 4)]
)
def test_a_device_that_does_not_fit_and_may_run_on_is_petted_in_its_time(timeout, fit, seconds):
    assert round_seconds(4, timeout=timeout, fit=fit) == seconds


# -- the bound, by every course of events ------------------------------------------------------------------------------

SHARES = st.floats(0, 0.999)


@given(
    lease=st.integers(9, 60),
    timeout=st.integers(9, 60),
    pets=st.lists(SHARES, max_size=8),
    stopped=SHARES,
    killed=SHARES | st.none(),
)
def test_no_course_of_events_outlives_the_bound(lease, timeout, pets, stopped, killed):
    """Pets that are decided within the lease, the last of them late, and then the agent killed: the kernel pets too."""
    settings = WatchdogTiming(lease=lease, pet=4, timeout=timeout, drift=0)
    fires = timeout  # it was petted when the renewal was sent
    decided = sorted(share * lease for share in pets)
    for at in decided:
        if at < fires:
            fires = at + timeout
    last = decided[-1] if decided else 0.0
    if last < fires:  # stopped after that decision, but not for so long that the device has fired
        fires = max(fires, last + stopped * (fires - last) + timeout)
    if killed is not None:
        fires += killed * timeout
    assert fires < settings.reset_bound


def test_the_bound_is_reached():
    settings = WatchdogTiming(lease=20, pet=4, timeout=10, drift=0)
    decided = 20 - 1e-6
    pet = decided + 10 - 1e-6
    closed = pet + 10 - 1e-6
    assert settings.reset_bound == pytest.approx(closed + 10)


def test_the_settings_that_are_there_without_any_are_safe():
    settings = WatchdogSettings()
    assert settings.timing_with().bound_arithmetic == "(60 s lease + 3 * 15 s timeout) * 1.01 = 106.05 s"
    assert settings.timing_with(timeout=20).timeout == 20


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ({"timeout": 10}, "timeout: 10: must be more than 2 * 5 s pet * 1.01 = 10.1 s"),
        ({"survives_close": False}, "the device is disarmed when the agent is killed"),
        ({"resets": False}, "the device only raises an alarm"),
        ({"timeout": float("inf")}, "must be finite"),
    ],
)
def test_devices_from_which_no_bound_follows(device, told):
    with pytest.raises(InvalidInput, match=told.replace("*", r"\*")):
        WatchdogSettings().timing_with(**device)
