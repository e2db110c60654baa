"""Who leads by a Lease: the decision as a table, and the records that are written."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.model.leadership import (
    NEVER,
    VACANT,
    ElectionLease,
    ElectionStep,
    ElectionTerms,
    LeaseRecord,
    LeaseVersion,
    ObservedLease,
    decide,
    holder_record,
    observe_lease,
    release_record,
    vacant_record,
)

TERMS = ElectionTerms()
WALL = 1_800_000_000.25
TEXT = "2027-01-15T08:00:00.250000Z"


def lease(holder, version="7", **spec):
    return ElectionLease(
        metadata=LeaseVersion(resource_version=version), spec=LeaseRecord(holder_identity=holder, **spec)
    )


# What is seen (since 100), until when we lead, now -> what is done.
TABLE = {
    "another's, just seen": (lease("b"), NEVER, 100, ElectionStep.WAIT),
    "another's, almost run out": (lease("b"), NEVER, 114.9, ElectionStep.WAIT),
    "another's, run out": (lease("b"), NEVER, 115, ElectionStep.ACQUIRE),
    "another's, for longer than ours": (lease("b", lease_duration_seconds=60), NEVER, 159, ElectionStep.WAIT),
    "another's, for longer, run out": (lease("b", lease_duration_seconds=60), NEVER, 160, ElectionStep.ACQUIRE),
    "another's, that says it is short": (lease("b", lease_duration_seconds=1), NEVER, 114, ElectionStep.WAIT),
    "another's, its times long ago": (
        lease("b", renew_time="1970-01-01T00:00:00.000000Z"),
        NEVER,
        114,
        ElectionStep.WAIT,
    ),
    "another's, its times to come": (
        lease("b", renew_time="2999-01-01T00:00:00.000000Z"),
        NEVER,
        115,
        ElectionStep.ACQUIRE,
    ),
    "released": (lease("", lease_duration_seconds=1), NEVER, 100, ElectionStep.ACQUIRE),
    "never held": (lease(None), NEVER, 100, ElectionStep.ACQUIRE),
    "ours, and we do not know of it": (lease("a"), NEVER, 100, ElectionStep.ACQUIRE),
    "none": (None, NEVER, 100, ElectionStep.MAKE),
    "none for a long time": (None, NEVER, 1000, ElectionStep.MAKE),
    "vacant": (lease(VACANT), NEVER, 114, ElectionStep.WAIT),
    "vacant, run out": (lease(VACANT), NEVER, 115, ElectionStep.ACQUIRE),
    "we lead": (lease("a"), 110, 109, ElectionStep.RENEW),
    "we have led": (lease("a"), 110, 110, ElectionStep.LOST),
    "we lead, but it is another's": (lease("b"), 110, 101, ElectionStep.LOST),
    "we lead, and it was deleted": (None, 110, 101, ElectionStep.RENEW),
    "we lead, and it was deleted and made anew": (lease(VACANT), 110, 101, ElectionStep.RENEW),
    "we have led, and it was deleted": (None, 110, 111, ElectionStep.LOST),
    "we lead, and somebody has emptied it": (lease(""), 110, 101, ElectionStep.RENEW),
}


@pytest.mark.parametrize(("found", "until", "now", "step"), TABLE.values(), ids=TABLE)
def test_what_comes_next(found, until, now, step):
    assert decide(ObservedLease(found, 100), identity="a", leading_until=until, terms=TERMS, now=now) is step


def test_only_a_change_begins_the_waiting_anew():
    first = observe_lease(None, lease("b"), 5)
    assert first == ObservedLease(lease("b"), 5)
    assert observe_lease(first, lease("b"), 9) is first
    assert observe_lease(first, lease("b", "8"), 9).since == 9
    assert observe_lease(first, None, 9) == ObservedLease(None, 9)
    assert observe_lease(ObservedLease(None, 5), None, 9).since == 9, "it may have been there meanwhile"


def test_who_takes_it_counts_and_who_keeps_it_does_not():
    taken = holder_record(lease("b", lease_transitions=3, acquire_time="x"), identity="a", terms=TERMS, wall=WALL)
    assert taken == LeaseRecord(
        holder_identity="a", lease_duration_seconds=15, acquire_time=TEXT, renew_time=TEXT, lease_transitions=4
    )
    kept = holder_record(ElectionLease(metadata=LeaseVersion(), spec=taken), identity="a", terms=TERMS, wall=WALL + 2)
    assert (kept.acquire_time, kept.lease_transitions) == (TEXT, 4)
    assert kept.renew_time == TEXT.replace("00.25", "02.25")
    assert holder_record(None, identity="a", terms=TERMS, wall=WALL).lease_transitions == 0
    assert holder_record(lease(None), identity="a", terms=TERMS, wall=WALL).lease_transitions == 1


def test_a_renewal_changes_the_record_even_if_the_wall_clock_stands_still():
    kept = holder_record(lease("a", renew_time=TEXT, acquire_time="x"), identity="a", terms=TERMS, wall=WALL)
    assert kept.renew_time == TEXT.replace("250000", "250001")


def test_who_releases_it_leaves_no_holder():
    given = release_record(lease("a", lease_transitions=3), wall=WALL)
    assert (given.holder_identity, given.lease_duration_seconds, given.lease_transitions) == ("", 1, 3)
    assert (
        decide(ObservedLease(lease(""), 0), identity="b", leading_until=NEVER, terms=TERMS, now=0)
        is ElectionStep.ACQUIRE
    )


def test_one_that_is_made_anew_is_nobodys():
    made = vacant_record(terms=TERMS, wall=WALL)
    assert (made.holder_identity, made.lease_duration_seconds, made.lease_transitions) == (VACANT, 15, 0)


WRONG = {
    "no pause": ({"retry": 0}, "retry: 0: must be more than 0 s"),
    "too long a pause": ({"retry": 9}, "renew: 10: must be more than 1.2 times retry"),
    "too long a term": ({"lease": 10}, "lease: 10: must be more than renew"),
}


@pytest.mark.parametrize(("terms", "said"), WRONG.values(), ids=WRONG)
def test_terms_that_do_not_fit_together(terms, said):
    with pytest.raises(InvalidInput, match=said):
        ElectionTerms(**terms)
