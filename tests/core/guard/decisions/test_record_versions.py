"""Records of other versions of the guard: two versions run side by side during an upgrade.

``first_records.json`` has the entries that the first version wrote, one after the other, with other names and uids. What a
version to come writes is a state, a request and fields that this version does not know.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.guard import reviews
from support.guard.reviews import (
    BOTH,
    CONTROLLER,
    answer,
    ask_for,
    at,
    deletion,
    eviction,
    facts,
    outcome,
    policy,
    state,
)

from lastcall.guard.decisions.preparation import PreparationStep, decide_preparation
from lastcall.guard.decisions.preparation_events import is_limit_exceeded, list_events
from lastcall.guard.decisions.verdict import judge_removal
from lastcall.model.admission import parse_review
from lastcall.model.guard_policy import HeldPod, PreparationState, RequestedRemoval

FIRST = json.loads((Path(reviews.__file__).parent / "first_records.json").read_text())
AT = datetime(2026, 11, 28, 12, 1, 5, tzinfo=UTC)
"""Five seconds after the first version verified that the application was ready."""

NEXT = {"state": "Draining", "request": "Preemption", "stage": "fence", "shards": [{"name": "s1", "left": 3}]}
ALLOWING = {"holdLimit": "30m", "onLimit": "Allow", "onUnreachable": "Allow"}


def next_entry(**fields):
    return {"name": "db-0", "uid": "uid-db-0", "since": at(-7200), **NEXT, **fields}


@pytest.mark.parametrize(
    ("number", "allowed", "step"),
    [
        (0, False, PreparationStep.CHECK),
        (1, True, PreparationStep.CHECK),
        (2, True, PreparationStep.WAIT),
        (3, False, PreparationStep.WAIT),
        (4, False, PreparationStep.WAIT),
    ],
)
def test_what_the_first_version_has_recorded_is_read_and_gone_on_with(number, allowed, step):
    cluster = state(policy(FIRST[number]))
    assert outcome(deletion(), cluster, AT)[0] is allowed
    assert outcome(eviction(), cluster, AT)[0] is allowed
    read = facts(cluster)
    [held] = read.policies[0].status.pods
    assert {name: value for name, value in msgspec.to_builtins(held).items() if value not in (None, "")} == FIRST[
        number
    ]
    assert decide_preparation(held, read.policies[0], read, AT, checked_at=None).step is step


@BOTH
def test_a_state_of_a_newer_version_is_never_an_allowance(ask):
    """Not by readiness that it shows, and not by a limit: a newer replica knows whether the pod is held at all."""
    found = next_entry(verifiedAt=at(0), readyAt=at(-5), unreachableSince=at(-7200), message="moves its shards")
    review, more = ask_for(ask, reviews.pod())
    said = answer(review, state(policy(found, **ALLOWING), *more))["response"]
    assert (said["allowed"], said["status"]["code"]) == (False, 429)
    assert "a newer version of the guard prepares its application" in said["status"]["message"]
    assert "moves its shards" in said["status"]["message"]


def test_a_pod_in_such_a_state_keeps_its_place():
    assert outcome(deletion(reviews.pod("db-1")), state(policy(next_entry()))) == (False, "waiting")


def test_a_repeated_request_is_recorded_and_nothing_else_changes():
    """So that the version that knows the state does not take the request for abandoned."""
    read = facts(state(policy(next_entry(lastRequestAt=at(-60), requestedBy=CONTROLLER["username"], request="Delete"))))
    removal = parse_review(json.dumps(deletion(user=CONTROLLER)).encode(), "review").removal
    record = judge_removal(removal, read, reviews.NOW).record
    assert record.last_request_at == reviews.NOW
    [held] = read.policies[0].status.pods
    assert msgspec.structs.replace(record, last_request_at=held.last_request_at) == held


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("field", ["preparedAt", "releasedAt", "nextAttemptAt", "lastRequestAt"])
def test_its_steps_are_left_to_the_version_that_knows_them(gone, field):
    without = ("Pod",) if gone else ()
    read = facts(state(policy(next_entry(**{field: at(-7200)})), without=without))
    [held] = read.policies[0].status.pods
    for later in (0, 3600, 10**6):
        now = reviews.NOW + timedelta(seconds=later)
        found = decide_preparation(held, read.policies[0], read, now, checked_at=None)
        assert (found.step, found.is_over) == (PreparationStep.WAIT, False)
        assert now < found.until


def test_that_version_tells_of_it():
    read = facts(state(policy(next_entry(), **ALLOWING)))
    [held] = read.policies[0].status.pods
    known = msgspec.structs.replace(held, state=PreparationState.READY)
    assert list(list_events(known, held, read.policies[0])) == []
    assert not is_limit_exceeded(held, read.policies[0], reviews.NOW)


def test_a_request_of_a_newer_version_counts_as_none_of_ours():
    assert msgspec.convert(next_entry(state="Ready"), HeldPod).request is RequestedRemoval.UNKNOWN


WORDS = st.text(st.characters(min_codepoint=65, max_codepoint=122), min_size=1, max_size=12)
KNOWN = {one.value for one in PreparationState}


@given(
    WORDS.filter(lambda word: word not in KNOWN),
    st.dictionaries(WORDS.map("next{}".format), st.recursive(st.none() | WORDS | st.integers(), st.lists), max_size=3),
    st.sampled_from([{}, ALLOWING, {"maxUnavailable": 2}]),
    st.booleans(),
    st.integers(-(10**5), 10**5),
)
def test_whatever_a_newer_version_writes_no_pod_goes_by_it(word, unknown, spec, is_evicted, seconds):
    found = {**next_entry(verifiedAt=at(seconds), since=at(-abs(seconds))), "state": word, **unknown}
    ask = eviction() if is_evicted else deletion()
    assert outcome(ask, state(policy(found, **spec))) == (False, "unknown")
