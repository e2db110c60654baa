"""What a user who lacks a right is told: the server's own words, and the ClusterRole that has the right (pure)."""

import re

from lastcall.errors import ApiNotPermitted
from lastcall.model.viewer_access import VERBS, VIEWED
from lastcall.names import DRAINER, DRAINS_NAMESPACE, VIEWER

_REFUSAL = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
"""kube-apiserver's words (apiserver/pkg/endpoints/handlers/responsewriters/errors.go)."""

_ACCOUNT = "system:serviceaccount:"

_DRAINED = ("nodes", "nodes/status", "pods", "pods/eviction")
"""What a drain cannot do without, and ``lastcall-drainer`` permits."""

_REQUESTS = "drain-eviction-requests"
_LIFECYCLE = "lifecycle.k8s.io"


def explain_refusal(error: ApiNotPermitted, *, drains: bool = False) -> str:
    """The server's message, and how to grant what is missing if a role of lastcall or of Kubernetes has it.

    Also for a message of kubectl that quotes the server's. ``drains``: whoever is refused wants to drain a node.
    """
    found = _REFUSAL.search(str(error))
    hint = "" if found is None else _drain_hint(found) if drains else _grant_hint(found)
    return f"{error}; {hint}" if hint else str(error)


def _grant_hint(refusal: re.Match[str]) -> str:
    verb, group, resource = refusal["verb"], refusal["group"], refusal["resource"]
    if resource == "pods/exec":
        return "no role of lastcall permits it, since whoever may run commands in an agent's pod is root on its node"
    if verb not in VERBS:
        return ""
    subject = _subject_option(refusal["user"])
    if resource in VIEWED.get(group, ()):
        return f"permit it by: kubectl create clusterrolebinding {VIEWER} --clusterrole={VIEWER} {subject}"
    if (group, resource) == ("", "configmaps") and refusal["namespace"]:
        where = f"--namespace={refusal['namespace']}"
        return f"permit it by: kubectl create rolebinding {VIEWER} --clusterrole=view {subject} {where}"
    return ""


def _drain_hint(refusal: re.Match[str]) -> str:
    subject = _subject_option(refusal["user"])
    if refusal["group"] == _LIFECYCLE:
        kinds = ",".join(f"{kind}.{_LIFECYCLE}" for kind in ("evictionrequests", "evictions"))
        return (
            f"permit it by: kubectl create clusterrole {_REQUESTS} --verb=create,get,list,watch,patch --resource={kinds}; "
            f"kubectl create clusterrolebinding {_REQUESTS} --clusterrole={_REQUESTS} {subject}"
        )
    if (refusal["resource"], refusal["namespace"]) == ("leases", DRAINS_NAMESPACE):
        where = f"--namespace={DRAINS_NAMESPACE} --role={DRAINER}"
        return f"permit it by: kubectl create rolebinding {DRAINER} {where} {subject}"
    if refusal["resource"] not in _DRAINED:
        return ""
    return (
        f"permit it by: kubectl create clusterrolebinding {DRAINER} --clusterrole={DRAINER} {subject}; "
        "lastcall manifests agent has that role"
    )


def _subject_option(user: str) -> str:
    """The option of kubectl that names the user."""
    if user.startswith(_ACCOUNT):
        return f"--serviceaccount={user.removeprefix(_ACCOUNT)}"
    return f"--user={user}"
