"""The options of a DELETE: from its body or, without a body, from its query (``meta/v1 DeleteOptions``)."""

from typing import Any

from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.resources.deletion_rules import check_delete_options
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, Request

_SCHEME = "pkg/runtime/scheme.go:111"
"""The Go package in which Kubernetes registers DeleteOptions."""
_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def read_delete_options(context: RequestContext) -> DeleteOptions:
    """The options of a DELETE, in any version. ApiError if they are invalid."""
    options = parse_delete_options(_body(context.request)) if context.request.body else _from_query(context.request)
    check_delete_options(options)
    return options


def parse_delete_options(said: Object) -> DeleteOptions:
    """Parses JSON and ignores unknown fields. ApiError for a value of the wrong type."""
    preconditions = _field(said, "preconditions", dict, "v1.Preconditions") or {}
    return DeleteOptions(
        grace=_field(said, "gracePeriodSeconds", int, "int64"),
        uid=_field(preconditions, "uid", str, "types.UID", within="preconditions."),
        revision=_field(preconditions, "resourceVersion", str, "string", within="preconditions."),
        orphan=_field(said, "orphanDependents", bool, "bool"),
        propagation=_field(said, "propagationPolicy", str, "v1.DeletionPropagation"),
        dry_run=tuple(_strings(said, "dryRun")),
    )


def _body(request: Request) -> Object:
    said = media_types.decode_body(request)
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise api_errors.bad_request_error(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_go(said)} into Go value of type"
            ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    kind = said.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = said.get("apiVersion") or "meta.k8s.io/v1"
        raise api_errors.bad_request_error(
            f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
        )
    return said


def _from_query(request: Request) -> DeleteOptions:
    try:
        grace = int(request.parameter("gracePeriodSeconds")) if "gracePeriodSeconds" in request.query else None
    except ValueError:
        text = request.parameter("gracePeriodSeconds")
        raise api_errors.bad_request_error(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    return DeleteOptions(
        grace=grace,
        uid=request.parameter("uid") or None,
        revision=request.parameter("resourceVersion") or None,
        orphan=request.flag("orphanDependents") if "orphanDependents" in request.query else None,
        propagation=request.parameter("propagationPolicy") if "propagationPolicy" in request.query else None,
        dry_run=tuple(request.query.get("dryRun", ())),
    )


def _field(said: Object, name: str, wanted: type, go_type: str, *, within: str = "") -> Any:
    value = said.get(name)
    if value is None or (isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool)):
        return value
    path = f"DeleteOptions.{within}{name}"
    shown = f"number {value}" if wanted is int and isinstance(value, float) else _go(value)
    raise api_errors.bad_request_error(f"json: cannot unmarshal {shown} into Go struct field {path} of type {go_type}")


def _strings(said: Object, name: str) -> list[str]:
    values: list[str] = _field(said, name, list, "[]string") or []
    for value in values:
        _field({name: value}, name, str, "string")
    return values


def _go(value: Any) -> str:
    return "null" if value is None else _GO_NAMES[type(value)]
