"""Events that repeat are told rarely, with a count."""

import asyncio
from itertools import count

import pytest
from support.virtual_time.manual_clock import Hand

from lastcall import names
from lastcall.aio import cancel_and_wait
from lastcall.failover.controller.event_writer import LATEST, MOST, EventWriter
from lastcall.failover.limits.storms import Limit
from lastcall.failover.reporting.controller_events import (
    CallReported,
    FencingBlocked,
    LeadershipEnded,
    NodeSettled,
    PodsRemoved,
)
from lastcall.failover.reporting.event_series import FIRST, LONGEST, TEXTS, EventRepeats
from lastcall.model.observed import ClusterEvent


def event(message="m", reason="r"):
    return ClusterEvent(name="n", uid="u", reason=reason, message=message)


def written(events):
    """When each was told, and with which count and duration."""
    repeats, found = EventRepeats(), []
    for now, message, reason, limit in events:
        if told := repeats.due_event(event(message, reason), now, limit=limit):
            found.append((now, told.message, told.count, told.lasts))
    return found


def test_two_that_take_turns_are_told_ever_more_rarely_with_their_count():
    turns = [(float(now), f"attempt {now}", ("off", "failed")[now // 30 % 2], "") for now in range(0, 7200, 30)]
    offs = [(now, times, lasts) for now, _, times, lasts in written(turns) if now // 30 % 2 == 0]
    assert offs == [(0.0, 1, 0.0), (300.0, 6, 300.0), (900.0, 16, 900.0), (2100.0, 36, 2100.0), (4500.0, 76, 4500.0)]


def test_the_pause_has_an_end():
    turns = ((60.0 * now, "m", ("a", "b")[now % 2], "") for now in range(24 * 60))
    at = [now for now, *_ in written(one for one in turns)][-4:]
    assert {after - before for before, after in zip(at[::2], at[2::2], strict=False)} == {LONGEST}


def test_what_goes_on_has_occurred_once():
    assert written((10.0 * now, f"since {now}", "r", "") for now in range(31)) == [
        (0.0, "since 0", 1, 0.0),
        (FIRST, "since 30", 2, FIRST),
    ]


@pytest.mark.parametrize(
    ("limits", "told"), [(("PerHour", "PerHour"), 1), (("PerHour", "PerDomain"), 2), (("", ""), 2)]
)
def test_a_limit_is_one_event_whatever_its_text_says(limits, told):
    assert len(written((float(now), "ab"[now], "r", limit) for now, limit in enumerate(limits))) == told


def test_another_duration_is_no_other_text():
    texts = ("silent for 30s", "silent for 1m0s", "silent for 1h2m3s", "silent for 250ms")
    assert len(written((float(now), text, "r", "") for now, text in enumerate(texts))) == 1


def test_what_would_be_done_is_told_once_whatever_speaks_for_it():
    texts = ("its Node reported this boot id 15s ago", "no sign of life has followed")
    assert len(written((float(now), text, names.E_WOULD, "") for now, text in enumerate(texts))) == 1


def test_texts_that_all_differ_are_combined():
    texts = (chr(ord("a") + number % 26) + chr(ord("a") + number // 26) for number in count())
    found = written((float(now), next(texts), "r", "") for now in range(600))
    assert [now for now, *_ in found] == [*map(float, range(TEXTS + 1)), TEXTS + FIRST]
    assert found[-1][2] == FIRST + 1


def test_what_is_well_known_does_not_hold_up_another_reason():
    assert len(written([(0.0, "m", "a", ""), (1.0, "m", "b", ""), (2.0, "m", "a", "")])) == 2


class Events:
    """What ``EventWriter`` writes."""

    def __init__(self):
        self.clock, self.written, self.times, self.busy_until = Hand(0.0), [], [], 0.0
        self.telling = EventWriter(self, self.clock, lambda: self.clock.now < self.busy_until)

    async def create_event(self, told):
        self.written.append((told.name, told.uid, told.reason, told.count))
        self.times.append((self.clock.now, self.clock.now - told.age))

    async def written_for(self, *happenings):
        """The events that are written when these are heard, one a second."""
        self.written = []
        for happening in happenings:
            self.clock.now += 1
            self.telling.handle_event(happening)
        writing = asyncio.create_task(self.telling.run())
        for _ in range(10):
            await asyncio.sleep(0)
        await cancel_and_wait(writing)
        return self.written


HELD = FencingBlocked(node="n", uid="u", limit=Limit.API_SERVER, why="w")
FAILED = CallReported(
    verb="off", node="n", boot_id="b", policy="p", why="w", evidence=(), began=0.0, ended=1.0, error="e", fencer="f"
)
ONCE = ("n", "u", names.E_NOT_FENCED, 1)


@pytest.mark.parametrize("end", [NodeSettled(node="n"), LeadershipEnded()])
async def test_a_node_that_is_well_and_one_that_another_has_led_is_told_of_anew(end):
    events = Events()
    assert await events.written_for(HELD, HELD) == [ONCE]
    assert await events.written_for(end, HELD, HELD) == [ONCE]


@pytest.mark.parametrize("end", [NodeSettled(node="n"), LeadershipEnded()])
async def test_the_uid_of_a_node_is_not_kept_for_longer(end):
    """Another Node of that name has another."""
    events = Events()
    assert await events.written_for(HELD, FAILED) == [ONCE, ("n", "u", names.E_FENCING_FAILED, 1)]
    assert await events.written_for(end, FAILED) == [("n", "", names.E_FENCING_FAILED, 1)]


async def write_while_busy(seconds, events=1):
    """When each event was written, and when it occurred as it says; pods are removed for so many seconds."""
    happened = Events()
    for _ in range(events):
        happened.telling.handle_event(PodsRemoved(node="n", pods=(("shop", "web", "u"),)))
    happened.busy_until = seconds
    writing = asyncio.create_task(happened.telling.run())
    for _ in range(10 * events):
        await asyncio.sleep(0)
    await cancel_and_wait(writing)
    return [(round(written, 3), round(occurred, 3)) for written, occurred in happened.times]


async def test_an_event_waits_until_no_pods_are_removed_and_tells_when_it_occurred():
    assert await write_while_busy(2.0) == [(2.0, 0.0)]


async def test_an_event_does_not_wait_for_longer_than_people_do():
    ((written, occurred),) = await write_while_busy(60.0)
    assert LATEST <= written < 2 * LATEST
    assert occurred == 0.0


async def test_events_do_not_wait_until_some_are_dropped():
    written = await write_while_busy(2.0, events=MOST)
    assert sum(at == 0.0 for at, _ in written) == MOST / 2
    assert len(written) == MOST
