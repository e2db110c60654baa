"""The authorizer's input, its decision, and the error of a denial (pure).

``k8s.io/apiserver/pkg/authorization/authorizer`` and ``pkg/endpoints/request/requestinfo.go``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lastcall.model import name_rules
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.routing.routes import ResourcePath, parse_path
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Request, UserInfo

MASTERS = "system:masters"
"""Members of this group are allowed everything."""

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SELECTING = frozenset({"list", "watch", "deletecollection"})
_SANITIZED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class AccessAttributes(NamedTuple):
    """One access to decide about. A non-resource request has a ``path``, and the HTTP method as its verb.

    ``parse_field_terms`` returns the requirements of the field selector, if the verb supports one.
    """

    user: UserInfo
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    terms: Sequence[request_selectors.FieldTerm] = ()

    @property
    def qualified_subresource(self) -> str:
        """Resource and subresource as rules name them: ``pods`` or ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class AccessDecision(NamedTuple):
    """``reason`` explains the decision if the authorizer gives a reason."""

    allowed: bool
    reason: str = ""


ALLOWED = AccessDecision(allowed=True)
NO_OPINION = AccessDecision(allowed=False)
"""No opinion and no reason."""


def access_attributes(request: Request) -> AccessAttributes:
    """The access attributes of a request."""
    where = parse_path(request.path)
    if where is None:
        return AccessAttributes(request.user, request.method.lower(), path=request.path)
    verb = _VERBS.get(request.method, "")
    name, selector = where.name, ""
    if where.watch:
        verb = "watch"
    elif not name and verb in ("get", "delete"):
        verb = "deletecollection" if verb == "delete" else "watch" if request.flag("watch") else "list"
    if verb in _SELECTING and not where.watch:
        selector = request.parameter("fieldSelector")
    terms = _terms(selector) if selector else ()
    if not name and verb in ("list", "watch"):
        name = next((one.value for one in terms if one.field == "metadata.name" and one.equal), "")
        name = "" if name and name_rules.path_segment_error(name) else name
    return AccessAttributes(
        request.user,
        verb,
        where.group,
        where.plural,
        where.subresource.partition("/")[0],
        _namespace(where),
        name,
        terms=terms,
    )


def forbidden_error(asked: AccessAttributes, reason: str = "") -> api_errors.ApiError:
    """The response to a denied request (``responsewriters.ForbiddenStatusError``)."""
    if asked.path:
        what = f'path "{asked.path}"'
    else:
        scope = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        what = f'resource "{asked.qualified_subresource}" in API group "{asked.group}" {scope}'
    said = f'User "{asked.user.name}" cannot {asked.verb} {what}'.translate(_SANITIZED)
    said = f"{said}: {reason}" if reason else said
    if not asked.path:
        return api_errors.forbidden_error(asked.resource, asked.group, asked.name, said)
    return api_errors.ApiError(403, "Forbidden", f"forbidden: {said}", {})


def _namespace(where: ResourcePath) -> str:
    """A Namespace object counts as part of itself."""
    return where.namespace or (where.name if where.plural == "namespaces" else "")


def _terms(selector: str) -> Sequence[request_selectors.FieldTerm]:
    """No requirements if the selector cannot be parsed, as if the request had none."""
    try:
        return request_selectors.parse_field_terms(selector)
    except api_errors.ApiError:
        return ()
