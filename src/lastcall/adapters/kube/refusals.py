"""What a user who lacks a right is told: the server's own words, and the ClusterRole that has the right (pure)."""

import re

from lastcall.errors import ApiNotPermitted
from lastcall.model.viewer_access import VERBS, VIEWED
from lastcall.names import VIEWER

_REFUSAL = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
"""kube-apiserver's words (apiserver/pkg/endpoints/handlers/responsewriters/errors.go)."""

_ACCOUNT = "system:serviceaccount:"


def explain_refusal(error: ApiNotPermitted) -> str:
    """The server's message, and how to grant what is missing if a role of lastcall or of Kubernetes has it.

    Also for a message of kubectl that quotes the server's.
    """
    found = _REFUSAL.search(str(error))
    hint = _grant_hint(found) if found else ""
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


def _subject_option(user: str) -> str:
    """The option of kubectl that names the user."""
    if user.startswith(_ACCOUNT):
        return f"--serviceaccount={user.removeprefix(_ACCOUNT)}"
    return f"--user={user}"
