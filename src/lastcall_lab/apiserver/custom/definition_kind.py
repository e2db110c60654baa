"""The kind CustomResourceDefinition."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lastcall_lab.apiserver.custom import definition_conditions, definition_rules, string_formats
from lastcall_lab.apiserver.resources.kind_behaviour import (
    DeleteOptions,
    DeletionFate,
    DeletionOutcome,
    KindBehaviour,
)
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


class DefinitionKind(KindBehaviour):
    """``DefinitionRegistry`` accepts its names and serves its kind as soon as it is stored."""

    known_finalizers = False
    has_generation = True
    has_status = True
    needs_revision = True

    def default(self, obj: Object) -> None:
        """Names derived from the kind, and conversion strategy None."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        kind = names.get("kind", "")
        if kind:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        conversion = spec.get("conversion") or {"strategy": "None"}
        spec["conversion"] = conversion
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_create(self, obj: Object) -> None:
        """Clears the status and sets the storage version."""
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": _storage_versions(obj) or None,
        }

    def prepare_update(self, new: Object, old: Object) -> None:
        """Keeps the status, and adds a new storage version to ``storedVersions``."""
        super().prepare_update(new, old)
        status = new.setdefault("status", {})
        known = status.get("storedVersions") or []
        status["storedVersions"] = [*known, *(name for name in _storage_versions(new) if name not in known)]

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Validates a new definition."""
        return definition_rules.definition_violations(obj)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates a change."""
        return definition_rules.definition_update_violations(new, old)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """Validates the accepted names."""
        return definition_rules.accepted_name_violations(new)

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warns about unknown formats."""
        found = {}
        for one in obj["spec"].get("versions") or ():
            for said in _unknown_formats((one.get("schema") or {}).get("openAPIV3Schema") or {}):
                found[said] = f'unrecognized format "{said}"'
        return found.values()

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Warns about new unknown formats."""
        known = [*self.warnings(old)]
        return [one for one in self.warnings(new) if one not in known]

    def outcome(self, obj: Object, options: DeleteOptions, wall: float) -> DeletionOutcome | None:
        """The first deletion only marks the definition; its objects are deleted before it."""
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            return None
        found = replace(options, uid=options.uid or metadata["uid"])
        metadata["deletionTimestamp"] = object_meta.timestamp(wall)
        metadata["finalizers"] = [*(one for one in metadata.get("finalizers") or () if one != FINALIZER), FINALIZER]
        definition_conditions.set_condition(obj, "Terminating", "True", "InstanceDeletionPending", _PENDING, wall=wall)
        return DeletionOutcome(DeletionFate.MARKED_FOR_LATER, obj, found, marked=True)


def _storage_versions(obj: Object) -> list[str]:
    """The names of the storage versions."""
    return [one["name"] for one in obj["spec"].get("versions") or () if one.get("storage") and one.get("name")][:1]


def _unknown_formats(schema: Object) -> Iterator[str]:
    said = schema.get("format")
    if said and not string_formats.is_known(said, schema.get("type", "")):
        yield said
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for junctor in ("allOf", "anyOf", "oneOf"):
        parts += schema.get(junctor) or ()
    for part in parts:
        if isinstance(part, dict):
            yield from _unknown_formats(part)
