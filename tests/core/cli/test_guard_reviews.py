"""``lastcall guard review`` as a black box: reviews of any shape, and what in the state decides."""

import pytest
from support.guard.review_files import (
    ACCOUNT,
    FREE,
    GONE,
    HELD,
    NOW,
    POD,
    changed,
    deletion,
    entry,
    eviction,
    obj,
    outcome,
    review_command,
    state_with,
    user,
)


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    return review_command(tmp_path, monkeypatch, capsys)


REVIEWS = {
    # -- shapes of a DELETE --
    "a plain delete": (deletion(), HELD),
    "without a name, as of a collection": (deletion(name=GONE), HELD),
    "with an empty name": (deletion(name=""), HELD),
    "with a null name": (deletion(name=None), HELD),
    "without a namespace": (deletion(namespace=GONE), HELD),
    "a pod that does not say its namespace": (deletion(oldObject__metadata__namespace=GONE), HELD),
    "without the pod": (deletion(oldObject=None), HELD),
    "without the pod's field": (deletion(oldObject=GONE), HELD),
    "without the pod, of a name that is not there": (deletion(oldObject=None, name="nobody"), (FREE, "not-found")),
    "without options": (deletion(options=GONE), HELD),
    "with null options": (deletion(options=None), HELD),
    "with null preconditions": (deletion(options__preconditions=None), HELD),
    "of this uid": (deletion(options__preconditions={"uid": "u-db-0"}), HELD),
    "of an older uid": (deletion(options__preconditions={"uid": "u-old"}), (FREE, "precondition")),
    "of a version": (deletion(options__preconditions={"resourceVersion": "7"}), HELD),
    "with another propagation": (deletion(options__propagationPolicy="Orphan"), HELD),
    "by force": (deletion(options__gracePeriodSeconds=0), HELD),
    "with a null grace": (deletion(options__gracePeriodSeconds=None), HELD),
    "without dryRun": (deletion(dryRun=GONE), HELD),
    "a dry run in the request": (deletion(dryRun=True), HELD),
    "a dry run in the options": (deletion(options__dryRun=["All"]), HELD),
    "a dry run in both": (deletion(dryRun=True, options__dryRun=["All"]), HELD),
    "with fields that nobody knows": (deletion(future={"a": 1}, oldObject__future=[1]), HELD),
    "without requestKind and object": (deletion(object=GONE, kind=GONE), HELD),
    "of a pod with generateName": (deletion(oldObject__metadata__generateName="db-"), HELD),
    # -- the pod --
    "with null labels": (deletion(oldObject__metadata__labels=None), (FREE, "not-guarded")),
    "without status": (deletion(oldObject__status=GONE), HELD),
    "with a null status": (deletion(oldObject__status=None), HELD),
    "without spec": (deletion(oldObject__spec=GONE), HELD),
    "not deleted yet, as null": (deletion(oldObject__metadata__deletionTimestamp=None), HELD),
    "being deleted": (deletion(oldObject__metadata__deletionTimestamp="2026-11-28T11:59:59Z"), (FREE, "terminating")),
    "Succeeded": (deletion(oldObject__status__phase="Succeeded"), (FREE, "finished")),
    "Failed": (deletion(oldObject__status__phase="Failed"), (FREE, "finished")),
    "Pending on a node": (deletion(oldObject__status__phase="Pending"), HELD),
    "Pending without a node": (
        deletion(oldObject__status__phase="Pending", oldObject__spec__nodeName=GONE),
        (FREE, "unscheduled"),
    ),
    "a mirror pod": (
        deletion(oldObject__metadata__annotations={"kubernetes.io/config.mirror": "x"}),
        (FREE, "mirror"),
    ),
    "on a node that does not exist": (deletion(oldObject__spec__nodeName="n9"), (FREE, "no-node")),
    "without an owner": (deletion(oldObject__metadata__ownerReferences=None), HELD),
    "of an owner that is gone": (deletion(oldObject__metadata__ownerReferences__0__uid="u-x"), (FREE, "owner-gone")),
    "of an owner that does not control": (
        deletion(oldObject__metadata__ownerReferences=[{"kind": "X", "name": "x", "uid": "u-x"}]),
        HELD,
    ),
    "controlled by a Node that exists": (
        deletion(
            oldObject__metadata__ownerReferences=[{"kind": "Node", "name": "n1", "uid": "u-n1", "controller": True}]
        ),
        HELD,
    ),
    # -- who asks --
    "without a user": (deletion(userInfo=GONE), HELD),
    "with a null user": (deletion(userInfo=None), HELD),
    "with an empty user": (deletion(userInfo={}), HELD),
    "anonymous": (deletion(userInfo=user("system:anonymous")), HELD),
    "an administrator": (deletion(userInfo={"username": "root", "groups": ["system:masters"]}), HELD),
    "the node's kubelet": (deletion(userInfo=user("system:node:n1")), (FREE, "kubelet")),
    "the StatefulSet controller": (deletion(userInfo=user(f"{ACCOUNT}statefulset-controller")), HELD),
    "the pod garbage collector": (deletion(userInfo=user(f"{ACCOUNT}pod-garbage-collector")), HELD),
    "the garbage collector": (deletion(userInfo=user(f"{ACCOUNT}generic-garbage-collector")), HELD),
    "the namespace controller": (deletion(userInfo=user(f"{ACCOUNT}namespace-controller"), name=""), HELD),
    "the taint eviction": (deletion(userInfo=user(f"{ACCOUNT}node-controller")), HELD),
    "a preempting scheduler": (deletion(userInfo=user("system:kube-scheduler")), HELD),
    "the controller manager with one identity": (deletion(userInfo=user("system:kube-controller-manager")), HELD),
    "the releaser": (
        deletion(userInfo=user("system:serviceaccount:lastcall-system:lastcall-guard-releaser")),
        (FREE, "releaser"),
    ),
    "a releaser of somebody else": (
        deletion(userInfo=user("system:serviceaccount:shop:lastcall-guard-releaser")),
        HELD,
    ),
    "the guard itself": (deletion(userInfo=user("system:serviceaccount:lastcall-system:lastcall-guard")), HELD),
    "with extra fields of a token": (
        deletion(userInfo={"username": "ann", "uid": "1", "extra": {"a/b": ["c"]}}),
        HELD,
    ),
    # -- shapes of an eviction --
    "a plain eviction": (eviction(), HELD),
    "of policy/v1beta1": (
        eviction(
            kind={"group": "policy", "version": "v1beta1", "kind": "Eviction"}, object__apiVersion="policy/v1beta1"
        ),
        HELD,
    ),
    "converted to policy/v1": (
        eviction(requestKind={"group": "policy", "version": "v1beta1", "kind": "Eviction"}),
        HELD,
    ),
    "without an object": (eviction(object=None), HELD),
    "without the object's field": (eviction(object=GONE), HELD),
    "without deleteOptions": (eviction(object__deleteOptions=GONE), HELD),
    "with null deleteOptions": (eviction(object__deleteOptions=None), HELD),
    "with empty deleteOptions": (eviction(object__deleteOptions={}), HELD),
    "without metadata": (eviction(object__metadata=GONE), HELD),
    "with null metadata": (eviction(object__metadata=None), HELD),
    "whose object has no namespace": (eviction(object__metadata__namespace=GONE), HELD),
    "whose name is in the object alone": (eviction(name=""), HELD),
    "whose namespace is in the object alone": (eviction(namespace=""), HELD),
    "whose oldObject is not there": (eviction(oldObject=GONE), HELD),
    "an eviction of nobody": (eviction(name="nobody", object__metadata__name="nobody"), (FREE, "not-found")),
    "an eviction in another namespace": (
        eviction(namespace="other", object__metadata__namespace="other"),
        (FREE, "not-found"),
    ),
    "an eviction of this uid": (eviction(object__deleteOptions={"preconditions": {"uid": "u-db-0"}}), HELD),
    "an eviction of an older uid": (
        eviction(object__deleteOptions={"preconditions": {"uid": "u-old"}}),
        (FREE, "precondition"),
    ),
    "a dry run in the eviction's request": (eviction(dryRun=True), HELD),
    "a dry run in deleteOptions": (eviction(object__deleteOptions={"dryRun": ["All"]}), HELD),
    "a dry run in both places": (eviction(dryRun=True, object__deleteOptions={"dryRun": ["All"]}), HELD),
    "an eviction by a drain's service account": (
        eviction(userInfo=user("system:serviceaccount:kube-system:cluster-autoscaler")),
        HELD,
    ),
    # -- what is no removal --
    "a creation": (deletion(operation="CREATE"), (FREE, "not-a-removal")),
    "an update": (deletion(operation="UPDATE"), (FREE, "not-a-removal")),
    "a command in the pod": (
        deletion(operation="CONNECT", subResource="exec", oldObject=None),
        (FREE, "not-a-removal"),
    ),
    "the deletion of a Service": (
        deletion(resource={"group": "", "version": "v1", "resource": "services"}, oldObject={"metadata": 7}),
        (FREE, "not-a-removal"),
    ),
}


@pytest.mark.parametrize(("review", "expected"), REVIEWS.values(), ids=REVIEWS)
def test_a_review_of_any_shape_is_answered(ask, review, expected):
    assert outcome(ask(review)) == expected


@pytest.mark.parametrize("review", [deletion(), eviction()], ids=["delete", "evict"])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (state_with(entries=[entry("Ready", verifiedAt="2026-11-28T11:59:50Z")]), (True, "ready")),
        (state_with(entries=[entry("Ready", verifiedAt="2026-11-28T11:59:49Z")]), (False, "ready")),
        (state_with(entries=[entry("Ready", verifiedAt="2026-11-28T13:59:59+02:00")]), (True, "ready")),
        (state_with(entries=[entry("Ready", verifiedAt="2026-11-28T11:59:59.5Z")]), (True, "ready")),
        (state_with(entries=[entry("Ready", verifiedAt=None)]), (False, "ready")),
        (state_with(entries=[entry("Ready")]), (False, "ready")),
        (state_with(entries=[entry("Ready", uid="u-old", verifiedAt=NOW)]), (False, "waiting")),
        (state_with(entries=[entry("Preparing", percent=0, etaSeconds=0, message=None)]), (False, "preparing")),
        (state_with(entries=[entry("Stalled", attempts=5)]), (False, "stalled")),
        (state_with(entries=[entry("Unhealthy", requestedBy="bob")]), (False, "unhealthy")),
        (state_with(entries=[entry("Released")]), (False, "released")),
        (state_with(obj("Namespace", "shop")), (True, "not-guarded")),
        (state_with(without=["GuardPolicy"]), (True, "not-guarded")),
        (
            state_with(
                obj(
                    "Namespace",
                    "shop",
                    metadata={
                        "labels": {"lastcall.dev/guard-enabled": "true"},
                        "deletionTimestamp": "2026-11-28T11:00:00Z",
                    },
                )
            ),
            (True, "namespace"),
        ),
        (
            state_with(
                obj("Node", "n1", metadata={"annotations": {"lastcall.dev/guard-bypass-until": "2026-11-28T12:00:01Z"}})
            ),
            (True, "bypass"),
        ),
        (
            state_with(obj("Node", "n1", metadata={"annotations": {"lastcall.dev/guard-bypass-until": NOW}})),
            HELD,
        ),
        (
            state_with(
                obj(
                    "Namespace",
                    "shop",
                    metadata={
                        "labels": {"lastcall.dev/guard-enabled": "true"},
                        "annotations": {"lastcall.dev/guard-bypass-until": "2026-11-28T14:00:00+01:00"},
                    },
                )
            ),
            (True, "bypass"),
        ),
        (
            state_with(
                obj("Node", "n1", spec={"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]})
            ),
            HELD,
        ),
        (
            state_with(
                obj(
                    "Node", "n1", spec={"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}
                )
            ),
            (True, "out-of-service"),
        ),
        (state_with(obj("StatefulSet", "db", "apps/v1", spec={"replicas": 0})), (True, "scaled-to-zero")),
        (state_with(obj("StatefulSet", "db", "apps/v1", metadata={"deletionTimestamp": NOW})), (True, "owner-deleted")),
        (state_with(without=["StatefulSet"]), (True, "owner-gone")),
        (state_with(without=["Node"]), (True, "no-node")),
    ],
)
def test_the_state_decides(ask, review, state, expected):
    assert outcome(ask(review, state)) == expected


def test_the_pods_own_bypass_is_seen_in_both_ways(ask):
    pod = changed(POD, {"metadata.annotations": {"lastcall.dev/guard-bypass-until": "2026-11-28T12:00:01Z"}})
    assert outcome(ask(deletion(oldObject=pod))) == (True, "bypass")
    far = changed(pod, {"metadata.annotations": {"lastcall.dev/guard-bypass-until": "2099-01-01T00:00:00Z"}})
    assert outcome(ask(deletion(oldObject=far))) == (True, "bypass")
    assert outcome(ask(eviction(), state_with(pod))) == (True, "bypass")


def test_the_present_time_counts_without_now(ask):
    ready = state_with(entries=[entry("Ready", verifiedAt=NOW)])
    assert outcome(ask(deletion(), ready, now=None)) == (False, "ready")
