"""The status of an Eviction, and what becomes of a request, in tables."""

import pytest
from msgspec.structs import replace
from support.guard.evictions import DRAIN, EVICTOR, GUARD, NOW, UID, at, condition, eviction, pod, request, states, text

from lastcall.guard.eviction_requests.decisions.eviction_metadata import decide_metadata
from lastcall.guard.eviction_requests.decisions.eviction_outcomes import MOST_REQUESTERS, decide_eviction
from lastcall.guard.eviction_requests.decisions.request_outcomes import (
    FIRST_RETRY_SECONDS,
    decide_request,
    find_relevant,
    name_eviction,
)

GUARDED = pod(responders=[(GUARD, 10001)])


def reasons(status):
    return {one.type: (one.status, one.reason) for one in status.conditions}


def test_a_new_eviction_begins_with_the_first_responder():
    outcome = decide_eviction(eviction(), [request()], GUARDED, NOW)
    status = outcome.status
    assert states(status.target_responders) == [(GUARD, "Active"), (EVICTOR, "Inactive")]
    assert [one.start_time for one in status.responders] == [NOW, None]
    assert [(one.name, one.intent.value) for one in status.requesters] == [(DRAIN, "Eviction")]
    assert reasons(status) == {
        "Failed": ("False", "AwaitingEviction"),
        "TargetEvicted": ("False", "AwaitingEviction"),
    }
    written = replace(eviction(), status=status)
    assert decide_eviction(written, [request()], GUARDED, at(10)).status is None, "nothing new is written again"


ACTIVE = {
    "targets": [(GUARD, 10001, "Active"), (EVICTOR, 100, "Inactive")],
    "responders": [{"name": GUARD, "startTime": text(NOW)}, {"name": EVICTOR}],
}


@pytest.mark.parametrize(
    ("requests", "target", "how", "conditions", "first"),
    [
        ([request(intent="Withdrawn")], GUARDED, {}, {"Failed": "CanceledDueToNoRequesters"}, "Canceled"),
        ([], GUARDED, {}, {"Failed": "CanceledDueToNoRequesters"}, "Canceled"),
        (
            [request(deletionTimestamp=text(NOW))],
            GUARDED,
            {},
            {"Failed": "CanceledDueToNoRequesters"},
            "Canceled",
        ),
        (
            [request(intent="Withdrawn"), request("other", requester="b.c/d")],
            GUARDED,
            {},
            {},
            "Active",
        ),
        ([request()], None, {"gone_at": at(-9)}, {"TargetEvicted": "PodDeleted"}, "Interrupted"),
        ([request()], None, {"gone_at": NOW}, {}, "Active"),
        ([request()], pod(uid="another"), {"gone_at": at(-9)}, {"TargetEvicted": "PodDeleted"}, "Interrupted"),
        ([], None, {"gone_at": at(-9)}, {"TargetEvicted": "PodDeleted"}, "Interrupted"),
        ([request()], pod(phase="Failed"), {"gone_at": at(-9)}, {"TargetEvicted": "PodTerminal"}, "Interrupted"),
        ([request()], pod(group={"podGroupName": "g"}), {}, {"Failed": "EvictionInvalid"}, "Canceled"),
        ([request()], GUARDED, {"is_duplicate": True}, {"Failed": "EvictionInvalid"}, "Canceled"),
    ],
)
def test_how_it_goes_on(requests, target, how, conditions, first):
    outcome = decide_eviction(eviction(**ACTIVE), requests, target, NOW, **how)
    assert outcome.status is not None
    true = {kind: reason for kind, (status, reason) in reasons(outcome.status).items() if status == "True"}
    assert true == conditions
    assert states(outcome.status.target_responders)[0] == (GUARD, first)


def test_when_all_responders_are_done_and_the_pod_is_there_it_has_failed():
    entries = [{"name": EVICTOR, "startTime": text(NOW), "completionTime": text(at(5))}]
    found = eviction(targets=[(EVICTOR, 100, "Active")], responders=entries)
    outcome = decide_eviction(found, [request()], pod(), at(6))
    assert reasons(outcome.status)["Failed"] == ("True", "NoFurtherResponder")


@pytest.mark.parametrize("kind", ["TargetEvicted", "Failed"])
def test_what_is_over_stays_as_it_is(kind):
    assert decide_eviction(eviction(conditions=[condition(kind)]), [], None, NOW).status is None


def test_a_transition_time_stays_while_the_status_does():
    before = [condition("Failed", is_true=False, since=at(-60)), condition("Other", since=at(-90))]
    found = decide_eviction(eviction(conditions=before), [request()], GUARDED, NOW).status.conditions
    assert {one.type: one.last_transition_time for one in found} == {
        "Failed": at(-60),
        "TargetEvicted": NOW,
        "Other": at(-90),
    }


def test_requesters_are_kept_but_for_the_withdrawn_ones_beyond_the_limit():
    known = [f"gone{number}.example/x" for number in range(MOST_REQUESTERS)]
    status = decide_eviction(eviction(requesters=known), [request()], GUARDED, NOW).status
    assert len(status.requesters) == MOST_REQUESTERS
    assert status.requesters[-1].name == DRAIN
    assert {one.intent.value for one in status.requesters[:-1]} == {"Withdrawn"}


# -- requests ----------------------------------------------------------------------------------------------------------


def test_a_request_needs_one_eviction_and_says_what_becomes_of_it():
    first = decide_request(request(), [request()], [], pod(), NOW)
    assert (first.new_eviction, reasons(first.status)["Failed"]) == ("pod-1-db-0", ("False", "AwaitingEviction"))
    goes_on = decide_request(request(), [request()], [eviction()], None, NOW)
    assert goes_on.new_eviction == ""
    done = eviction(conditions=[condition("TargetEvicted", reason="PodDeleted")])
    outcome = decide_request(request(), [request()], [done], None, NOW)
    assert (reasons(outcome.status)["TargetEvicted"], outcome.new_eviction) == (("True", "PodDeleted"), "")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "Target pod not found."),
        (pod(uid="other"), f"Target pod UID mismatch: expected {UID}, got other."),
        (pod(group={}), "Target pod references a SchedulingGroup. Eviction is currently not supported."),
    ],
)
def test_a_request_that_cannot_be_is_invalid_for_ever(target, message):
    outcome = decide_request(request(), [request()], [], target, NOW)
    [failed] = [one for one in outcome.status.conditions if one.type == "Failed"]
    assert (failed.status, failed.reason, failed.message) == ("True", "EvictionInvalid", message)
    later = replace(request(), status=outcome.status)
    assert decide_request(later, [later], [], pod(), at(60)) == type(outcome)()


def test_a_withdrawn_request_makes_no_eviction():
    mine = request(intent="Withdrawn")
    assert decide_request(mine, [mine], [], pod(), NOW).new_eviction == ""


def test_a_wish_after_a_withdrawal_begins_anew_at_once():
    over = eviction(conditions=[condition("Failed", reason="CanceledDueToNoRequesters")])
    assert decide_request(request(), [request()], [over], None, NOW).new_eviction == "pod-2-db-0"


def test_what_no_responder_could_do_is_tried_again_later_each_time():
    futile = [eviction(conditions=[condition("Failed", reason="NoFurtherResponder")])]
    early = decide_request(request(), [request()], futile, None, at(FIRST_RETRY_SECONDS - 1))
    assert (early.new_eviction, early.again_at) == ("", at(FIRST_RETRY_SECONDS))
    assert decide_request(request(), [request()], futile, None, at(FIRST_RETRY_SECONDS)).new_eviction
    futile.append(eviction("pod-2-db-0", conditions=[condition("Failed", reason="NoFurtherResponder")]))
    assert not decide_request(request(), [request()], futile, None, at(2 * FIRST_RETRY_SECONDS - 1)).new_eviction
    assert decide_request(request(), [request()], futile, None, at(2 * FIRST_RETRY_SECONDS)).new_eviction


def test_which_eviction_of_a_pod_counts():
    old = eviction("a", creationTimestamp="2027-01-15T07:00:00Z")
    new = eviction("b", creationTimestamp="2027-01-15T07:30:00Z")
    failed = eviction("c", conditions=[condition("Failed")])
    done = eviction("d", conditions=[condition("TargetEvicted")])
    assert find_relevant([failed, new, old]) == old
    assert find_relevant([failed, new, done]) == done
    assert find_relevant([failed]) == failed
    assert find_relevant([]) is None


def test_names_of_evictions_are_free_and_short_enough():
    assert name_eviction(request(), [eviction("pod-1-db-0"), eviction("pod-3-db-0")]) == "pod-2-db-0"
    long = request()
    target = replace(long.spec.target.pod, name=f"{'a' * 246}.b{'c' * 6}")
    long = replace(long, spec=replace(long.spec, target=replace(long.spec.target, pod=target)))
    assert name_eviction(long, []) == f"pod-1-{'a' * 246}"


# -- metadata ----------------------------------------------------------------------------------------------------------


def test_labels_say_who_takes_part_and_owners_who_requested():
    found = eviction(targets=[(GUARD, 10001, "Active"), (EVICTOR, 100, "Inactive")])
    change = decide_metadata(found, [request(), request("mine", requester=GUARD)])
    assert change.labels == {DRAIN: "requester", GUARD: "requester-responder", EVICTOR: "responder"}
    assert [one.name for one in change.owners] == ["r", "mine"]


def test_labels_of_requesters_that_are_gone_go_and_owners_stay():
    owner = {"apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest", "name": "r", "uid": "uid-r"}
    found = eviction(
        targets=[(EVICTOR, 100, "Active")],
        labels={DRAIN: "requester", EVICTOR: "responder", "mine.example/x": "kept"},
        ownerReferences=[owner],
    )
    assert decide_metadata(found, [request()]) is None
    change = decide_metadata(found, [])
    assert (change.labels, change.owners) == ({DRAIN: None}, ())
