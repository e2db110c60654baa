"""What the guard answers, by the shape of the request and by how far the application has prepared."""

import pytest
from support.guard.reviews import (
    BOTH,
    NOW,
    answer,
    at,
    deletion,
    eviction,
    held,
    obj,
    outcome,
    pod,
    policy,
    ready,
    state,
)


def unnamed(review):
    """As for each pod of a deleted collection."""
    review["request"]["name"] = ""
    return review


@pytest.mark.parametrize(
    ("review", "expected"),
    [
        (deletion(name="db-0"), (False, "not-prepared")),
        (deletion(pod() | {"metadata": pod()["metadata"] | {"uid": "other"}}), (False, "not-prepared")),
        (deletion() | {"apiVersion": "admission.k8s.io/v1beta1"}, (False, "not-prepared")),
        (eviction(policy="policy/v1beta1"), (False, "not-prepared")),
        (eviction(version="admission.k8s.io/v1beta1"), (False, "not-prepared")),
        (eviction("nobody"), (True, "not-found")),
        (eviction(object={"metadata": {"name": "db-0"}}), (False, "not-prepared")),
        (eviction(object=None), (False, "not-prepared")),
        (unnamed(eviction()), (False, "not-prepared")),
        (unnamed(deletion()), (False, "not-prepared")),
        (eviction(namespace="empty"), (True, "not-found")),
        (deletion(oldObject=None), (False, "not-prepared")),
        (deletion(oldObject=None, name="nobody"), (True, "not-found")),
        (deletion(options={"preconditions": {"uid": "uid-db-0"}}), (False, "not-prepared")),
        (deletion(options={"preconditions": {"uid": "older"}}), (True, "precondition")),
        (deletion(options={"preconditions": {"uid": None}}), (False, "not-prepared")),
        (deletion(options={"preconditions": {"resourceVersion": "7"}}), (False, "not-prepared")),
        (deletion(options={"gracePeriodSeconds": 0}), (False, "not-prepared")),
        (eviction(options={"preconditions": {"uid": "uid-db-0"}}), (False, "not-prepared")),
        (eviction(options={"preconditions": {"uid": "older"}}), (True, "precondition")),
        (deletion() | {"unknown": 1}, (False, "not-prepared")),
    ],
)
def test_a_review_is_understood_in_each_shape(review, expected):
    assert outcome(review) == expected


@pytest.mark.parametrize(
    "review",
    [
        deletion(dryRun=True),
        deletion(options={"dryRun": ["All"]}),
        eviction(dryRun=True),
        eviction(options={"dryRun": ["All"]}),
    ],
)
@pytest.mark.parametrize(("entries", "allowed"), [([], False), ([ready()], True)])
def test_a_dry_run_is_answered_truthfully_in_each_of_its_places(review, entries, allowed):
    assert outcome(review, state(policy(*entries)))[0] is allowed


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": "CREATE"},
        {"operation": "UPDATE"},
        {"subResource": "status"},
        {"resource": {"group": "apps", "version": "v1", "resource": "pods"}},
        {"resource": {"group": "", "version": "v1", "resource": "services"}},
    ],
)
def test_anything_but_the_removal_of_a_pod_is_allowed(fields):
    assert answer(deletion(**fields))["response"]["allowed"]


@BOTH
def test_a_refusal_can_be_tried_again_and_says_what_is_waited_for(ask):
    entry = held("Preparing", percent=37, etaSeconds=90, message="moving 41 leaders", requestedBy="ann")
    response = answer(ask(), state(policy(entry, holdLimit="30m")))["response"]
    assert response["uid"] == "review-1"
    status = response["status"]
    assert (status["code"], status["reason"], status["status"]) == (429, "TooManyRequests", "Failure")
    assert "details" not in status, "no retryAfterSeconds: client-go would wait in silence"
    assert status["message"] == (
        "pod shop/db-0 is held by GuardPolicy db: moving 41 leaders (37 % done, since 2026-11-28T11:59:00Z, requested by"
        " ann, about 1m30s left, limit 2026-11-28T12:29:00Z, held on after it); see: kubectl get guardpolicy db"
        " --namespace shop -o yaml"
    )


@pytest.mark.parametrize("is_dry_run", [False, True])
@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ({"exec": {"prepare": ["true"]}}, "its application begins to prepare, which cannot be undone; see"),
        ({"exec": {"prepare": ["true"], "cancel": ["true"], "reversible": True}}, "begins to prepare; see"),
    ],
)
def test_a_refusal_says_that_there_is_no_way_back(is_dry_run, provider, said):
    """A dry run says it before anything has begun."""
    found = answer(deletion(dryRun=is_dry_run), state(policy(provider=provider)))["response"]
    assert said in found["status"]["message"]


def test_an_answer_has_the_version_of_its_question():
    assert answer(deletion(version="admission.k8s.io/v1beta1"))["apiVersion"] == "admission.k8s.io/v1beta1"
    assert answer(deletion())["apiVersion"] == "admission.k8s.io/v1"


@BOTH
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], (False, "not-prepared")),
        ([held("Preparing")], (False, "preparing")),
        ([held("Stalled")], (False, "stalled")),
        ([held("Unhealthy")], (False, "unhealthy")),
        ([held("Released")], (False, "released")),
        ([held("Ready")], (False, "ready")),
        ([ready()], (True, "ready")),
        ([ready(ago=0)], (True, "ready")),
        ([ready(ago=10)], (True, "ready")),
        ([ready(ago=11)], (False, "ready")),
        ([ready(ago=-10)], (True, "ready")),
        ([ready(ago=-11)], (False, "ready")),
        ([ready(uid="earlier")], (False, "waiting")),
        ([held("Preparing", verifiedAt=at(0))], (False, "preparing")),
        ([held("Stalled", verifiedAt=at(0))], (False, "stalled")),
    ],
    ids=str,
)
def test_only_a_verified_readiness_lets_the_pod_go(ask, entries, expected):
    assert outcome(ask(), state(policy(*entries))) == expected


@BOTH
@pytest.mark.parametrize("name", ["Stalled", "Preparing", "Unhealthy"])
@pytest.mark.parametrize(
    ("spec", "since", "allowed"),
    [
        ({"holdLimit": "30m", "onLimit": "Allow"}, -1800, True),
        ({"holdLimit": "30m", "onLimit": "Allow"}, -1799, False),
        ({"holdLimit": "30m", "onLimit": "Hold"}, -9999, False),
        ({"holdLimit": "30m"}, -9999, False),
        ({"onLimit": "Allow"}, -9999, False),
    ],
)
def test_a_limit_ends_the_hold_only_if_the_policy_says_so(ask, name, spec, since, allowed):
    found = outcome(ask(), state(policy(held(name, since=since), **spec)))
    assert found == ((True, "hold-limit") if allowed else (False, name.lower()))


def test_a_hold_that_has_ended_has_no_limit():
    """A request that was given up, and comes again, begins a preparation."""
    found = held("Released", since=-9999, unreachableSince=at(-9999))
    limits = {"holdLimit": "30m", "onLimit": "Allow", "onUnreachable": "Allow"}
    assert outcome(deletion(), state(policy(found, **limits))) == (False, "released")


def test_an_entry_without_its_beginning_is_not_let_go():
    entry = {"name": "db-0", "uid": "uid-db-0", "state": "Preparing"}
    assert outcome(deletion(), state(policy(entry, holdLimit="1s", onLimit="Allow"))) == (False, "preparing")


def budget(name="db", allowed=0, **metadata):
    return obj(
        "PodDisruptionBudget",
        name,
        version="policy/v1",
        namespace="shop",
        spec={"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1},
        status={
            "disruptionsAllowed": allowed,
            "currentHealthy": 2,
            "desiredHealthy": 2,
            "expectedPods": 3,
            "observedGeneration": 0,
        },
        **metadata,
    )


def message(review, cluster):
    return answer(review, cluster)["response"]["status"]["message"]


def test_no_preparation_begins_for_an_eviction_that_a_budget_would_refuse():
    assert "does not prepare yet: PodDisruptionBudget db: " in message(eviction(), state(budget()))
    assert "needs 2 healthy pods and has 2 currently" in message(eviction(), state(budget()))
    assert "begins to prepare" in message(eviction(), state(budget(allowed=1)))
    assert "begins to prepare" in message(deletion(), state(budget())), "a budget does not stop a DELETE"


@BOTH
def test_a_policy_that_cannot_be_followed_says_so_at_the_first_request(ask):
    """Nothing is prepared for it, so "begins to prepare" would have a person wait for ever."""
    fault = "spec.provider.redis.prt: 6379: unknown field, did you mean port?"
    wrong = policy()
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "Invalid",
        "message": fault,
        "lastTransitionTime": at(-60),
    }
    wrong["status"]["conditions"] = [condition]
    assert f"the guard cannot follow this policy: {fault}; see: " in message(ask(), state(wrong))


@pytest.mark.parametrize(
    ("selector", "said"),
    [({"matchLabels": {"app": "db"}}, "does not prepare yet: PodDisruptionBudget db: "), ({}, "begins to prepare")],
)
def test_a_budget_of_v1beta1_covers_nothing_by_an_empty_selector(selector, said):
    beta = {**budget(), "apiVersion": "policy/v1beta1", "spec": {"selector": selector}}
    assert said in message(eviction(), state(beta))


def test_two_budgets_make_an_eviction_impossible_and_are_named():
    assert "PodDisruptionBudget a, b: several budgets" in message(eviction(), state(budget("a", 1), budget("b", 1)))


def test_a_ready_pod_is_let_go_and_the_budget_decides_by_itself():
    assert outcome(eviction(), state(budget(), policy(ready()))) == (True, "ready")


def test_the_time_is_the_callers():
    cluster = state(policy(ready(ago=0)))
    assert outcome(deletion(), cluster, NOW)[0]
    assert not outcome(deletion(), cluster, NOW.replace(minute=1))[0]
