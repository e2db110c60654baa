"""What a DELETE says: in its body or, only if it has none, in its query (``meta/v1 DeleteOptions``)."""

from typing import Any

from lastcall.lab.apiserver import media, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.deletion import check
from lastcall.lab.apiserver.kinds.base import Options
from lastcall.lab.apiserver.request import Object, Request

_SCHEME = "pkg/runtime/scheme.go:111"
"""The name that Kubernetes gives to where its DeleteOptions are registered."""
_GO_NAMES = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def delete_options(context: Context) -> Options:
    """The options of a DELETE, whichever version their apiVersion says. ApiError if they make no sense."""
    options = from_body(_body(context.request)) if context.request.body else _from_query(context.request)
    check(options)
    return options


def from_body(said: Object) -> Options:
    """From JSON; fields that nobody knows are passed over. ApiError for a value of the wrong type."""
    preconditions = _field(said, "preconditions", dict, "v1.Preconditions") or {}
    return Options(
        grace=_field(said, "gracePeriodSeconds", int, "int64"),
        uid=_field(preconditions, "uid", str, "types.UID", within="preconditions."),
        revision=_field(preconditions, "resourceVersion", str, "string", within="preconditions."),
        orphan=_field(said, "orphanDependents", bool, "bool"),
        propagation=_field(said, "propagationPolicy", str, "v1.DeletionPropagation"),
        dry_run=tuple(_strings(said, "dryRun")),
    )


def _body(request: Request) -> Object:
    said = media.decoded(request)
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise status.bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {_go(said)} into Go value of type"
            ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    kind = said.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = said.get("apiVersion") or "meta.k8s.io/v1"
        raise status.bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    return said


def _from_query(request: Request) -> Options:
    try:
        grace = int(request.parameter("gracePeriodSeconds")) if "gracePeriodSeconds" in request.query else None
    except ValueError:
        text = request.parameter("gracePeriodSeconds")
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    return Options(
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
    raise status.bad_request(f"json: cannot unmarshal {shown} into Go struct field {path} of type {go_type}")


def _strings(said: Object, name: str) -> list[str]:
    values: list[str] = _field(said, name, list, "[]string") or []
    for value in values:
        _field({name: value}, name, str, "string")
    return values


def _go(value: Any) -> str:
    return "null" if value is None else _GO_NAMES[type(value)]
