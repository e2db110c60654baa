"""AdmissionReviews and the states of clusters, as Kubernetes writes them, and what the guard answers."""

import json
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest

from lastcall.guard.decisions.verdict import judge_removal
from lastcall.model.admission import answer_review, parse_review
from lastcall.model.guard_state_file import read_guard_state

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
PERSON = {"username": "ann", "groups": ["system:authenticated"]}
CONTROLLER = {
    "username": "system:serviceaccount:kube-system:statefulset-controller",
    "groups": ["system:authenticated"],
}
KUBELET = {"username": "system:node:n1", "groups": ["system:nodes", "system:authenticated"]}


def at(seconds):
    """An RFC 3339 time so many seconds after now."""
    return f"{NOW + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def pod(name="db-0", *, uid="", namespace="shop", node="n1", phase="Running", owner="StatefulSet", **metadata):
    references = [{"apiVersion": "apps/v1", "kind": owner, "name": "db", "uid": f"uid-{owner}", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "labels": {"app": "db"},
            **({"ownerReferences": references} if owner else {}),
            **metadata,
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "db"}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def obj(kind, name, *, version="v1", namespace="", spec=None, status=None, **metadata):
    found = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "uid": f"uid-{kind}", **metadata}}
    if namespace:
        found["metadata"]["namespace"] = namespace
    return found | ({"spec": spec} if spec else {}) | ({"status": status} if status else {})


def policy(*held, name="db", namespace="shop", **spec):
    selector = {"matchLabels": {"app": "db"}}
    return obj(
        "GuardPolicy",
        name,
        version="lastcall.dev/v1alpha1",
        namespace=namespace,
        spec={"selector": selector, "provider": {"redis": {}}, **spec},
        status={"pods": list(held)},
    )


def held(state, name="db-0", *, uid="", since=-60, **fields):
    return {"name": name, "uid": uid or f"uid-{name}", "state": state, "since": at(since), **fields}


def ready(name="db-0", *, ago=1, **fields):
    return held("Ready", name, verifiedAt=at(-ago), **fields)


def state(*objects, without=()):
    """A cluster with three pods of one StatefulSet on one node; objects replace those of the same kind and name."""
    default = [
        obj("Namespace", "shop", labels={"lastcall.dev/guard-enabled": "true"}, status={"phase": "Active"}),
        obj("Node", "n1"),
        obj("StatefulSet", "db", version="apps/v1", namespace="shop", spec={"replicas": 3}),
        *(pod(f"db-{number}") for number in range(3)),
        policy(),
    ]
    found = {(one["kind"], one["metadata"]["name"]): one for one in (*default, *objects)}
    items = [one for (kind, _), one in found.items() if kind not in without]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def deletion(subject=None, *, user=PERSON, options=None, name="", version="admission.k8s.io/v1", **fields):
    """The DELETE of a pod; ``subject`` is the pod as the API server has it."""
    subject = subject or pod()
    request = _request(subject, "DELETE", user, name or subject["metadata"]["name"])
    request |= {
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "object": None,
        "oldObject": deepcopy(subject),
        "options": {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **(options or {})},
    }
    return {"apiVersion": version, "kind": "AdmissionReview", "request": request | fields}


def eviction(name="db-0", *, user=PERSON, options=None, version="admission.k8s.io/v1", policy="policy/v1", **fields):
    """The CREATE of pods/eviction."""
    subject = {"metadata": {"name": name, "namespace": "shop"}}
    request = _request(subject, "CREATE", user, name)
    request |= {
        "kind": {"group": "policy", "version": policy.partition("/")[2], "kind": "Eviction"},
        "subResource": "eviction",
        "requestSubResource": "eviction",
        "object": {
            "kind": "Eviction",
            "apiVersion": policy,
            "metadata": {"name": name, "namespace": "shop"},
            **({"deleteOptions": options} if options else {}),
        },
        "oldObject": None,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": version, "kind": "AdmissionReview", "request": request | fields}


def _request(subject, operation, user, name):
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return {
        "uid": "review-1",
        "resource": resource,
        "requestResource": resource,
        "name": name,
        "namespace": subject["metadata"].get("namespace", "shop"),
        "operation": operation,
        "userInfo": user,
        "dryRun": False,
    }


def facts(cluster):
    """What the guard reads of a cluster."""
    return read_guard_state(json.dumps(cluster).encode(), "state")


def answer(review, cluster=None, now=NOW):
    """The whole answer, as the API server gets it."""
    found = parse_review(json.dumps(review).encode(), "review")
    if found.removal is None:
        return answer_review(found, allowed=True)
    verdict = judge_removal(found.removal, facts(cluster or state()), now)
    return answer_review(
        found,
        allowed=verdict.allowed,
        message=verdict.message,
        warnings=verdict.warnings,
        audit={"reason": verdict.reason},
    )


def outcome(review, cluster=None, now=NOW):
    """Whether it is allowed, and the reason for the audit log."""
    response = answer(review, cluster, now)["response"]
    return response["allowed"], response.get("auditAnnotations", {}).get("reason", "")


BOTH = pytest.mark.parametrize("ask", [deletion, eviction], ids=["delete", "evict"])
"""Asks for a pod in both ways."""


def ask_for(ask, subject, **rest):
    """The request, and what has to be in the cluster for it: an eviction does not show its pod."""
    name = subject["metadata"]["name"]
    return (ask(subject, **rest), []) if ask is deletion else (ask(name, **rest), [subject])
