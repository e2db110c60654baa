"""Which kinds there are: those that are built in, and those that CustomResourceDefinitions make (pure)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lastcall.lab.controllers.conditions import holds
from lastcall.lab.controllers.view import Object, View

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Served(NamedTuple):
    """Where the objects of a kind lie."""

    resource: str
    namespaced: bool


Kinds = Mapping[tuple[str, str], Served]
"""By apiVersion and kind."""


class Custom(NamedTuple):
    """What a definition makes; ``versions`` are those that are served, the stored one first."""

    resource: str
    namespaced: bool
    group: str
    kind: str
    versions: tuple[str, ...]


def customs(view: View) -> Iterator[Custom]:
    """Of all definitions that are established and serve anything."""
    for definition in view.all(DEFINITIONS):
        if made := _custom(definition):
            yield made


def served(kinds: Kinds, api_version: str, kind: str, view: View) -> Served | None:
    """Where the objects of a kind lie; None if there is no such kind."""
    found = kinds.get((api_version, kind))
    group, _, version = api_version.rpartition("/")
    if found or not group:
        return found
    for one in customs(view):
        if (one.group, one.kind) == (group, kind) and version in one.versions:
            return Served(one.resource, one.namespaced)
    return None


def _custom(definition: Object) -> Custom | None:
    spec, status = definition["spec"], definition.get("status") or {}
    versions = [one for one in spec["versions"] if one.get("served")]
    if not versions or not holds(status.get("conditions") or (), "Established"):
        return None
    ordered = sorted(versions, key=lambda one: not one.get("storage"))
    return Custom(
        definition["metadata"]["name"],
        spec["scope"] == "Namespaced",
        spec["group"],
        status["acceptedNames"]["kind"],
        tuple(one["name"] for one in ordered),
    )
