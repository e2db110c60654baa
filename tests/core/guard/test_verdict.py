"""What the guard answers to the API server: the table of who asks for what, in which state of cluster and application."""

import pytest
from support.guard.reviews import (
    CONTROLLER,
    KUBELET,
    NOW,
    PERSON,
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

RELEASER = {"username": "system:serviceaccount:lastcall-system:lastcall-guard-releaser"}
AGENT = {
    "username": "system:serviceaccount:lastcall-system:lastcall-agent",
    "extra": {"authentication.kubernetes.io/node-name": ["n1"]},
}
MARKED = {"lastcall.dev/node-shutdown": '{"bootId":"b","cordoned":true}'}
BOTH = pytest.mark.parametrize("ask", [deletion, eviction], ids=["delete", "evict"])


def ask_for(ask, subject, **rest):
    """The pod stands in the review of a DELETE, and in the cluster for an eviction."""
    name = subject["metadata"]["name"]
    return (ask(subject, **rest), []) if ask is deletion else (ask(name, **rest), [subject])


# -- guarded or not ----------------------------------------------------------------------------------------------------


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
    response = answer(review, state(*more))["response"]
    assert response["allowed"]
    assert "names GuardPolicy typo, which does not exist" in response["warnings"][0]


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


# -- exemptions --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (pod(deletionTimestamp=at(-5)), "terminating"),
        (pod(phase="Succeeded"), "finished"),
        (pod(phase="Failed"), "finished"),
        (pod(phase="Pending", node=""), "unscheduled"),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), "mirror"),
        (pod(node="gone"), "no-node"),
        (pod(owner="ReplicaSet"), "owner-gone"),
        (pod(annotations={"lastcall.dev/guard-bypass-until": at(60)}), "bypass"),
        (pod(annotations={"lastcall.dev/guard-bypass-until": "2026-11-28T14:00:00+01:00"}), "bypass"),
    ],
)
def test_a_pod_whose_deletion_nobody_can_prepare_goes(ask, subject, reason):
    review, more = ask_for(ask, subject)
    assert outcome(review, state(*more)) == (True, reason)


@BOTH
@pytest.mark.parametrize(
    "subject",
    [
        pod(),
        pod(owner=""),
        pod(phase="Pending"),
        pod(phase="Unknown"),
        pod(annotations={"lastcall.dev/guard-bypass-until": at(-1)}),
        pod(annotations={"lastcall.dev/guard-bypass-until": at(0)}),
        pod(annotations={"lastcall.dev/guard-bypass-until": "tomorrow"}),
        pod(annotations={"lastcall.dev/guard-bypass-until": "2026-11-28T13:00:00"}),
        pod(annotations={"lastcall.dev/guard-bypass-until": "9999-01-01T00:00:00Z"}),
        pod(annotations={"lastcall.dev/guard-bypass-until": ""}),
    ],
    ids=str,
)
def test_any_other_pod_is_held(ask, subject):
    review, more = ask_for(ask, subject)
    assert outcome(review, state(*more)) == (False, "not-prepared")


@BOTH
def test_a_bypass_that_cannot_be_read_is_said(ask):
    review, more = ask_for(ask, pod(annotations={"lastcall.dev/guard-bypass-until": "tomorrow"}))
    assert "'tomorrow' is not an RFC 3339 time" in answer(review, state(*more))["response"]["warnings"][0]


@BOTH
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            obj("Namespace", "shop", labels={"lastcall.dev/guard-enabled": "true"}, deletionTimestamp=at(-1)),
            "namespace",
        ),
        (
            obj("Namespace", "shop", labels={"lastcall.dev/guard-enabled": "true"}, status={"phase": "Terminating"}),
            "namespace",
        ),
        (
            obj(
                "Namespace",
                "shop",
                labels={"lastcall.dev/guard-enabled": "true"},
                annotations={"lastcall.dev/guard-bypass-until": at(9)},
            ),
            "bypass",
        ),
        (obj("Node", "n1", annotations={"lastcall.dev/guard-bypass-until": at(9)}), "bypass"),
        (
            obj("Node", "n1", spec={"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}),
            "out-of-service",
        ),
        (obj("StatefulSet", "db", version="apps/v1", namespace="shop", deletionTimestamp=at(-1)), "owner-deleted"),
        (obj("StatefulSet", "db", version="apps/v1", namespace="shop", spec={"replicas": 0}), "scaled-to-zero"),
    ],
)
def test_a_pod_whose_surroundings_end_goes(ask, changed, reason):
    assert outcome(ask(), state(changed)) == (True, reason)


@BOTH
@pytest.mark.parametrize(
    "taint", ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"]
)
def test_a_node_that_is_only_silent_exempts_nothing(ask, taint):
    """A database behind a stopped kubelet still writes."""
    node = obj("Node", "n1", spec={"taints": [{"key": taint, "effect": "NoExecute"}]})
    node["status"] = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    assert outcome(ask(), state(node)) == (False, "not-prepared")


def chain(**above):
    """A custom resource above the StatefulSet."""
    owned = [{"kind": "Database", "name": "db", "uid": "uid-Database", "controller": True}]
    middle = obj("StatefulSet", "db", version="apps/v1", namespace="shop", spec={"replicas": 3}, ownerReferences=owned)
    return (middle, obj("Database", "db", version="example.com/v1", namespace="shop", **above))


@BOTH
@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        (chain(), (False, "not-prepared")),
        (chain()[:1], (True, "owner-gone")),
        (chain(deletionTimestamp=at(-1)), (True, "owner-deleted")),
        (chain(spec={"replicas": 0}), (True, "scaled-to-zero")),
        (chain(spec={"replicas": 2}), (False, "not-prepared")),
    ],
)
def test_the_topmost_owner_counts_too(ask, objects, expected):
    assert outcome(ask(), state(*objects)) == expected


@BOTH
@pytest.mark.parametrize(("replicas", "expected"), [(3, (False, "not-prepared")), (0, (True, "scaled-to-zero"))])
def test_an_old_replica_set_without_replicas_is_no_end_of_its_deployment(ask, replicas, expected):
    owned = [{"kind": "Deployment", "name": "db", "uid": "uid-Deployment", "controller": True}]
    old = obj("ReplicaSet", "db", version="apps/v1", namespace="shop", spec={"replicas": 0}, ownerReferences=owned)
    above = obj("Deployment", "db", version="apps/v1", namespace="shop", spec={"replicas": replicas})
    review, more = ask_for(ask, pod(owner="ReplicaSet"))
    assert outcome(review, state(*more, old, above)) == expected


@BOTH
def test_owners_in_a_circle_end(ask):
    owned = [{"kind": "StatefulSet", "name": "db", "uid": "uid-StatefulSet", "controller": True}]
    circle = obj("StatefulSet", "db", version="apps/v1", namespace="shop", ownerReferences=owned)
    assert outcome(ask(), state(circle)) == (False, "not-prepared")


@BOTH
def test_an_owner_that_does_not_control_is_none(ask):
    loose = pod(owner="", ownerReferences=[{"kind": "ConfigMap", "name": "x", "uid": "uid-x"}])
    review, more = ask_for(ask, loose)
    assert outcome(review, state(*more)) == (False, "not-prepared")


# -- who asks ----------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (RELEASER, (True, "releaser")),
        (KUBELET, (True, "kubelet")),
        ({"username": "system:node:n2"}, (True, "kubelet")),
        (PERSON, (False, "not-prepared")),
        (CONTROLLER, (False, "not-prepared")),
        ({}, (False, "not-prepared")),
        ({"username": ""}, (False, "not-prepared")),
        ({"username": "system:admin", "groups": ["system:masters"]}, (False, "not-prepared")),
        ({"username": "system:nodes"}, (False, "not-prepared")),
        ({"username": "x:system:node:n1"}, (False, "not-prepared")),
        ({"username": "system:serviceaccount:lastcall-system:lastcall-controller"}, (False, "not-prepared")),
        ({"username": "system:serviceaccount:lastcall-system:lastcall-guard"}, (False, "not-prepared")),
        ({"username": "system:serviceaccount:other:lastcall-guard-releaser"}, (False, "not-prepared")),
        ({"username": "system:serviceaccount:kube-system:generic-garbage-collector"}, (False, "not-prepared")),
        ({"username": "system:serviceaccount:kube-system:pod-garbage-collector"}, (False, "not-prepared")),
        ({"username": "system:kube-scheduler"}, (False, "not-prepared")),
    ],
    ids=str,
)
def test_only_the_releaser_and_kubelets_are_exempt(ask, user, expected):
    assert outcome(ask(user=user)) == expected


@BOTH
@pytest.mark.parametrize(
    ("user", "node", "expected"),
    [
        (AGENT, obj("Node", "n1", annotations=MARKED), (True, "node-shutdown")),
        (AGENT, obj("Node", "n1"), (False, "not-prepared")),
        ({"username": AGENT["username"]}, obj("Node", "n1", annotations=MARKED), (False, "not-prepared")),
        (
            AGENT | {"extra": {"authentication.kubernetes.io/node-name": ["n2"]}},
            obj("Node", "n1", annotations=MARKED),
            (False, "not-prepared"),
        ),
        (PERSON | {"extra": AGENT["extra"]}, obj("Node", "n1", annotations=MARKED), (False, "not-prepared")),
    ],
)
def test_an_agent_ends_the_pods_of_its_own_node_while_that_shuts_down(ask, user, node, expected):
    assert outcome(ask(user=user), state(node)) == expected


# -- the shape of the request ------------------------------------------------------------------------------------------


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
        " ann, about 1m30s left, limit 2026-11-28T12:29:00Z, held on after it); see: kubectl lastcall guard status db-0"
        " --namespace shop"
    )


def test_an_answer_has_the_version_of_its_question():
    assert answer(deletion(version="admission.k8s.io/v1beta1"))["apiVersion"] == "admission.k8s.io/v1beta1"
    assert answer(deletion())["apiVersion"] == "admission.k8s.io/v1"


# -- how far the application is ----------------------------------------------------------------------------------------


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


def test_an_entry_without_its_beginning_is_not_let_go():
    entry = {"name": "db-0", "uid": "uid-db-0", "state": "Preparing"}
    assert outcome(deletion(), state(policy(entry, holdLimit="1s", onLimit="Allow"))) == (False, "preparing")


# -- one at a time -----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", ["Preparing", "Ready", "Stalled"])
def test_another_pod_of_the_application_waits_and_the_one_in_front_is_named(ask, name):
    other = held(name, "db-1")
    response = answer(ask(), state(policy(other)))["response"]
    assert not response["allowed"]
    assert f"pod db-1 of the same application is in front ({name})" in response["status"]["message"]


@BOTH
@pytest.mark.parametrize("name", ["Released", "Unhealthy"])
def test_a_pod_without_a_place_blocks_no_other(ask, name):
    assert outcome(ask(), state(policy(held(name, "db-1"), ready()))) == (True, "ready")


@pytest.mark.parametrize(("first", "allowed"), [("db-0", ["db-0"]), ("db-1", ["db-1"])])
def test_of_two_that_are_ready_the_one_that_was_asked_for_first_goes(first, allowed):
    entries = [ready(f"db-{number}", since=-90 if f"db-{number}" == first else -60) for number in range(2)]
    cluster = state(policy(*entries))
    assert [name for name in ("db-0", "db-1") if outcome(eviction(name), cluster)[0]] == allowed


def test_of_two_asked_for_in_the_same_second_exactly_one_goes():
    cluster = state(policy(ready("db-0"), ready("db-1")))
    assert sum(outcome(deletion(pod(name)), cluster)[0] for name in ("db-0", "db-1")) == 1


@pytest.mark.parametrize(
    ("most", "allowed"), [(1, 1), (2, 2), (3, 3), ("1%", 1), ("34%", 2), ("66%", 2), ("67%", 3), ("100%", 3)]
)
def test_as_many_as_the_policy_says_go_at_a_time(most, allowed):
    cluster = state(policy(*(ready(f"db-{number}") for number in range(3)), maxUnavailable=most))
    assert sum(outcome(eviction(f"db-{number}"), cluster)[0] for number in range(3)) == allowed


def test_a_pod_that_is_gone_keeps_its_place_until_it_is_released():
    gone = held("Ready", "db-7", uid="uid-gone", since=-30)
    assert outcome(deletion(), state(policy(gone, ready()))) == (False, "waiting")
    assert outcome(deletion(), state(policy(gone | {"state": "Released"}, ready()))) == (True, "ready")


def test_a_pod_that_is_gone_keeps_its_place_when_its_successor_has_its_name():
    gone = held("Ready", "db-1", uid="uid-before", since=-30)
    assert outcome(deletion(), state(policy(gone, ready()))) == (False, "waiting")


def test_two_applications_of_one_policy_do_not_wait_for_each_other():
    other = obj("StatefulSet", "cache", version="apps/v1", namespace="shop", spec={"replicas": 1})
    other["metadata"]["uid"] = "uid-cache"
    owned = [{"kind": "StatefulSet", "name": "cache", "uid": "uid-cache", "controller": True}]
    cluster = state(other, pod("cache-0", owner="", ownerReferences=owned), policy(ready(since=-90), ready("cache-0")))
    assert outcome(eviction("cache-0"), cluster) == (True, "ready")


def test_a_label_says_what_one_application_is():
    labelled = [pod(f"db-{number}", labels={"app": "db", "shard": shard}) for number, shard in enumerate("aab")]
    entries = [ready(f"db-{number}", since=-90 + number) for number in range(3)]
    cluster = state(*labelled, policy(*entries, groupBy="shard"))
    assert [outcome(eviction(f"db-{number}"), cluster)[0] for number in range(3)] == [True, False, True]


# -- budgets -----------------------------------------------------------------------------------------------------------


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


def test_two_budgets_make_an_eviction_impossible_and_are_named():
    assert "PodDisruptionBudget a, b: several budgets" in message(eviction(), state(budget("a", 1), budget("b", 1)))


def test_a_ready_pod_is_let_go_and_the_budget_decides_by_itself():
    assert outcome(eviction(), state(budget(), policy(ready()))) == (True, "ready")


# -- time --------------------------------------------------------------------------------------------------------------


def test_the_time_is_the_callers():
    cluster = state(policy(ready(ago=0)))
    assert outcome(deletion(), cluster, NOW)[0]
    assert not outcome(deletion(), cluster, NOW.replace(minute=1))[0]
