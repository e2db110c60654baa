"""Which pods are guarded, and by which policy."""

import pytest
from support.guard.reviews import (
    BOTH,
    answer,
    ask_for,
    deletion,
    obj,
    outcome,
    pod,
    policy,
    ready,
    state,
)


@BOTH
@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (state(without=["GuardPolicy"]), "not-guarded"),
        (state(policy(selector={"matchLabels": {"app": "web"}})), "not-guarded"),
        (state(policy(namespace="other")), "not-guarded"),
        (state(policy(selector=None)), "not-guarded"),
        (state(obj("Namespace", "shop")), "not-guarded"),
        (state(obj("Namespace", "shop", labels={"lastcall.dev/guard-enabled": "false"})), "not-guarded"),
        (state(obj("Namespace", "shop", labels={"lastcall.dev/guard-enabled": "yes"})), "not-guarded"),
    ],
)
def test_a_pod_that_no_policy_guards_goes(ask, cluster, reason):
    assert outcome(ask(), cluster) == (True, reason)


@BOTH
@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {"app": "db"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    ],
)
def test_a_pod_that_a_policy_selects_is_held(ask, selector):
    assert outcome(ask(), state(policy(selector=selector))) == (False, "not-prepared")


@BOTH
def test_an_annotation_names_the_policy(ask):
    named = pod(annotations={"lastcall.dev/guard": "other"})
    review, more = ask_for(ask, named)
    other = policy(ready(), name="other", selector=None)
    assert outcome(review, state(*more, other)) == (True, "ready")


@BOTH
def test_an_annotation_that_names_no_policy_guards_nothing_and_says_so(ask):
    review, more = ask_for(ask, pod(annotations={"lastcall.dev/guard": "typo"}))
    response = answer(review, state(*more, without=["GuardPolicy"]))["response"]
    assert response["allowed"]
    assert "names GuardPolicy 'typo', which does not exist" in response["warnings"][0]


@BOTH
def test_an_annotation_that_names_no_policy_does_not_end_the_hold_of_one_that_selects_the_pod(ask):
    review, more = ask_for(ask, pod(annotations={"lastcall.dev/guard": "typo"}))
    response = answer(review, state(*more))["response"]
    assert not response["allowed"]
    assert "is held by GuardPolicy db" in response["status"]["message"]
    assert "names GuardPolicy 'typo', which does not exist" in response["warnings"][0]


@BOTH
def test_of_two_policies_the_first_by_name_holds_and_the_other_is_named(ask):
    response = answer(ask(), state(policy(name="a"), policy(ready(), name="db")))["response"]
    assert not response["allowed"]
    assert "is selected by GuardPolicy db too; a holds" in response["warnings"][0]


@pytest.mark.parametrize("namespace", ["kube-system", "lastcall-system"])
def test_pods_that_the_cluster_needs_are_never_held(namespace):
    enabled = obj("Namespace", namespace, labels={"lastcall.dev/guard-enabled": "true"})
    cluster = state(enabled, policy(namespace=namespace))
    assert outcome(deletion(pod(namespace=namespace)), cluster) == (True, "not-guarded")


@BOTH
def test_a_namespace_that_is_not_known_is_one_that_the_api_server_asks_about(ask):
    assert outcome(ask(), state(without=["Namespace"])) == (False, "not-prepared")
