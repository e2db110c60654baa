"""Rules of RBAC held against what is asked, both ways."""

import pytest

from lastcall.manifests.rbac import Asked, Grant, beyond, rules, unused

PODS = Grant("pods", ("get", "list"), "pods are read")
STATUS = Grant("pods/status", ("patch",), "statuses are written")
LEASE = Grant("leases", ("get",), "who leads", "coordination.k8s.io", "mine", ("leader",))
SECRETS = Grant("secrets", ("get",), "passwords", "", "mine")
EVERY = [PODS, STATUS, LEASE, SECRETS]


def lease(verb="get", namespace="mine", name="leader"):
    return Asked(verb, "coordination.k8s.io", "leases", namespace=namespace, name=name)


@pytest.mark.parametrize(
    "asked",
    [
        Asked("list", "", "pods"),
        Asked("get", "", "pods", namespace="any", name="p"),
        Asked("patch", "", "pods", "status", "any", "p"),
        Asked("get", "", "secrets", namespace="mine", name="s"),
        Asked("get", "", "", path="/apis/lastcall.dev/v1alpha1"),
        Asked("get", "", "", path="/version"),
        lease(),
    ],
)
def test_what_is_allowed(asked):
    assert beyond(EVERY, [asked]) == []


@pytest.mark.parametrize(
    "asked",
    [
        Asked("watch", "", "pods"),
        Asked("get", "", "pods", "status", "any", "p"),
        Asked("patch", "", "pods", namespace="any", name="p"),
        Asked("get", "other.io", "pods", namespace="any", name="p"),
        Asked("get", "", "secrets", namespace="yours", name="s"),
        Asked("list", "", "secrets"),
        Asked("get", "", "", path="/metrics"),
        Asked("get", "", "", path="/versions"),
        lease(name="other"),
        lease(namespace="yours"),
        lease("list", name=""),
    ],
)
def test_what_is_not(asked):
    assert beyond(EVERY, [asked, asked]) == [asked]


def test_a_rule_with_names_allows_no_creation():
    """A request to create tells no name."""
    named = Grant("leases", ("create",), "", "coordination.k8s.io", "mine", ("leader",))
    assert beyond([named], [lease("create")]) == [lease("create")]


def test_verbs_that_nothing_needed():
    asked = [Asked("get", "", "pods", namespace="a", name="p"), Asked("get", "", "secrets", namespace="yours"), lease()]
    assert unused(EVERY, asked) == [(PODS, "list"), (STATUS, "patch"), (SECRETS, "get")]


def test_rules_as_kubernetes_has_them():
    assert rules([PODS, LEASE]) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["leader"],
            "verbs": ["get"],
        },
    ]
