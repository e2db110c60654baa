"""The kinds that the API server serves: built-in ones and those of CustomResourceDefinitions (pure)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lastcall_lab.controllers.framework.view import Object, View
from lastcall_lab.controllers.objects.conditions import is_condition_true

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class ServedKind(NamedTuple):
    """Resource, version and scope of a kind."""

    resource: str
    namespaced: bool


Kinds = Mapping[tuple[str, str], ServedKind]
"""By apiVersion and kind."""


class CustomKind(NamedTuple):
    """The kind of a definition; ``versions`` are the served ones, the storage version first."""

    resource: str
    namespaced: bool
    group: str
    kind: str
    versions: tuple[str, ...]


def custom_kinds(view: View) -> Iterator[CustomKind]:
    """The kinds of all established definitions that serve a version."""
    for definition in view.all(DEFINITIONS):
        if made := _custom_kind(definition):
            yield made


def find_served_kind(kinds: Kinds, api_version: str, kind: str, view: View) -> ServedKind | None:
    """The resource of a kind; None if the kind is not served."""
    found = kinds.get((api_version, kind))
    group, _, version = api_version.rpartition("/")
    if found or not group:
        return found
    for one in custom_kinds(view):
        if (one.group, one.kind) == (group, kind) and version in one.versions:
            return ServedKind(one.resource, one.namespaced)
    return None


def _custom_kind(definition: Object) -> CustomKind | None:
    spec, status = definition["spec"], definition.get("status") or {}
    versions = [one for one in spec["versions"] if one.get("served")]
    if not versions or not is_condition_true(status.get("conditions") or (), "Established"):
        return None
    ordered = sorted(versions, key=lambda one: not one.get("storage"))
    return CustomKind(
        definition["metadata"]["name"],
        spec["scope"] == "Namespaced",
        spec["group"],
        status["acceptedNames"]["kind"],
        tuple(one["name"] for one in ordered),
    )
