"""Validation of a CustomResourceDefinition (``apis/apiextensions/validation/validation.go``), pure.

Kubernetes validates an internal form, in which everything common to all versions is stored once beside the versions:
hence paths such as ``spec.validation.openAPIV3Schema``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall.model import name_rules
from lastcall_lab.apiserver.custom import definition_parts, definition_schema
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_APPROVED = "api-approved.kubernetes.io"


class CommonParts(NamedTuple):
    """The parts that are equal in all versions; None for parts that differ and so stay with the versions."""

    schema: Object | None
    subresources: Object | None
    columns: Sequence[Object] | None
    selectable: Sequence[Object] | None

    @classmethod
    def of(cls, versions: Sequence[Object]) -> "CommonParts":
        """The common parts of a definition's versions."""
        keys = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
        first = versions[0] if versions else {}
        alike = (first.get(key) if all(one.get(key) == first.get(key) for one in versions) else None for key in keys)
        return cls(*alike)


def definition_violations(obj: Object) -> Iterator[Cause]:
    """The rules for a new definition."""
    spec, said = obj.get("spec") or {}, obj["metadata"].get("name", "")
    of = spec.get("names") or {}
    if said and said != f"{of.get('plural', '')}.{spec.get('group', '')}":
        yield field_errors.invalid("metadata.name", said, 'must be spec.names.plural+"."+spec.group')
    yield from _spec(spec)
    yield from _status(obj)
    yield from _approval(obj)
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield field_errors.invalid("spec.preserveUnknownFields", True, f"cannot set to true, {instead}")


def definition_update_violations(new: Object, old: Object) -> Iterator[Cause]:
    """The rules for a change of a definition: what its stored objects depend on is immutable."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    yield from _spec(spec)
    if was_established(old):
        yield from _immutable(spec.get("scope"), before.get("scope"), "spec.scope")
        yield from _immutable(spec["names"].get("kind"), before["names"].get("kind"), "spec.names.kind")
    yield from _immutable(spec.get("group"), before.get("group"), "spec.group")
    yield from _immutable(spec["names"].get("plural"), before["names"].get("plural"), "spec.names.plural")
    yield from _status(new)
    approvals = [(one["metadata"].get("annotations") or {}).get(_APPROVED) for one in (new, old)]
    if approvals[0] != approvals[1]:
        yield from _approval(new)


def accepted_name_violations(obj: Object) -> Iterator[Cause]:
    """The rules for accepted names."""
    yield from _names((obj.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _status(obj: Object) -> Iterator[Cause]:
    """Also the rules for ``storedVersions``."""
    yield from accepted_name_violations(obj)
    status = obj.get("status") or {}
    stored, versions = status.get("storedVersions"), (obj.get("spec") or {}).get("versions") or ()
    at = "status.storedVersions"
    if not stored:
        yield field_errors.invalid(at, stored or None, "must have at least one stored version")
        return
    for one in versions:
        if one.get("storage") and one.get("name") not in stored:
            yield field_errors.invalid(at, stored, f"must have the storage version {one.get('name')}")
    for index, name in enumerate(stored):
        if name not in [one.get("name") for one in versions]:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            yield field_errors.invalid(f"{at}[{index}]", name, why)


def was_established(obj: Object) -> bool:
    """Whether the definition has ever been established."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _immutable(new: Any, old: Any, path: str) -> Iterator[Cause]:
    if new != old:
        yield field_errors.invalid(path, new, "field is immutable")


def _approval(obj: Object) -> Iterator[Cause]:
    group, at = (obj.get("spec") or {}).get("group", ""), f"metadata.annotations[{_APPROVED}]"
    if group not in ("k8s.io", "kubernetes.io") and not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    said = (obj["metadata"].get("annotations") or {}).get(_APPROVED, "")
    why, see = (
        f'protected groups must have approval annotation "{_APPROVED}"',
        "https://github.com/kubernetes/enhancements/pull/1111",
    )
    if not said:
        yield field_errors.value_required(at, f"{why}, see {see}")
    elif not said.startswith(("unapproved", "https://", "http://")):
        yield field_errors.invalid(
            at, said, f'{why} with either a URL or a reason starting with "unapproved", see {see}'
        )


# -- spec --------------------------------------------------------------------------------------------------------------


def _spec(spec: Object) -> Iterator[Cause]:
    group, versions = spec.get("group", ""), spec.get("versions") or []
    common = CommonParts.of(versions)
    if not group:
        yield field_errors.value_required("spec.group")
    elif wrong := name_rules.subdomain_error(group):
        yield field_errors.invalid("spec.group", group, wrong)
    elif "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope", "")
    if not scope:
        yield field_errors.value_required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield field_errors.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    for index, one in enumerate(versions):
        if not (one.get("schema") or {}).get("openAPIV3Schema"):
            yield field_errors.value_required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, one in enumerate(versions):
        yield from _version(one, common, f"spec.versions[{index}]")
    yield from _versions(versions, common)
    of = spec.get("names") or {}
    for name in ("plural", "singular", "kind", "listKind"):
        if not of.get(name):
            yield field_errors.value_required(f"spec.names.{name}")
    yield from _names(of, "spec.names")
    yield from _common(common, versions)
    yield from definition_parts.conversion_violations(spec.get("conversion") or {})


def _versions(versions: Sequence[Object], common: CommonParts) -> Iterator[Cause]:
    said = [one.get("name", "") for one in versions]
    if len(set(said)) < len(said):
        yield field_errors.invalid(
            "spec.versions", _shown_versions(versions, common), "must contain unique version names"
        )
    if sum(bool(one.get("storage")) for one in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield field_errors.invalid("spec.versions", _shown_versions(versions, common), why)


def _shown_versions(versions: Sequence[Object], common: CommonParts) -> Sequence[Object] | None:
    """The versions as Go prints them, without the common parts."""
    return [
        {
            "Name": one.get("name", ""),
            "Served": bool(one.get("served")),
            "Storage": bool(one.get("storage")),
            "Deprecated": bool(one.get("deprecated")),
            "DeprecationWarning": one.get("deprecationWarning"),
            "Schema": one.get("schema") if common.schema is None else None,
            "Subresources": one.get("subresources") if common.subresources is None else None,
            "AdditionalPrinterColumns": one.get("additionalPrinterColumns") if common.columns is None else None,
            "SelectableFields": one.get("selectableFields") if common.selectable is None else None,
        }
        for one in versions
    ] or None


def _version(one: Object, common: CommonParts, path: str) -> Iterator[Cause]:
    name, warning = one.get("name", ""), one.get("deprecationWarning")
    if wrong := name_rules.service_name_error(name):
        yield field_errors.invalid(f"{path}.name", name, wrong)
    if warning is not None and not one.get("deprecated"):
        yield field_errors.invalid(f"{path}.deprecationWarning", warning, "can only be set for deprecated versions")
    elif warning is not None and len(warning) > 256:
        yield field_errors.invalid(f"{path}.deprecationWarning", warning, "must be <= 256 characters long")
    elif warning == "":
        yield field_errors.invalid(f"{path}.deprecationWarning", warning, "must not be an empty string")
    schema, subresources = (one.get("schema") or {}).get("openAPIV3Schema"), one.get("subresources") or {}
    if common.schema is None and schema:
        yield from definition_schema.schema_violations(
            schema, f"{path}.schema.openAPIV3Schema", status="status" in subresources
        )
    if common.subresources is None:
        yield from definition_parts.subresource_violations(subresources, f"{path}.subresources")
    if common.columns is None:
        yield from definition_parts.column_violations(
            one.get("additionalPrinterColumns") or (), f"{path}.additionalPrinterColumns"
        )
    if common.selectable is None and one.get("selectableFields"):
        at = f"{path}.selectableFields"
        if schema:
            yield from definition_parts.selectable_field_violations(one["selectableFields"], schema, at)
        else:
            why = "may only be set when `version.schema.openAPIV3Schema` is not included"
            yield field_errors.invalid(at, "", why)


def _common(common: CommonParts, versions: Sequence[Object]) -> Iterator[Cause]:
    schema = (common.schema or {}).get("openAPIV3Schema")
    status = any("status" in (one.get("subresources") or {}) for one in versions)
    if schema:
        yield from definition_schema.schema_violations(schema, "spec.validation.openAPIV3Schema", status=status)
    yield from definition_parts.subresource_violations(common.subresources or {}, "spec.subresources")
    yield from definition_parts.column_violations(common.columns or (), "spec.additionalPrinterColumns")
    if common.selectable and not common.schema:
        yield field_errors.invalid("spec.selectableFields", "", "may only be set when validations.schema is included")
    elif common.selectable and schema:
        yield from definition_parts.selectable_field_violations(common.selectable, schema, "spec.selectableFields")


def _names(of: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in ("plural", "singular"):
        if of.get(name) and (wrong := name_rules.service_name_error(of[name])):
            yield field_errors.invalid(f"{path}.{name}", of[name], wrong)
    for name in ("kind", "listKind"):
        if of.get(name) and (wrong := name_rules.service_name_error(of[name].lower())):
            why = f"may have mixed case, but should otherwise match: {wrong}"
            yield field_errors.invalid(f"{path}.{name}", of[name], why)
    for index, short in enumerate(of.get("shortNames") or ()):
        if wrong := name_rules.service_name_error(short):
            yield field_errors.invalid(f"{path}.shortNames[{index}]", short, wrong)
    if of.get("kind") and of["kind"] == of.get("listKind"):
        yield field_errors.invalid(f"{path}.listKind", of["listKind"], "kind and listKind may not be the same")
    for index, category in enumerate(of.get("categories") or ()):
        if wrong := name_rules.service_name_error(category):
            yield field_errors.invalid(f"{path}.categories[{index}]", category, wrong)
