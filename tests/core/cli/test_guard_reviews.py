"""``lastcall guard review`` as a black box: reviews and states written by hand, the answer on standard output, the exit code.

Nothing here uses lastcall's own builders or structs: it is what an outside tester writes.
"""

import io
import json
import sys

import pytest

from lastcall.cli.main import main

NOW = "2026-11-28T12:00:00Z"
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {lastcall.dev/guard-enabled: "true"}}}
- {apiVersion: v1, kind: Node, metadata: {name: n1, uid: u-n1}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: db, namespace: shop, uid: u-db}
  spec: {replicas: 2}
- apiVersion: v1
  kind: Pod
  metadata: &pod
    name: db-0
    namespace: shop
    uid: u-db-0
    labels: {app: db}
    ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u-db, controller: true}]
  spec: {nodeName: n1}
  status: {phase: Running}
- apiVersion: lastcall.dev/v1alpha1
  kind: GuardPolicy
  metadata: {name: db, namespace: shop, uid: u-policy}
  spec: {selector: {matchLabels: {app: db}}, provider: {redis: {}}}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "db-0",
        "namespace": "shop",
        "uid": "u-db-0",
        "labels": {"app": "db"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u-db", "controller": True}
        ],
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "db"}]},
    "status": {"phase": "Running"},
}
GONE = object()
"""As a value: the field is not there."""
ACCOUNT = "system:serviceaccount:kube-system:"
HELD, FREE = (False, "not-prepared"), True


def changed(whole, changes):
    """A copy with other values at dotted paths."""
    whole = json.loads(json.dumps(whole))
    for path, value in changes.items():
        *steps, last = [int(one) if one.isdecimal() else one for one in path.replace("/", "\0").split(".")]
        place = whole
        for step in steps:
            place = place[step]
        last = last.replace("\0", "/") if isinstance(last, str) else last
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return whole


def deletion(**changes):
    """The DELETE of db-0 by a person."""
    request = {
        "uid": "r-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "db-0",
        "namespace": "shop",
        "operation": "DELETE",
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": None,
        "oldObject": POD,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return changed(whole, {f"request.{path.replace('__', '.')}": value for path, value in changes.items()})


def eviction(**changes):
    """The eviction of db-0 by a person, as the API server of Kubernetes 1.36 shows it."""
    request = {
        "uid": "r-1",
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "subResource": "eviction",
        "name": "db-0",
        "namespace": "shop",
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "db-0", "namespace": "shop", "creationTimestamp": None},
            "deleteOptions": {"gracePeriodSeconds": 5},
        },
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return changed(whole, {f"request.{path.replace('__', '.')}": value for path, value in changes.items()})


def user(name):
    return {"username": name, "groups": ["system:authenticated"]}


def entry(state, **fields):
    """An entry of ``status.pods``."""
    return {"name": "db-0", "uid": "u-db-0", "state": state, "since": "2026-11-28T11:59:00Z", **fields}


def state_with(*objects, entries=(), without=()):
    """The cluster with other objects in place of those of the same kind and name."""
    import yaml

    items = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load(CLUSTER)["items"]}
    items |= {(one["kind"], one["metadata"]["name"]): one for one in objects}
    if entries:
        items["GuardPolicy", "db"]["status"] = {"pods": list(entries)}
    kept = [one for (kind, _), one in items.items() if kind not in without]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": kept})


def obj(kind, name, version="v1", **fields):
    metadata = {"name": name, "uid": f"u-{name}", **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Calls the command; its exit code and both outputs."""

    def call(review, state=CLUSTER, *more, now=NOW):
        path = tmp_path / "state"
        path.write_bytes(state if isinstance(state, bytes) else state.encode())
        data = review if isinstance(review, bytes) else json.dumps(review).encode()
        times = ["--now", now] if now else []
        monkeypatch.setattr(sys, "argv", ["lastcall", "guard", "review", "--state", str(path), *times, *more])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


def outcome(answer):
    """Allowed or not, and why; the rest of the answer is checked here."""
    code, out, err = answer
    assert (code, err) == (0, "")
    whole = json.loads(out)
    assert whole["kind"] == "AdmissionReview"
    response = whole["response"]
    assert response["uid"] == "r-1"
    assert "patch" not in response
    reason = response["auditAnnotations"]["reason"]
    if response["allowed"]:
        assert "status" not in response
        return True, reason
    status = response["status"]
    assert (status["code"], status["reason"], status["status"]) == (429, "TooManyRequests", "Failure")
    assert "retryAfterSeconds" not in json.dumps(status)
    assert status["message"].startswith("pod shop/db-0 is held by GuardPolicy ")
    return False, reason


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


ITEMS = CLUSTER.partition("items:")[2]
LOOSE = "\n---\n".join(json.dumps(one) for one in json.loads(state_with())["items"])
STATES = {
    "several documents": LOOSE,
    "JSON after JSON": LOOSE.replace("\n---\n", "\n"),
    "a List in a List": json.dumps(
        {"kind": "List", "items": [json.loads(state_with()), {"kind": "List", "items": None}]}
    ),
    "a byte order mark": ("\ufeff" + state_with()).encode(),
    "UTF-16": state_with().encode("utf-16"),
    "lists of single kinds, as the API has them": "\n".join(
        json.dumps({"kind": f"{one['kind']}List", "items": [changed(one, {"kind": GONE, "apiVersion": GONE})]})
        for one in json.loads(state_with())["items"]
    ),
    "kinds that nobody knows": state_with(
        obj("AllowList", "a", "example.com/v1", spec={"replicas": "many"}), obj("ConfigMap", "c", data={"a": "b"})
    ),
    "objects without names": json.dumps(
        {"kind": "List", "items": [*json.loads(state_with())["items"], {"kind": "Widget", "metadata": None}]}
    ),
    "null where lists are": state_with(obj("Node", "n1", spec={"taints": None}), entries=()),
    "an empty status": state_with().replace('"provider": {"redis": {}}}', '"provider": {"redis": {}}}, "status": {}'),
    "without Namespaces": state_with(without=["Namespace"]),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize("review", [deletion(), eviction()], ids=["delete", "evict"])
def test_a_state_of_any_shape_is_read(ask, review, state):
    assert outcome(ask(review, state)) == HELD


def deep(levels):
    return b"[" * levels + b"]" * levels


LINE = json.dumps(deletion()).encode()
UNREADABLE = {
    "nothing": b"",
    "white space": b" \n",
    "text": b"garbage",
    "half a review": LINE[:-20],
    "a comma too much": LINE[:-1] + b",}",
    "two reviews": LINE + LINE,
    "YAML": b"kind: AdmissionReview\napiVersion: admission.k8s.io/v1\n",
    "null": b"null",
    "a list": b"[" + LINE + b"]",
    "too deep": deep(100_000),
    "a review that is too deep": LINE.replace(b'"dryRun": false', b'"dryRun": ' + deep(100_000)),
    "not UTF-8": LINE.replace(b"ann", b"\xff"),
    "a byte order mark": b"\xef\xbb\xbf" + LINE,
    "another kind": json.dumps(POD).encode(),
    "another version": LINE.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"),
    "no request": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "a request that is text": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"x"}',
    "no uid": json.dumps(deletion(uid=GONE)).encode(),
    "an empty uid": json.dumps(deletion(uid="")).encode(),
    "a uid that is a number": json.dumps(deletion(uid=7)).encode(),
    "no operation": json.dumps(deletion(operation=GONE)).encode(),
    "no resource": json.dumps(deletion(resource=GONE)).encode(),
    "a name that is a number": json.dumps(deletion(name=7)).encode(),
    "a user that is a list": json.dumps(deletion(userInfo=["ann"])).encode(),
    "labels with numbers": json.dumps(deletion(oldObject__metadata__labels={"app": 7})).encode(),
    "a pod that is text": json.dumps(deletion(oldObject="db-0")).encode(),
    "a pod without metadata": json.dumps(deletion(oldObject__metadata=GONE)).encode(),
    "an eviction that is a number": json.dumps(eviction(object=7)).encode(),
    "a grace that is text": json.dumps(deletion(options__gracePeriodSeconds="30")).encode(),
    "many faults": json.dumps(deletion(name=7, namespace=8, userInfo=9, dryRun="no")).encode(),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_a_review_that_cannot_be_read_is_exit_code_2_and_one_sentence(ask, data):
    code, out, err = ask(data)
    assert (code, out) == (2, "")
    assert err.startswith("lastcall: standard input: ")
    assert err.count("\n") == 1
    assert len(err) < 600


def test_all_faults_are_in_the_sentence(ask):
    said = ask(UNREADABLE["many faults"])[2]
    for field in ("request.name: 7", "request.namespace: 8", "request.userInfo: 9", 'request.dryRun: "no"'):
        assert field in said


@pytest.mark.parametrize(
    "changes",
    [
        {"oldObject__metadata__annotations": {"big": "x" * 5 * 2**20}},
        {"oldObject__spec__containers": [{"name": f"c{number}", "image": "i" * 1000} for number in range(5000)]},
        {"userInfo": {"username": "ann", "extra": {f"k{number}": ["v" * 1000] for number in range(5000)}}},
    ],
)
def test_five_mebibytes_are_answered(ask, changes):
    assert outcome(ask(deletion(**changes))) == HELD


def test_what_is_larger_than_any_review_is_not_read(ask):
    code, out, err = ask(b'{"a":"' + b"x" * 17 * 2**20 + b'"}')
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_some_hundred_levels_in_what_nobody_reads_are_answered(ask):
    value = json.loads(deep(300))
    assert outcome(ask(deletion(oldObject__spec__future=value))) == HELD


BROKEN = {
    "empty": "",
    "null": "null",
    "text": "a: [",
    "no list": "kind: ConfigMap\napiVersion: v1\n",
    "no items": "kind: List\napiVersion: v1\n",
    "items that are no objects": "{kind: List, items: [7]}",
    "a pod twice": json.dumps({"kind": "List", "items": [POD, POD]}),
    "a policy without a provider": "{apiVersion: lastcall.dev/v1alpha1, kind: GuardPolicy, metadata: {name: a}, spec: {}}",
    "a state of a pod that does not exist": state_with(entries=[entry("Going")]),
    "a time without its zone": state_with(entries=[entry("Ready", verifiedAt="2026-11-28T12:00:00")]),
    "too deep": "[" * 100_000,
    "too deep as YAML": "- " * 5_000,
}


@pytest.mark.parametrize("state", BROKEN.values(), ids=BROKEN)
def test_a_state_that_cannot_be_read_is_exit_code_2(ask, state):
    code, out, err = ask(deletion(), state)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert "/state: " in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--state", "/nowhere/state"], "No such file or directory"),
        (["--state", "-"], "standard input has the review"),
        (["--config", "-"], "standard input has the review"),
        (["--config", "/nowhere/config"], "No such file or directory"),
        (["--now", "noon"], "is not an RFC 3339 time"),
        (["--now", "2026-11-28T12:00:00"], "is not an RFC 3339 time"),
    ],
)
def test_what_else_is_wrong_is_exit_code_2(ask, more, said):
    code, out, err = ask(deletion(), CLUSTER, *more)
    assert (code, out) == (2, "")
    assert said in err


# -- the configuration -------------------------------------------------------------------------------------------------

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: GuardConfiguration\n"
READY = state_with(entries=[entry("Ready", verifiedAt="2026-11-28T11:59:40Z")])


@pytest.mark.parametrize(
    ("text", "review", "state", "expected"),
    [
        ("", deletion(), CLUSTER, HELD),
        ("readySeconds: 20", deletion(), READY, (True, "ready")),
        ("readySeconds: 19.5", deletion(), READY, (False, "ready")),
        ("unguardedNamespaces: [shop]", deletion(), CLUSTER, (True, "not-guarded")),
        ("unguardedNamespaces: [shop]", eviction(), CLUSTER, (True, "not-guarded")),
        ("unguardedNamespaces: [other]", eviction(), CLUSTER, HELD),
        ("namespace: shop", eviction(), CLUSTER, (True, "not-guarded")),
        (
            "namespace: ops",
            eviction(userInfo=user("system:serviceaccount:ops:lastcall-guard-releaser")),
            CLUSTER,
            (True, "releaser"),
        ),
        (
            "namespace: ops",
            eviction(userInfo=user("system:serviceaccount:lastcall-system:lastcall-guard-releaser")),
            CLUSTER,
            HELD,
        ),
    ],
)
def test_the_configuration_changes_answers(ask, tmp_path, text, review, state, expected):
    path = tmp_path / "guard.yaml"
    path.write_text(HEAD + text)
    assert outcome(ask(review, state, "--config", str(path))) == expected


def test_a_refusal_names_the_administrators_command(ask, tmp_path):
    path = tmp_path / "guard.yaml"
    path.write_text(HEAD + "statusCommand: held {pod} -n {namespace} -p {policy}")
    response = json.loads(ask(deletion(), CLUSTER, "--config", str(path))[1])["response"]
    assert response["status"]["message"].endswith("; see: held db-0 -n shop -p db")
