"""A ready pod that is asked for again was refused by somebody else: who is told, and what is recorded."""

from datetime import timedelta

import pytest
from support.guard.reviews import NOW, facts, held, policy, state

from lastcall.guard.controller.allowance_memory import ROOM, SAME_REQUEST, AllowanceMemory
from lastcall.guard.decisions.request_record import REPEATED_SECONDS, record_other_refusal
from lastcall.report.guard_status import list_held_pods, table_rows


def entry(state_name="Ready", **fields):
    return facts(state(policy(held(state_name, **fields)))).policies[0].status.pods[0]


def test_one_request_may_be_shown_several_times():
    memory = AllowanceMemory()
    assert memory.note("uid", NOW) is None
    assert memory.note("uid", NOW + SAME_REQUEST / 2) is None
    assert memory.note("other", NOW + SAME_REQUEST) is None
    assert memory.note("uid", NOW + SAME_REQUEST) == NOW
    assert memory.note("uid", NOW + 3 * SAME_REQUEST) == NOW + SAME_REQUEST


def test_it_does_not_grow():
    memory = AllowanceMemory()
    for number in range(ROOM + 1):
        memory.note(f"uid-{number}", NOW)
    assert memory.note("uid-0", NOW + 2 * SAME_REQUEST) is None
    assert memory.note(f"uid-{ROOM}", NOW + 2 * SAME_REQUEST) == NOW


def test_it_is_recorded_once_and_then_as_often_as_any_repeated_request():
    first = record_other_refusal(entry(lastRequestAt="2999-01-01T00:00:00Z"), NOW, NOW)
    assert (first.allowed_at, first.last_request_at) == (NOW, NOW)
    soon, later = NOW + timedelta(seconds=5), NOW + timedelta(seconds=REPEATED_SECONDS)
    assert record_other_refusal(first, soon, soon) is None
    assert record_other_refusal(first, soon, later).last_request_at == later


@pytest.mark.parametrize("name", ["Preparing", "Stalled", "Released", "Unknown"])
def test_what_is_not_ready_any_more_is_left_alone(name):
    assert record_other_refusal(entry(name), NOW, NOW) is None
    assert record_other_refusal(None, NOW, NOW) is None


def test_the_table_says_it_of_a_ready_pod_alone():
    allowed = {"allowedAt": "2026-11-28T12:00:00Z", "message": "moves"}
    found = list_held_pods(
        facts(state(policy(held("Ready", **allowed), held("Preparing", "db-1", **allowed)))).policies
    )
    messages = [message for _, message in table_rows(found, NOW)]
    assert messages == ["allowed at 2026-11-28T12:00:00Z, and still there: something else refuses it", "moves"]
