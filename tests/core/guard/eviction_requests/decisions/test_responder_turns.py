"""Whose turn it is, in tables."""

import pytest
from support.guard.evictions import EVICTOR, GUARD, NOW, at, eviction, pod, states, text

from lastcall.guard.eviction_requests.decisions.responder_turns import (
    COMPLETION_SECONDS,
    HEARTBEAT_SECONDS,
    TurnEnd,
    list_responders,
    sort_responders,
    take_turns,
)
from lastcall.model.eviction_requests import TargetResponder

START = text(NOW)


def said(name, **times):
    return {"name": name, **{key: text(value) for key, value in times.items()}}


def turns_of(*targets, responders=(), now=NOW, **how):
    found = eviction(targets=targets, responders=responders)
    return take_turns(found, found.status.target_responders, now, **{"end": None, **how})


def test_the_evictor_is_the_last_responder_of_every_pod():
    declared = [("a.example/low", 1000), (GUARD, 10001), ("b.example/controller", 10000)]
    assert [one.name for one in list_responders(pod(responders=declared))] == [
        GUARD,
        "b.example/controller",
        "a.example/low",
        EVICTOR,
    ]
    assert [one.name for one in list_responders(None)] == [EVICTOR]


def test_equals_are_ordered_by_their_domain_from_the_top():
    names = [
        "example.com/bar",
        "example.com/baz",
        "z.example.com/bar",
        "fooexample.com/bar",
        "a.fooexample.com/bar",
        "barexample.io/bar",
    ]
    found = sort_responders([TargetResponder(name=one, priority=15) for one in reversed(names)])
    assert [one.name for one in found] == names
    assert (
        sort_responders([TargetResponder(name="a.b/c"), TargetResponder(name="d.e/f", priority=0)])[0].name == "d.e/f"
    )


@pytest.mark.parametrize(
    ("before", "responders", "now", "after"),
    [
        (["Inactive", "Inactive"], [{}, {}], NOW, ["Active", "Inactive"]),
        (["Active", "Inactive"], [{"startTime": NOW}, {}], at(HEARTBEAT_SECONDS - 1), ["Active", "Inactive"]),
        (["Active", "Inactive"], [{"startTime": NOW}, {}], at(HEARTBEAT_SECONDS), ["Interrupted", "Active"]),
        (
            ["Active", "Inactive"],
            [{"startTime": NOW, "heartbeatTime": at(60)}, {}],
            at(HEARTBEAT_SECONDS + 59),
            ["Active", "Inactive"],
        ),
        (
            ["Active", "Inactive"],
            [{"startTime": NOW, "heartbeatTime": at(60)}, {}],
            at(HEARTBEAT_SECONDS + 60),
            ["Interrupted", "Active"],
        ),
        (["Active", "Inactive"], [{"startTime": NOW, "completionTime": at(9)}, {}], at(9), ["Completed", "Active"]),
        (["Completed", "Active"], [{"startTime": NOW}, {"startTime": at(9)}], at(20), ["Completed", "Active"]),
        (["Interrupted", "Inactive"], [{"startTime": NOW}, {}], at(20), ["Interrupted", "Active"]),
    ],
)
def test_each_has_its_turn(before, responders, now, after):
    names = [GUARD, EVICTOR]
    targets = list(zip(names, (10001, 100), before, strict=True))
    entries = [said(name, **times) for name, times in zip(names, responders, strict=True)]
    turns = turns_of(*targets, responders=entries, now=now)
    assert [state for _, state in states(turns.targets)] == after
    assert not turns.is_exhausted


def test_it_says_when_silence_ends_a_turn():
    turns = turns_of((GUARD, 10001, "Active"), responders=[said(GUARD, startTime=NOW)], now=at(5))
    assert turns.again_at == at(HEARTBEAT_SECONDS)


def test_after_the_last_one_nobody_is_left():
    entries = [said(EVICTOR, startTime=NOW, completionTime=at(5))]
    turns = turns_of((EVICTOR, 100, "Active"), responders=entries, now=at(6))
    assert states(turns.targets) == [(EVICTOR, "Completed")]
    assert turns.is_exhausted


def test_an_eviction_that_is_given_up_cancels_the_active_one_alone():
    targets = [("a.b/c", 20000, "Completed"), (GUARD, 10001, "Active"), (EVICTOR, 100, "Inactive")]
    turns = turns_of(*targets, end=TurnEnd.GIVEN_UP)
    assert [state for _, state in states(turns.targets)] == ["Completed", "Canceled", "Inactive"]
    never_begun = turns_of((GUARD, 10001, "Inactive"), end=TurnEnd.GIVEN_UP)
    assert states(never_begun.targets) == [(GUARD, "Inactive")]


@pytest.mark.parametrize(
    ("completed", "seconds", "state", "is_awaited"),
    [
        (True, 0, "Completed", False),
        (False, COMPLETION_SECONDS - 1, "Active", True),
        (False, COMPLETION_SECONDS, "Interrupted", False),
    ],
)
def test_the_active_one_may_report_after_the_pod_is_gone(completed, seconds, state, is_awaited):
    times = {"startTime": NOW, **({"completionTime": NOW} if completed else {})}
    turns = turns_of(
        (GUARD, 10001, "Active"),
        (EVICTOR, 100, "Inactive"),
        responders=[said(GUARD, **times)],
        now=at(60 + seconds),
        end=TurnEnd.TARGET_GONE,
        ended_at=at(60),
    )
    assert states(turns.targets) == [(GUARD, state), (EVICTOR, "Inactive")]
    assert turns.is_awaited is is_awaited
