"""What the two responders do and report: the guard, and the evictor."""

import pytest
from msgspec.structs import replace
from support.guard.evictions import EVICTOR, GUARD, NOW, UID, at, condition, eviction, pod, text

from lastcall.guard.decisions.requesters import ABANDONED_SECONDS, abandoned_at
from lastcall.guard.eviction_requests.decisions.guard_responder import (
    as_removal,
    decide_response,
    is_guards_turn,
    list_abandoned,
    withdraw_request,
)
from lastcall.guard.eviction_requests.decisions.heartbeats import report_progress
from lastcall.guard.eviction_requests.decisions.imperative_evictor import (
    FIRST_RETRY_SECONDS,
    EvictionAttempts,
    count_refusal,
    decide_evictor,
)
from lastcall.model.eviction_requests import ResponderProgress
from lastcall.model.guard_facts import GuardedMetadata, GuardedNamespace, GuardedNode, GuardFacts
from lastcall.model.guard_policy import (
    GuardPolicy,
    GuardPolicyMeta,
    GuardSpec,
    GuardStatus,
    HeldPod,
    PreparationState,
    RequestedRemoval,
)
from lastcall.model.pods import ObjectMetadata, Pod, PodSpec, PodStatus
from lastcall.model.selectors import LabelSelector
from lastcall.names import GUARD_ENABLED, GUARD_USER

# -- the guard ---------------------------------------------------------------------------------------------------------


def active(name, **said):
    """An Eviction in which it is this responder's turn."""
    others = [(EVICTOR, 100, "Inactive")] if name != EVICTOR else []
    entries = [{"name": name, "startTime": text(NOW), **said}, *({"name": one} for one, _, _ in others)]
    return eviction(targets=[(name, 10001 if others else 100, "Active"), *others], responders=entries)


def surroundings(*held, is_guarded=True, **pod_fields):
    metadata = ObjectMetadata(name="db-0", namespace="shop", uid=UID, labels={"app": "db"})
    found = Pod(metadata=metadata, spec=PodSpec(node_name="n1"), status=PodStatus(phase="Running"))
    policy = GuardPolicy(
        metadata=GuardPolicyMeta(name="db", namespace="shop", uid="uid-policy"),
        spec=GuardSpec(
            provider={"http": {}}, selector=LabelSelector(match_labels={"app": "db" if is_guarded else "other"})
        ),
        status=GuardStatus(pods=held),
    )
    return GuardFacts(
        pods=(replace(found, **pod_fields),),
        namespaces={"shop": GuardedNamespace(metadata=GuardedMetadata(name="shop", labels={GUARD_ENABLED: "true"}))},
        nodes={"n1": GuardedNode(metadata=GuardedMetadata(name="n1"))},
        policies=(policy,),
    )


def entry(state=PreparationState.PREPARING, **rest):
    made = HeldPod(name="db-0", uid=UID, state=state, since=NOW, last_request_at=NOW)
    return replace(made, request=RequestedRemoval.EVICTION, requested_by="EvictionRequest of acme.io/drain", **rest)


def test_the_first_answer_begins_the_preparation():
    response = decide_response(active(GUARD), surroundings(), NOW)
    record = response.verdict.record
    assert (record.state, record.requested_by) == (PreparationState.PREPARING, "EvictionRequest of acme.io/drain")
    assert response.progress.heartbeat_time == NOW
    assert response.progress.completion_time is None
    assert "its application begins to prepare" in response.progress.message
    assert not response.is_end


def test_while_the_application_prepares_it_says_how_far_it_is_and_when_it_will_be_ready():
    facts = surroundings(entry(percent=40, eta_seconds=90, message="moves its jobs"))
    progress = decide_response(active(GUARD), facts, at(25)).progress
    assert "moves its jobs (40 % done" in progress.message
    assert progress.expected_completion_time == at(115)


def test_when_the_application_is_ready_the_guard_gives_its_turn_away():
    facts = surroundings(entry(PreparationState.READY, verified_at=at(60), ready_at=at(60)))
    response = decide_response(active(GUARD), facts, at(61))
    assert response.is_end
    assert response.progress.message == "the application is ready"
    stale = decide_response(active(GUARD), facts, at(80))
    assert not stale.is_end, "readiness counts for ten seconds"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (surroundings(is_guarded=False), "no GuardPolicy guards the pod"),
        (GuardFacts(), "the pod is gone"),
        (surroundings(status=PodStatus(phase="Succeeded")), "the pod has ended"),
        (
            surroundings(metadata=ObjectMetadata(name="db-0", namespace="shop", uid="new", labels={"app": "db"})),
            "the pod is gone, and another one has its name",
        ),
    ],
)
def test_what_is_not_held_is_declined_at_once(facts, message):
    response = decide_response(active(GUARD), facts, at(3))
    assert response.is_end
    assert response.progress.message == message


@pytest.mark.parametrize("state", ["Inactive", "Interrupted", "Canceled", "Completed"])
def test_out_of_turn_it_does_nothing(state):
    found = eviction(targets=[(GUARD, 10001, state)], responders=[{"name": GUARD, "startTime": text(NOW)}])
    assert not is_guards_turn(found)
    assert decide_response(found, surroundings(), NOW).verdict is None


def test_what_nobody_requests_any_more_is_given_up_once():
    mine = entry(PreparationState.PREPARING)
    [policy] = surroundings(mine).policies
    assert list(list_abandoned([policy], [active(GUARD)], NOW)) == []
    over = eviction(conditions=[condition("Failed")])
    for evictions in ([], [over]):
        [(_, held)] = list_abandoned([policy], evictions, NOW)
        given_up = withdraw_request(held, NOW)
        assert abandoned_at(given_up, policy) <= NOW
        assert withdraw_request(given_up, NOW) is None


@pytest.mark.parametrize(
    ("held", "is_withdrawn"),
    [
        (entry(), True),
        (replace(entry(), requested_by=GUARD_USER), True),
        (replace(entry(), requested_by="kubernetes-admin"), False),
        (replace(entry(), request=RequestedRemoval.DELETE), False),
        (replace(entry(), state=PreparationState.RELEASED), False),
        (replace(entry(), last_request_at=at(-ABANDONED_SECONDS)), False),
    ],
)
def test_only_requests_that_stand_for_an_eviction_are_withdrawn(held, is_withdrawn):
    assert (withdraw_request(held, NOW) is not None) is is_withdrawn


def test_an_eviction_is_judged_for_exactly_its_pod():
    removal = as_removal(active(GUARD))
    assert (removal.namespace, removal.name, removal.precondition) == ("shop", "db-0", UID)


# -- the evictor -------------------------------------------------------------------------------------------------------


def test_it_evicts_when_it_is_its_turn_and_not_again_while_the_pod_terminates():
    assert decide_evictor(active(EVICTOR), pod(), EvictionAttempts(), NOW).is_evicting
    assert not decide_evictor(active(GUARD), pod(), EvictionAttempts(), NOW).is_evicting
    terminating = pod(deletionTimestamp=text(at(30)))
    turn = decide_evictor(active(EVICTOR), terminating, EvictionAttempts(), NOW)
    assert not turn.is_evicting
    assert (turn.progress.message, turn.progress.expected_completion_time) == ("the pod is terminating", at(30))


@pytest.mark.parametrize(
    ("state", "conditions"),
    [("Inactive", []), ("Canceled", []), ("Interrupted", []), ("Active", ["Failed"]), ("Active", ["TargetEvicted"])],
)
def test_it_evicts_in_its_turn_alone(state, conditions):
    found = eviction(
        targets=[(EVICTOR, 100, state)],
        responders=[{"name": EVICTOR, "startTime": text(NOW)}],
        conditions=[condition(one) for one in conditions],
    )
    assert not decide_evictor(found, pod(), EvictionAttempts(), NOW).is_evicting


def test_a_refusal_is_told_and_tried_again_later_each_time():
    attempts = count_refusal(EvictionAttempts(), "PodDisruptionBudget db", NOW)
    turn = decide_evictor(active(EVICTOR), pod(), attempts, at(1))
    assert turn.progress.message == "the Eviction API refuses (attempt 1): PodDisruptionBudget db"
    assert (turn.is_evicting, turn.again_at) == (False, at(FIRST_RETRY_SECONDS))
    assert decide_evictor(active(EVICTOR), pod(), attempts, at(FIRST_RETRY_SECONDS)).is_evicting
    for _ in range(30):
        attempts = count_refusal(attempts, "no", NOW)
    assert not decide_evictor(active(EVICTOR), pod(), attempts, at(599)).is_evicting
    assert decide_evictor(active(EVICTOR), pod(), attempts, at(600)).is_evicting


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "the pod has been deleted"),
        (pod(uid="another"), "the pod has been deleted"),
        (pod(phase="Succeeded"), "the pod has ended (Succeeded)"),
        (pod(owner="DaemonSet"), "a pod of a DaemonSet is not evicted: it would be made again at the same node"),
        (
            pod(annotations={"kubernetes.io/config.mirror": "x"}),
            "a mirror pod is not evicted: its static pod goes on",
        ),
    ],
)
def test_when_there_is_nothing_to_evict_it_completes(target, message):
    turn = decide_evictor(active(EVICTOR), target, EvictionAttempts(), at(4))
    assert (turn.progress.message, turn.progress.completion_time) == (message, at(4))
    assert not turn.is_evicting


def test_it_says_nothing_once_it_has_completed():
    done = active(EVICTOR, completionTime=text(at(1)))
    assert decide_evictor(done, None, EvictionAttempts(), at(9)).progress is None


# -- heartbeats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "seconds", "how", "is_due"),
    [
        ({"start_time": NOW}, 1, {"message": "a"}, True),
        ({"start_time": NOW, "heartbeat_time": NOW, "message": "a"}, 179, {"message": "a"}, False),
        ({"start_time": NOW, "heartbeat_time": NOW, "message": "a"}, 180, {"message": "a"}, True),
        ({"start_time": NOW, "heartbeat_time": NOW, "message": "a"}, 19, {"message": "b"}, False),
        ({"start_time": NOW, "heartbeat_time": NOW, "message": "a"}, 20, {"message": "b"}, True),
        ({"start_time": NOW, "heartbeat_time": NOW}, 1, {"message": "a", "is_complete": True}, True),
        ({"start_time": NOW, "completion_time": NOW}, 600, {"message": "a"}, False),
        ({}, 600, {"message": "a"}, False),
    ],
)
def test_when_a_report_is_due(before, seconds, how, is_due):
    assert (report_progress(ResponderProgress(name=GUARD, **before), at(seconds), **how) is not None) is is_due


def test_a_clock_that_is_behind_reports_no_time_before_the_start():
    said = report_progress(ResponderProgress(name=GUARD, start_time=at(20)), NOW, message="a", expected_at=NOW)
    assert (said.heartbeat_time, said.expected_completion_time) == (at(20), at(20))
