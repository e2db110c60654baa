"""Reviews and states as an outside tester writes them, without lastcall's own builders or structs; and the command."""

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


def review_command(tmp_path, monkeypatch, capsys):
    """A function that calls the command; it returns the exit code and both outputs."""

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
