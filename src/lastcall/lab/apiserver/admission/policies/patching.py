"""What the mutations of a policy make of an object (pure).

``k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch``.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lastcall.lab.apiserver.admission.policies import objects
from lastcall.lab.apiserver.admission.policies.objects import MutationFault
from lastcall.lab.apiserver.patches.faults import faults
from lastcall.lab.apiserver.patches.json_patch import DoesNotApply
from lastcall.lab.apiserver.patches.json_patch import patched as json_patched
from lastcall.lab.apiserver.patches.merging import laid_over
from lastcall.lab.apiserver.patches.shapes import Shape
from lastcall.lab.apiserver.request import Object


def patched(obj: Object, operations: Sequence[Mapping[str, Any]]) -> Object:
    """The object after a JSON patch; as it was if a ``test`` of the patch fails. MutationFault if it does not apply."""
    try:
        result = json_patched(copy.deepcopy(obj), operations)
    except DoesNotApply as error:
        if str(error).endswith("test failed"):
            return obj
        raise MutationFault(f"JSON Patch: {error}") from None
    if not isinstance(result, dict):
        raise MutationFault("JSON Patch: it makes something else of the object")
    return result


def configured(obj: Object, made: Any, shape: Shape) -> Object:
    """The object with what an ``Object{...}`` says of it. MutationFault if that is none, or cannot be merged."""
    if not isinstance(made, dict) or objects.TYPE not in made:
        raise MutationFault(f"unsupported return type from ApplyConfiguration expression: {type(made).__name__}")
    if wrong := [*objects.mismatches(made)]:
        raise MutationFault(f"type mismatch: {chr(10).join(wrong)}")
    config = {**objects.plain(made), "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    if found := faults(config, shape):
        raise MutationFault(f"error applying patch: failed to convert patch object to typed object: {_joined(found)}")
    if atomic := [*_atomic(config, shape, "")]:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationFault(f"error applying patch: invalid ApplyConfiguration: {why}")
    merged: Object = laid_over(obj, config, shape)
    return merged


def _joined(found: Sequence[str]) -> str:
    return found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {one}" for one in found)


def _atomic(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """The places of maps and lists that are one value, which a configuration would replace as a whole."""
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
