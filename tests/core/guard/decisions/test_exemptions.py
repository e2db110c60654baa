"""Deletions that are allowed whatever the application says."""

import pytest
from support.guard.reviews import (
    BOTH,
    CONTROLLER,
    KUBELET,
    PERSON,
    answer,
    ask_for,
    at,
    obj,
    outcome,
    pod,
    state,
)

RELEASER = {"username": "system:serviceaccount:lastcall-system:lastcall-guard-releaser"}
AGENT = {
    "username": "system:serviceaccount:lastcall-system:lastcall-agent",
    "extra": {"authentication.kubernetes.io/node-name": ["n1"]},
}
MARKED = {"lastcall.dev/node-shutdown": '{"bootId":"b","cordoned":true}'}


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
        (pod(annotations={"lastcall.dev/guard-bypass-until": "9999-12-31T23:59:59Z"}), "bypass"),
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
        pod(annotations={"lastcall.dev/guard-bypass-until": ""}),
    ],
    ids=str,
)
def test_any_other_pod_is_held(ask, subject):
    review, more = ask_for(ask, subject)
    assert outcome(review, state(*more)) == (False, "not-prepared")


@BOTH
@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("tomorrow", "'tomorrow' is not an RFC 3339 time"),
        ("9999-01-01T00:00:00Z", "allows deletions for more than a year: until '9999-01-01T00:00:00Z'"),
    ],
)
def test_a_bypass_with_a_mistake_is_said(ask, until, said):
    review, more = ask_for(ask, pod(annotations={"lastcall.dev/guard-bypass-until": until}))
    assert said in answer(review, state(*more))["response"]["warnings"][0]


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
