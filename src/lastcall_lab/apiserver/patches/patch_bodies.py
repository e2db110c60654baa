"""Patch bodies: decodes, checks and applies them to an object as JSON (pure).

Errors are those of ``k8s.io/apiserver/pkg/endpoints/handlers/patch.go``. ``strict`` in the results are the mistakes
about which ``fieldValidation`` warns or for which it rejects.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.encoding.request_bodies import from_yaml
from lastcall_lab.apiserver.patches import json_patch, list_order, merge_patch, strategic_merge
from lastcall_lab.apiserver.schema import SchemaNode
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_OPERATION = {"op": str, "path": str, "from": str, "value": object}


class ParsedPatch(NamedTuple):
    """``apply`` makes the new object from the old one; both share unchanged parts."""

    said: Any
    strict: list[str]
    apply: Callable[[Object], Any]


def read_patch(kind: str, body: bytes, node: SchemaNode | None) -> ParsedPatch:
    """Decodes a patch; ``node`` is the type of the object. ApiError if it is invalid."""
    try:
        said = go_json.decode_json(body)
    except go_json.MalformedJson as error:
        where = "" if kind == STRATEGIC else "error decoding patch: "
        raise api_errors.bad_request_error(f"{where}{error}") from None
    return _READERS[kind](said, body, node)


def _json_patch(said: Any, body: bytes, node: SchemaNode | None) -> ParsedPatch:
    operations = [] if said is None else said
    if not isinstance(operations, list):
        raise _unreadable(said, "value of type []handlers.jsonPatchOp")
    strict = []
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise _unreadable(operation, "value of type handlers.jsonPatchOp")
        for name, value in operation.items():
            if name not in _OPERATION:
                strict.append(f'json patch unknown field "[{index}].{name}"')
            elif value is not None and not isinstance(value, _OPERATION[name]):
                raise _unreadable(value, f"struct field jsonPatchOp.{name} of type string")
    strict += [f"json patch {one}" for one in go_json.strict_complaints(body, said)]
    if len(operations) > json_patch.MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {json_patch.MAX_OPERATIONS}, got {len(operations)}"
        raise api_errors.ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {limit}", {})

    def apply(obj: Object) -> Any:
        try:
            return json_patch.apply_operations(own_copy(obj), operations)
        except json_patch.JsonPatchDoesNotApply:
            raise unprocessable_error() from None

    return ParsedPatch(said, strict, apply)


def _merge_patch(said: Any, body: bytes, node: SchemaNode | None) -> ParsedPatch:
    if said is None:
        raise api_errors.bad_request_error("Invalid JSON Patch")
    if not isinstance(said, dict):
        raise _unreadable(said, "value of type map[string]interface {}")
    strict = go_json.strict_complaints(body, said)
    return ParsedPatch(said, strict, lambda obj: merge_patch.apply_merge_patch(obj, said))


def _strategic(said: Any, body: bytes, node: SchemaNode | None) -> ParsedPatch:
    said = {} if said is None else said
    if not isinstance(said, dict):
        raise api_errors.bad_request_error(_mismatch(said, "value of type map[string]interface {}"))
    strict = go_json.strict_complaints(body, said)

    def apply(obj: Object) -> Any:
        try:
            return strategic_merge.apply_strategic_patch(obj, said, node)
        except list_order.MalformedDirective as error:
            raise api_errors.bad_request_error(str(error)) from None
        except list_order.UnmergeableLists:
            raise unprocessable_error() from None
        except list_order.InvalidPatch as error:
            raise plain_error(str(error)) from None

    return ParsedPatch(said, strict, apply)


_READERS: Mapping[str, Callable[[Any, bytes, SchemaNode | None], ParsedPatch]] = {
    JSON_PATCH: _json_patch,
    MERGE_PATCH: _merge_patch,
    STRATEGIC: _strategic,
}


def own_copy(obj: Object) -> Object:
    """A deep copy that can be changed in place."""
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


class ApplyConfiguration(NamedTuple):
    """The configuration to apply, and the faults of its text."""

    obj: Object
    strict: list[str]


def parse_configuration(body: bytes) -> ApplyConfiguration:
    """Parses YAML, which includes JSON. ApiError if it is no object."""
    said, strict = _configuration(body)
    if said is None:
        return ApplyConfiguration({}, [])
    if not isinstance(said, dict):
        where = "error unmarshaling JSON: while decoding JSON: "
        raise api_errors.bad_request_error(
            f"error decoding YAML: {where}{_mismatch(said, 'value of type map[string]interface {}')}"
        )
    return ApplyConfiguration(said, strict)


def _configuration(body: bytes) -> tuple[Any, list[str]]:
    try:
        said = go_json.decode_clean_json(body)
        repeated = from_yaml(body).repeated if go_json.strict_complaints(body, said) else ()
    except go_json.MalformedJson:
        try:
            said, repeated = from_yaml(body)
        except ValueError as error:
            raise api_errors.bad_request_error(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    return said, [f"error converting YAML to JSON: {one}" for one in repeated]


def _unreadable(value: Any, what: str) -> api_errors.ApiError:
    return api_errors.bad_request_error(f"error decoding patch: {_mismatch(value, what)}")


def _mismatch(value: Any, what: str) -> str:
    return f"json: cannot unmarshal {go_json.json_type_name(value)} into Go {what}"


def unprocessable_error() -> api_errors.ApiError:
    """The patch does not apply to the object; Kubernetes gives no reason."""
    return api_errors.ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def plain_error(message: str) -> api_errors.ApiError:
    """An error without a Kubernetes reason."""
    return api_errors.ApiError(500, "", message)
