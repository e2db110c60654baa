"""Applies the mutations of a policy to an object (pure).

``k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch``.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.admission.policies import cel_objects
from lastcall_lab.apiserver.admission.policies.cel_objects import MutationFault
from lastcall_lab.apiserver.patches.configuration_faults import configuration_faults
from lastcall_lab.apiserver.patches.configuration_merge import lay_over
from lastcall_lab.apiserver.patches.json_patch import JsonPatchDoesNotApply
from lastcall_lab.apiserver.patches.json_patch import apply_operations as json_patched
from lastcall_lab.apiserver.patches.shapes import OwnershipShape
from lastcall_lab.apiserver.values.request import Object


def apply_json_patch(obj: Object, operations: Sequence[Mapping[str, Any]]) -> Object:
    """The object after a JSON patch; unchanged if a ``test`` fails. MutationFault if the patch does not apply."""
    try:
        result = json_patched(copy.deepcopy(obj), operations)
    except JsonPatchDoesNotApply as error:
        if str(error).endswith("test failed"):
            return obj
        raise MutationFault(f"JSON Patch: {error}") from None
    if not isinstance(result, dict):
        raise MutationFault("JSON Patch: it makes something else of the object")
    return result


def apply_configuration(obj: Object, made: Any, shape: OwnershipShape) -> Object:
    """The object merged with an ``Object{...}``. MutationFault if that is invalid or cannot be merged."""
    if not isinstance(made, dict) or cel_objects.TYPE not in made:
        raise MutationFault(f"unsupported return type from ApplyConfiguration expression: {type(made).__name__}")
    if wrong := [*cel_objects.type_mismatches(made)]:
        raise MutationFault(f"type mismatch: {chr(10).join(wrong)}")
    config = {**cel_objects.to_json(made), "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    if found := configuration_faults(config, shape):
        raise MutationFault(
            f"error applying patch: failed to convert patch object to typed object: {_join_faults(found)}"
        )
    if atomic := [*_atomic(config, shape, "")]:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationFault(f"error applying patch: invalid ApplyConfiguration: {why}")
    merged: Object = lay_over(obj, config, shape)
    return merged


def _join_faults(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {one}" for one in found)


def _atomic(value: Any, shape: OwnershipShape, path: str) -> Iterator[str]:
    """The paths of atomic maps and lists, which a configuration would replace as a whole."""
    if shape.free or not isinstance(value, dict | list):
        return
    if shape.whole:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            below = shape.fields.get(name)
            if below is not None:
                yield from _atomic(inner, below, f"{path}.{name}")
        return
    for index, inner in enumerate(value):
        yield from _atomic(inner, shape.element, f"{path}[{index}]")
