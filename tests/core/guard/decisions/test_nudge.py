"""Whether the guard carries out a deletion itself, for a controller in backoff."""

from datetime import timedelta

import pytest
from support.guard.reviews import CONTROLLER, NOW, PERSON, held, obj, pod, policy, state
from support.guard.reviews import facts as read_facts

from lastcall.guard.decisions.nudge import is_evicted_by_taint
from lastcall.guard.decisions.preparation import PreparationStep, decide_preparation
from lastcall.model.guard_facts import GuardedTaint, PodTaints
from lastcall.model.tolerations import Toleration

TAINT_EVICTION = CONTROLLER | {"username": "system:serviceaccount:kube-system:node-controller"}
REPLICA_SET = CONTROLLER | {"username": "system:serviceaccount:kube-system:replicaset-controller"}


def step(*objects, user=CONTROLLER, request="Delete", verified=-1, ready=-5, subject=None, checked=-1):
    """The step that follows while the next question is not due."""
    entry = held(
        "Ready",
        verifiedAt=(NOW + timedelta(seconds=verified)).isoformat(),
        readyAt=(NOW + timedelta(seconds=ready)).isoformat(),
        preparedAt=(NOW - timedelta(seconds=60)).isoformat(),
        requestedBy=user["username"],
        request=request,
    )
    facts = read_facts(
        state(subject or pod(labels={"app": "db", "controller-revision-hash": "old"}), policy(entry), *objects)
    )
    found = facts.policies[0]
    return decide_preparation(found.status.pods[0], found, facts, NOW, checked_at=NOW + timedelta(seconds=checked)).step


def stateful_set(replicas=3, revision="new", start=None, **metadata):
    spec = {"replicas": replicas, **({"ordinals": {"start": start}} if start is not None else {})}
    status = {"replicas": 3, "updateRevision": revision}
    return obj("StatefulSet", "db", version="apps/v1", namespace="shop", spec=spec, status=status, **metadata)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (step(stateful_set()), "nudge"),
        (step(stateful_set(revision="old")), "wait"),
        (step(stateful_set(revision="")), "wait"),
        (step(stateful_set(replicas=2, revision="old")), "wait"),
        (step(stateful_set(replicas=3, revision="old", start=1)), "nudge"),
        (step(stateful_set(), user=PERSON), "wait"),
        (step(stateful_set(), request="Eviction"), "wait"),
        (step(stateful_set(), verified=-30), "wait"),
        (step(stateful_set(), ready=-1), "wait"),
        (step(stateful_set(), checked=-3), "check"),
        (step(stateful_set(deletionTimestamp="2026-11-28T11:00:00Z")), "wait"),
        (step(user=TAINT_EVICTION, subject=pod(owner="")), "nudge"),
        (step(user=TAINT_EVICTION, verified=-30), "wait"),
        (step(user=TAINT_EVICTION, request="Eviction"), "wait"),
        (step(user=TAINT_EVICTION, subject=pod(deletionTimestamp="2026-11-28T11:00:00Z")), "wait"),
    ],
)
def test_a_stateful_set_that_still_wants_it_is_spared_the_wait(made, expected):
    assert made is PreparationStep(expected)


@pytest.mark.parametrize(("has", "wants", "expected"), [(3, 2, "nudge"), (2, 2, "wait"), (1, 2, "wait")])
def test_a_replica_set_is_spared_the_wait_while_it_has_too_many_pods(has, wants, expected):
    owner = obj(
        "ReplicaSet", "db", version="apps/v1", namespace="shop", spec={"replicas": wants}, status={"replicas": has}
    )
    found = step(owner, user=REPLICA_SET, subject=pod(owner="ReplicaSet"))
    assert found is PreparationStep(expected)


def taint(effect="NoExecute", *, since=-60.0):
    added = None if since is None else NOW + timedelta(seconds=since)
    return GuardedTaint(key="k", effect=effect, time_added=added)


def tolerated(seconds):
    return Toleration(key="k", operator="Exists", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        ([taint()], [], True),
        ([], [], False),
        ([taint("NoSchedule")], [], False),
        ([taint()], [tolerated(None)], False),
        ([taint()], [tolerated(60)], True),
        ([taint()], [tolerated(61)], False),
        ([taint(since=None)], [tolerated(1)], False),
        ([taint(since=None)], [], True),
        ([taint("NoSchedule"), taint()], [], True),
    ],
)
def test_a_taint_evicts_as_long_as_it_applies(taints, tolerations, expected):
    """It may have been removed and added again since the request: then the pod has its whole time again."""
    assert is_evicted_by_taint(PodTaints(taints=tuple(taints), tolerations=tuple(tolerations)), NOW) is expected
