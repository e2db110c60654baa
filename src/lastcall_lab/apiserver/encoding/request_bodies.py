"""The body of a write: its declared kind, and the errors if it is not the wanted one.

The order of the checks and their messages are those of the decoders in ``k8s.io/apimachinery/pkg/runtime/serializer``
and of ``transformDecodeError`` in ``k8s.io/apiserver/pkg/endpoints/handlers``.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import yaml

from lastcall_lab.apiserver.encoding import go_json, strict_yaml
from lastcall_lab.apiserver.encoding.strict_yaml import YamlDocument
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object, Request

LIMIT = 3 * 1024 * 1024
"""Bytes of a body (``MaxRequestBodyBytes``)."""

_SUMMARY = 30
_TYPE_META = (
    "json: cannot unmarshal %s into Go value of type struct { APIVersion string"
    ' "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


class GroupVersionKind(NamedTuple):
    """The declared or the wanted kind of an object."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version


class RequestBody(NamedTuple):
    """``kind_of_body`` is the declared kind, with wanted values as defaults; ``repeated`` is None for JSON."""

    obj: Object
    said: GroupVersionKind
    data: bytes
    repeated: Sequence[str] | None

    def strict_complaints(self, unknown: Sequence[str]) -> list[str]:
        """The complaints of a strict decoder; ``unknown`` are the paths of unknown fields."""
        if self.repeated is not None:
            return [*self.repeated, *(f'unknown field "{path}"' for path in unknown)]
        return go_json.strict_complaints(self.data, self.obj, unknown)


def check_size(request: Request) -> None:
    """ApiError (413) if the body is too large."""
    if len(request.body) > LIMIT:
        message = f"Request entity too large: limit is {LIMIT}"
        raise ApiError(413, "RequestEntityTooLarge", message)


def is_yaml(request: Request) -> bool:
    """Whether the Content-Type is YAML; JSON without one. ApiError (415) for others."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in ("", "application/json"):
        return False
    if media == "application/yaml":
        return True
    raise api_errors.unsupported_media_type_error(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def read_body(request: Request, wanted: GroupVersionKind) -> RequestBody:
    """Decodes the object. ApiError if the body is invalid."""
    data, text = request.body, is_yaml(request)
    try:
        obj, repeated = from_yaml(data) if text else (go_json.decode_json(data), None)
        obj = {} if obj is None else obj
        return RequestBody(obj, kind_of_body(obj, wanted), data, repeated)
    except go_json.MalformedJson as error:
        raise unrecognized_error(wanted, f"couldn't get version/kind; json parse error: {error}", data) from None
    except ValueError as error:
        raise unrecognized_error(wanted, str(error), data) from None


def unrecognized_error(wanted: GroupVersionKind, why: str, data: bytes) -> ApiError:
    """The body does not declare its kind."""
    return api_errors.bad_request_error(
        f"the object provided is unrecognized (must be of type {wanted.kind}): {why} ({_summary(data)})"
    )


def unfit_error(said: GroupVersionKind, wanted: GroupVersionKind, why: str) -> ApiError:
    """The body declares a kind that does not fit the wanted one."""
    return api_errors.bad_request_error(
        f'{said.kind} in version "{said.version}" cannot be handled as a {wanted.kind}: {why}'
    )


def from_yaml(data: bytes) -> YamlDocument:
    """Converts YAML to a JSON value. ValueError in the words of Kubernetes if that fails."""
    try:
        document = strict_yaml.first_document(data)
        return document._replace(value=_plain(document.value))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark and mark.line else ""
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise ValueError(f"yaml: {where}{why}") from None


def _plain(value: Any) -> Any:
    """The value as JSON: keys become sorted text, as when Kubernetes converts YAML to JSON."""
    if isinstance(value, dict):
        return dict(sorted(((_key(key), _plain(inner)) for key, inner in value.items()), key=itemgetter(0)))
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def kind_of_body(obj: Any, wanted: GroupVersionKind) -> GroupVersionKind:
    """The declared kind, with wanted values as defaults. MalformedJson or ValueError if it is invalid."""
    if not isinstance(obj, dict):
        raise go_json.MalformedJson(_TYPE_META % go_json.json_type_name(obj))
    for name in ("apiVersion", "kind"):
        if not isinstance(obj.get(name, ""), str | None):
            said = go_json.json_type_name(obj[name])
            raise go_json.MalformedJson(f"json: cannot unmarshal {said} into Go struct field .{name} of type string")
    group, slash, version = (obj.get("apiVersion") or "").rpartition("/")
    if slash and "/" in group:
        raise ValueError(f"unexpected GroupVersion string: {obj['apiVersion']}")
    kind = obj.get("kind") or wanted.kind
    return (
        GroupVersionKind(group, version, kind)
        if group or version
        else GroupVersionKind(wanted.group, wanted.version, kind)
    )


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY else ""
    if data.startswith(b"{"):
        return data[:_SUMMARY].decode(errors="replace") + more
    return data[:_SUMMARY].hex() + more
