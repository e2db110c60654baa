"""Grants of an identity as RBAC rules, and their comparison with an audit (pure).

The rules are those of ``rbac.authorization.k8s.io``, as far as lastcall uses them: no wildcards, no aggregation.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Object = dict[str, Any]

ANYWHERE = "*"
"""Namespace of a grant for all namespaces and cluster-wide objects: a ClusterRole that is bound cluster-wide."""

_BY_NAME = ("get", "update", "patch", "delete")
"""Verbs of requests that name an object; a rule with names allows no others (``create`` and ``list`` have none)."""

PUBLIC = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")
"""Paths that ``system:discovery`` and ``system:public-info-viewer`` allow, with their subpaths."""


class Grant(NamedTuple):
    """Verbs on a resource (``pods``, ``pods/status``) of a group, and the reason for them."""

    resource: str
    verbs: tuple[str, ...]
    why: str
    group: str = ""
    namespace: str = ANYWHERE
    names: tuple[str, ...] = ()


class AuditedRequest(NamedTuple):
    """One request from an audit log; ``path`` is set if it is not for a resource."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def role_rules(grants: Iterable[Grant]) -> list[Object]:
    """The ``role_rules`` of a Role or ClusterRole, one for each grant, in their order."""
    return [
        {
            "apiGroups": [one.group],
            "resources": [one.resource],
            **({"resourceNames": list(one.names)} if one.names else {}),
            "verbs": list(one.verbs),
        }
        for one in grants
    ]


def ungranted_requests(grants: Sequence[Grant], asked: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    """The requests that no grant allows, each once, in the order in which they were first asked."""
    return [
        one
        for one in dict.fromkeys(asked)
        if not (_is_public_path(one.path) if one.path else any(_grant_allows(grant, one) for grant in grants))
    ]


def unused_grants(grants: Sequence[Grant], asked: Iterable[AuditedRequest]) -> list[tuple[Grant, str]]:
    """The grants with a verb that no request needed."""
    every = list(asked)
    return [
        (grant, verb)
        for grant in grants
        for verb in grant.verbs
        if not any(one.verb == verb and not one.path and _grant_allows(grant, one) for one in every)
    ]


def _grant_allows(grant: Grant, asked: AuditedRequest) -> bool:
    part = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    named = not grant.names or (asked.verb in _BY_NAME and asked.name in grant.names)
    return (
        (grant.group, grant.resource) == (asked.group, part)
        and asked.verb in grant.verbs
        and grant.namespace in (ANYWHERE, asked.namespace)
        and named
    )


def _is_public_path(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in PUBLIC)
