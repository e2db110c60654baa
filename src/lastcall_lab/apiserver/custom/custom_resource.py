"""The behaviour of custom resources of one version, which follows from their schema."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.custom import list_types, validation_rules, value_validation
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.schema import pruning
from lastcall_lab.apiserver.values import field_errors, go_format
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.jsonpath import JsonPath
from lastcall_lab.apiserver.values.request import Object

_ENDS_RULES = ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
"""Violations after which Kubernetes does not evaluate rules."""

_UNJUDGED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete"
    " validation"
)
_LARGEST, _BEYOND = 2**31 - 1, 2**63
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


class CustomResourceKind(KindBehaviour):
    """The behaviour for one version of a definition. ``version`` is its entry in ``spec.versions``."""

    known_finalizers = False
    has_generation = True
    needs_revision = True

    def __init__(self, version: Object, *, group: str, kind: str) -> None:
        self.schema: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.subresources: Object = version.get("subresources") or {}
        self.has_status = "status" in self.subresources
        if version.get("deprecated"):
            said = f"{group}/{version['name']} {kind} is deprecated"
            self.deprecation = version.get("deprecationWarning") or said
        self._selectable = {
            one["jsonPath"].removeprefix("."): JsonPath(one["jsonPath"])
            for one in version.get("selectableFields") or ()
        }

    def default(self, obj: Object) -> None:
        """Applies the defaults of the schema."""
        pruning.apply_defaults(obj, self.schema)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Validates by the schema and its CEL rules."""
        return self._schema_violations(obj, value_validation.ABSENT)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates a change; unchanged parts are not validated again."""
        return self._schema_violations(new, old)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates the status by the schema; list types and rules apply to the whole object."""
        schema, causes = (self.schema.get("properties") or {}).get("status"), []
        if schema and "status" in new:
            found = value_validation.value_violations(
                new["status"], schema, old=old.get("status", value_validation.ABSENT)
            )
            causes = [one._replace(field=_below("status", one.field)) for one in found]
        return self._with_rule_violations(new, old, [*causes, *self._scale(new, "statusReplicasPath")])

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warns about finalizers without a domain."""
        for one in obj["metadata"].get("finalizers") or ():
            if "/" not in one and one not in _STANDARD_FINALIZERS:
                path = " including a path (/)" if "." in one else ""
                why = f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other"
                yield f'metadata.finalizers: "{one}": {why} finalizer writers'

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The selectable fields of the definition."""
        return {name: _text(path.find(obj)) for name, path in self._selectable.items()}

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Warns about new finalizers."""
        known = [*self.warnings(old)]
        return [one for one in self.warnings(new) if one not in known]

    def _schema_violations(self, obj: Object, old: Any) -> list[Cause]:
        scale = self._scale(obj, "specReplicasPath", "statusReplicasPath")
        return self._with_rule_violations(
            obj, old, [*value_validation.value_violations(obj, self.schema, old=old), *scale]
        )

    def _with_rule_violations(self, obj: Object, old: Any, causes: list[Cause]) -> list[Cause]:
        """Adds list and rule violations, unless the object is too invalid for rules to apply."""
        if old is value_validation.ABSENT or not any(list_types.list_violations(old, self.schema)):
            causes += list_types.list_violations(obj, self.schema)
        if any(cause.reason.removeprefix("FieldValue") in _ENDS_RULES for cause in causes):
            return (
                [*causes, field_errors.invalid(value_validation.NOWHERE, None, _UNJUDGED)]
                if has_rules(self.schema)
                else causes
            )
        return [*causes, *validation_rules.rule_violations(obj, self.schema, old=old)]

    def _scale(self, obj: Object, *names: str) -> Iterable[Cause]:
        scale = self.subresources.get("scale") or {}
        for name in names:
            number, why = _integer(obj, scale.get(name) or "")
            if why:
                yield field_errors.invalid(scale[name], 0, why)
            elif number < 0:
                yield field_errors.invalid(scale[name], number, "should be a non-negative integer")
            elif number > _LARGEST:
                yield field_errors.invalid(scale[name], number, f"should be less than or equal to {_LARGEST}")


def has_rules(schema: Any) -> bool:
    """Whether the schema contains a CEL rule."""
    if isinstance(schema, list):
        return any(map(has_rules, schema))
    if not isinstance(schema, dict):
        return False
    return bool(schema.get("x-kubernetes-validations")) or any(map(has_rules, schema.values()))


def established_resources(definition: Object) -> Sequence[ServedResource]:
    """The resources of an established definition: one per served version, the storage version first."""
    spec, accepted = definition["spec"], definition["status"]["acceptedNames"]
    served = [one for one in spec["versions"] if one.get("served")]
    return [
        ServedResource(
            spec["group"],
            version["name"],
            accepted["plural"],
            accepted["kind"],
            CustomResourceKind(version, group=spec["group"], kind=accepted["kind"]),
            namespaced=spec["scope"] == "Namespaced",
            subresources=[name for name in ("status", "scale") if name in (version.get("subresources") or {})],
            short_names=accepted.get("shortNames") or (),
            categories=accepted.get("categories") or (),
            singular=accepted.get("singular", ""),
            lists=accepted.get("listKind", ""),
            custom=True,
            definition=version,
        )
        for version in sorted(served, key=lambda one: not one.get("storage"))
    ]


def _integer(obj: Object, path: str) -> tuple[int, str]:
    """The number at a path such as ``.spec.replicas`` (0 if absent), and the error if it is none (``NestedInt64``)."""
    found: Any = obj
    steps = [step for step in path.split(".") if step]
    for index, step in enumerate(steps):
        if not isinstance(found, dict):
            return 0, _wrong_type(steps[:index], found, "map[string]interface{}")
        if step not in found:
            return 0, ""
        found = found[step]
    if isinstance(found, bool) or not isinstance(found, int) or abs(found) >= _BEYOND:
        return (0, _wrong_type(steps, found, "int64")) if steps else (0, "")
    return found, ""


def _wrong_type(steps: Sequence[str], found: Any, wanted: str) -> str:
    kind = "<nil>" if found is None else go_format.go_type_name(found)
    said = f"{go_format.go_value(found)} is of the type {kind}"
    return f".{'.'.join(steps)} accessor error: {said}, expected {wanted}"


def _below(path: str, field: str) -> str:
    return path if field == value_validation.NOWHERE else f"{path}.{field}"


def _text(found: Sequence[Any]) -> str:
    """A field's value as text for selectors."""
    value = found[0] if found else None
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
