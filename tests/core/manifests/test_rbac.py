"""Rules of RBAC held against what is asked, both ways."""

import pytest

from lastcall.manifests.rbac import AuditedRequest, Grant, role_rules, ungranted_requests, unused_grants

PODS = Grant("pods", ("get", "list"), "pods are read")
STATUS = Grant("pods/status", ("patch",), "statuses are written")
LEASE = Grant("leases", ("get",), "who leads", "coordination.k8s.io", "mine", ("leader",))
SECRETS = Grant("secrets", ("get",), "passwords", "", "mine")
EVERY = [PODS, STATUS, LEASE, SECRETS]


def lease(verb="get", namespace="mine", name="leader"):
    return AuditedRequest(verb, "coordination.k8s.io", "leases", namespace=namespace, name=name)


@pytest.mark.parametrize(
    "asked",
    [
        AuditedRequest("list", "", "pods"),
        AuditedRequest("get", "", "pods", namespace="any", name="p"),
        AuditedRequest("patch", "", "pods", "status", "any", "p"),
        AuditedRequest("get", "", "secrets", namespace="mine", name="s"),
        AuditedRequest("get", "", "", path="/apis/lastcall.dev/v1alpha1"),
        AuditedRequest("get", "", "", path="/version"),
        lease(),
    ],
)
def test_what_is_allowed(asked):
    assert ungranted_requests(EVERY, [asked]) == []


@pytest.mark.parametrize(
    "asked",
    [
        AuditedRequest("watch", "", "pods"),
        AuditedRequest("get", "", "pods", "status", "any", "p"),
        AuditedRequest("patch", "", "pods", namespace="any", name="p"),
        AuditedRequest("get", "other.io", "pods", namespace="any", name="p"),
        AuditedRequest("get", "", "secrets", namespace="yours", name="s"),
        AuditedRequest("list", "", "secrets"),
        AuditedRequest("get", "", "", path="/metrics"),
        AuditedRequest("get", "", "", path="/versions"),
        lease(name="other"),
        lease(namespace="yours"),
        lease("list", name=""),
    ],
)
def test_what_is_not(asked):
    assert ungranted_requests(EVERY, [asked, asked]) == [asked]


def test_a_rule_with_names_allows_no_creation():
    """A request to create tells no name."""
    named = Grant("leases", ("create",), "", "coordination.k8s.io", "mine", ("leader",))
    assert ungranted_requests([named], [lease("create")]) == [lease("create")]


def test_verbs_that_nothing_needed():
    asked = [
        AuditedRequest("get", "", "pods", namespace="a", name="p"),
        AuditedRequest("get", "", "secrets", namespace="yours"),
        lease(),
    ]
    assert unused_grants(EVERY, asked) == [(PODS, "list"), (STATUS, "patch"), (SECRETS, "get")]


def test_rules_as_kubernetes_has_them():
    assert role_rules([PODS, LEASE]) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["leader"],
            "verbs": ["get"],
        },
    ]
