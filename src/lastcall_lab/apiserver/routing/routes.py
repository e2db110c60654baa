"""API paths: resource, object, subresource and verb of a request (pure)."""

from functools import lru_cache
from typing import NamedTuple

from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.values.api_errors import (
    bad_request_error,
    method_not_allowed_error,
    no_such_resource_error,
)
from lastcall_lab.apiserver.values.request import Request

_ITEM = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_SUBRESOURCE = {"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create", "DELETE": "delete"}
_METHODS = {
    "attach": ("GET", "POST"),
    "binding": ("POST",),
    "eviction": ("POST",),
    "exec": ("GET", "POST"),
    "finalize": ("PUT",),
    "log": ("GET",),
    "portforward": ("GET", "POST"),
    "token": ("POST",),
}
"""Verbs of subresources that are not read and written like objects."""
_PART = ("GET", "PUT", "PATCH")


class Route(NamedTuple):
    """``request_verb`` is the verb of RBAC and the audit.

    A collection has no name; a cluster-wide list no namespace.
    """

    verb: str
    resource: ServedResource
    namespace: str
    name: str
    subresource: str


class ResourcePath(NamedTuple):
    """The parts of a path below ``/api/v1`` or ``/apis/GROUP/VERSION``."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str
    watch: bool


@lru_cache(maxsize=256)
def parse_path(path: str) -> ResourcePath | None:
    """The parts of a resource path; None for any other path. A path with an empty part is no resource path."""
    parts = path.rstrip("/").split("/")[1:]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    everywhere = rest[:2] == ["namespaces", ""] and len(rest) > 2  # treated as a path without a namespace
    rest = rest[2:] if everywhere else rest
    if "" in (version, *rest):
        return ResourcePath(group, version, "", "", "", "", watch=False)
    watch = rest[0] == "watch" and len(rest) > 1
    rest = rest[1:] if watch else rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    return ResourcePath(group, version, namespace, plural, name, "/".join(rest[2:]) if subresource else "", watch)


def find_route(request: Request, where: ResourcePath, scheme: ResourceScheme) -> Route:
    """The route of a request. ApiError if the resource does not exist or does not support the verb."""
    resource = scheme.find(where.group, where.version, where.plural)
    misplaced = resource is not None and resource.namespaced and bool(where.name) and not where.namespace
    if resource is None or misplaced or bool(where.namespace) > resource.namespaced:
        raise no_such_resource_error()
    subresource = where.subresource.partition("/")[0]
    if subresource and (subresource not in resource.subresources or subresource != where.subresource):
        raise no_such_resource_error()
    if where.watch and subresource:
        raise no_such_resource_error()
    if where.name in (".", ".."):
        raise bad_request_error(f"Name parameter invalid: \"{where.name}\": may not be '{where.name}'")
    asked = request_verb(request, where)
    if not asked or not _is_allowed(asked, request.method, where, resource):
        raise method_not_allowed_error()
    return Route(asked, resource, where.namespace, where.name, subresource)


def request_verb(request: Request, where: ResourcePath) -> str:
    """The verb of RBAC and the audit; empty for other methods."""
    if where.subresource:
        return _SUBRESOURCE.get(request.method, "")
    if where.watch:  # for any method, the authorizer was asked about a watch
        return "watch" if request.method == "GET" else ""
    found = (_ITEM if where.name else _COLLECTION).get(request.method, "")
    return "watch" if found == "list" and request.flag("watch") else found


def _is_allowed(asked: str, method: str, where: ResourcePath, resource: ServedResource) -> bool:
    if where.subresource:
        return method in _METHODS.get(where.subresource.partition("/")[0], _PART)
    if resource.verbs and asked not in resource.verbs:
        return False
    return asked not in ("create", "deletecollection") or bool(where.namespace) == resource.namespaced
