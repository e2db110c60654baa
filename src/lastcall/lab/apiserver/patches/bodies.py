"""The bodies of patches: read, checked, and applied to an object as JSON (pure).

Errors are those of ``k8s.io/apiserver/pkg/endpoints/handlers/patch.go``. ``strict`` in what comes back are the mistakes
that clients are told or refused for, as ``fieldValidation`` says.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.patches import json_patch, merge_patch, ordering, strategic
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema import Node, gojson
from lastcall.lab.apiserver.schema.bodies import from_yaml

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_OPERATION = {"op": str, "path": str, "from": str, "value": object}


class Patch(NamedTuple):
    """``apply`` makes the new object of the old one; both share what stays as it was."""

    said: Any
    strict: list[str]
    apply: Callable[[Object], Any]


def read(kind: str, body: bytes, node: Node | None) -> Patch:
    """The patch in a body; ``node`` is the type of the object. ApiError if it is none."""
    try:
        said = gojson.decoded(body)
    except gojson.Malformed as error:
        where = "" if kind == STRATEGIC else "error decoding patch: "
        raise status.bad_request(f"{where}{error}") from None
    return _READERS[kind](said, body, node)


def _json_patch(said: Any, body: bytes, node: Node | None) -> Patch:
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
    strict += [f"json patch {one}" for one in gojson.complaints(body, said)]
    if len(operations) > json_patch.MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {json_patch.MAX_OPERATIONS}, got {len(operations)}"
        raise status.ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {limit}", {})

    def apply(obj: Object) -> Any:
        try:
            return json_patch.patched(own(obj), operations)
        except json_patch.DoesNotApply:
            raise unprocessable() from None

    return Patch(said, strict, apply)


def _merge_patch(said: Any, body: bytes, node: Node | None) -> Patch:
    if said is None:
        raise status.bad_request("Invalid JSON Patch")
    if not isinstance(said, dict):
        raise _unreadable(said, "value of type map[string]interface {}")
    strict = gojson.complaints(body, said)
    return Patch(said, strict, lambda obj: merge_patch.merged(obj, said))


def _strategic(said: Any, body: bytes, node: Node | None) -> Patch:
    said = {} if said is None else said
    if not isinstance(said, dict):
        raise status.bad_request(_mismatch(said, "value of type map[string]interface {}"))
    strict = gojson.complaints(body, said)

    def apply(obj: Object) -> Any:
        try:
            return strategic.merged(obj, said, node)
        except ordering.Malformed as error:
            raise status.bad_request(str(error)) from None
        except ordering.Unmergeable:
            raise unprocessable() from None
        except ordering.BadPatch as error:
            raise plain(str(error)) from None

    return Patch(said, strict, apply)


_READERS: Mapping[str, Callable[[Any, bytes, Node | None], Patch]] = {
    JSON_PATCH: _json_patch,
    MERGE_PATCH: _merge_patch,
    STRATEGIC: _strategic,
}


def own(obj: Object) -> Object:
    """A copy that can be changed in place."""
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


class Configuration(NamedTuple):
    """What is to be applied, and what is wrong with the text that it stood in."""

    obj: Object
    strict: list[str]


def configuration(body: bytes) -> Configuration:
    """From YAML, or JSON, which is YAML. ApiError if it is no object."""
    said, strict = _configuration(body)
    if said is None:
        return Configuration({}, [])
    if not isinstance(said, dict):
        where = "error unmarshaling JSON: while decoding JSON: "
        raise status.bad_request(
            f"error decoding YAML: {where}{_mismatch(said, 'value of type map[string]interface {}')}"
        )
    return Configuration(said, strict)


def _configuration(body: bytes) -> tuple[Any, list[str]]:
    try:
        said = gojson.decoded_strictly(body)
        repeated = from_yaml(body).repeated if gojson.complaints(body, said) else ()
    except gojson.Malformed:
        try:
            said, repeated = from_yaml(body)
        except ValueError as error:
            raise status.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    return said, [f"error converting YAML to JSON: {one}" for one in repeated]


def _unreadable(value: Any, what: str) -> status.ApiError:
    return status.bad_request(f"error decoding patch: {_mismatch(value, what)}")


def _mismatch(value: Any, what: str) -> str:
    return f"json: cannot unmarshal {gojson.name(value)} into Go {what}"


def unprocessable() -> status.ApiError:
    """The patch does not apply to the object; Kubernetes does not say why."""
    return status.ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def plain(message: str) -> status.ApiError:
    """An error that Kubernetes has no reason for."""
    return status.ApiError(500, "", message)
