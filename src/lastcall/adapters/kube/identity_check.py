"""Whether an identity is valid and has the rights that an agent needs of it, asked of the API server itself.

A SelfSubjectAccessReview needs no right but that of every authenticated user (``system:basic-user``). It answers by all
authorizers; what an admission policy or NodeRestriction refuses in addition it does not say.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import CredentialSource
from lastcall.adapters.kube.resources import dict_resource
from lastcall.aio import timeout
from lastcall.errors import LastcallError, NotPermitted, RequestRefused, Unavailable
from lastcall.names import GROUP

ASK_SECONDS = 10.0
_REVIEWS = dict_resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")


class NeededRight(NamedTuple):
    """A verb on a resource, and what an agent cannot do without it."""

    verb: str
    resource: str
    lost: str
    group: str = ""
    subresource: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'/' if self.subresource else ''}{self.subresource}"


def node_rights(node: str) -> tuple[NeededRight, ...]:
    """What the identity for the node's objects is needed for, an example of each."""
    return (
        NeededRight("patch", "nodes", "the Node does not become NotReady at a shutdown", "", "status", node),
        NeededRight("delete", "pods", "replacements of its pods do not start at a shutdown"),
        NeededRight("list", "pods", "the pods' priorities and hooks are as last stored"),
    )


def own_rights(node: str) -> tuple[NeededRight, ...]:
    """What the agent's own identity is needed for, because the Node authorizer refuses it to the kubelet's."""
    return (
        NeededRight("patch", "nodeshutdowns", "a shutdown is not recorded at the API server", GROUP, "", node),
        NeededRight("list", "endpointslices", "no SIGTERM waits for Services", "discovery.k8s.io"),
    )


async def find_problems(
    client: Client, credentials: CredentialSource, rights: Sequence[NeededRight], *, node: str
) -> tuple[str, ...]:
    """Why the identity does not suffice, a sentence each; empty if it does.

    Raises Unavailable if the API server cannot be asked, which says nothing of the identity.
    """
    try:
        await credentials.current_credential()
    except LastcallError as error:
        return (f"it has no credential: {error}",)
    try:
        async with timeout(ASK_SECONDS):
            return tuple([problem async for problem in _missing(client, rights, node)])
    except TimeoutError as error:
        raise Unavailable(f"the API server has not answered for {ASK_SECONDS:g} s") from error
    except (NotPermitted, RequestRefused) as error:
        return (f"the API server refuses it: {error}",)


async def _missing(client: Client, rights: Sequence[NeededRight], node: str) -> AsyncIterator[str]:
    for right in rights:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": _spec(right, node)}
        status = (await client.create(_REVIEWS, body)).get("status") or {}
        if status.get("allowed") is not True:
            yield f"it may not {right}: {right.lost}"


def _spec(right: NeededRight, node: str) -> dict[str, Any]:
    attributes: dict[str, Any] = dict(_attributes(right))
    if (right.verb, right.resource) == ("list", "pods"):  # the Node authorizer allows no other list
        requirement = {"key": "spec.nodeName", "operator": "In", "values": [node]}
        attributes["fieldSelector"] = {"requirements": [requirement]}
    return {"resourceAttributes": attributes}


def _attributes(right: NeededRight) -> Iterator[tuple[str, str]]:
    found = {"verb": right.verb, "resource": right.resource, "group": right.group}
    found |= {"subresource": right.subresource, "name": right.name}
    return ((name, value) for name, value in found.items() if value)
