"""Builds a Table from objects of any kind (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, cast

import msgspec

from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.resources.version_conversion import visible_metadata
from lastcall_lab.apiserver.tables import (
    autoscalers,
    custom_columns,
    nodes,
    other_kinds,
    pods,
    services,
    volumes,
    workloads,
)
from lastcall_lab.apiserver.tables.cell_text import Printer, name_of
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

Include = Literal["None", "Metadata", "Object"]
"""What of each object accompanies its cells."""

_PRINTERS: Mapping[str, Printer] = {
    **pods.PRINTERS,
    **nodes.PRINTERS,
    **workloads.PRINTERS,
    **autoscalers.PRINTERS,
    **services.PRINTERS,
    **volumes.PRINTERS,
    **other_kinds.PRINTERS,
}


def build_table(
    resource: ServedResource,
    objects: Iterable[Object],
    now: float,
    include: Include = "Metadata",
    *,
    metadata: Object,
    headers: bool = True,
    version: str = "v1",
) -> Object:
    """The Table of objects with kind and apiVersion; ``now`` in seconds since 1970.

    ``metadata`` is that of the list, or the resource version of a single object. Without ``headers`` it has no columns,
    as in later events of a watch. ``version`` is the version of meta.k8s.io that the client requests.
    """
    kind, rows = resource.kind, []
    for obj in objects:  # one at a time: ten thousand decoded objects take some hundred MB
        kind = "Scale" if obj.get("kind") == "Scale" else kind
        rows.append(_row(resource, kind, obj, now, include, version))
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": _columns(resource, kind) if headers else None,
        "rows": rows,
    }


def parse_include(said: str) -> Include:
    """The parameter ``includeObject``. ApiError if it is invalid."""
    if said not in ("", "None", "Metadata", "Object"):
        why = f"includeObject: Invalid value: \"{said}\": must be 'Metadata', 'Object', 'None', or empty"
        raise api_errors.bad_request_error(f"Unable to convert to Table as requested: {why}")
    return cast("Include", said or "Metadata")


def _row(resource: ServedResource, kind: str, obj: Object, now: float, include: Include, version: str) -> Object:
    row: Object = {"cells": _cells(resource, kind, obj, now)}
    if kind == "Pod" and not resource.custom and (said := pods.row_conditions(obj)):
        row["conditions"] = said
    row["object"] = {"None": None, "Object": obj}.get(include, _metadata(resource, obj, version))
    return row


def _metadata(resource: ServedResource, obj: Object, version: str) -> Object:
    metadata = visible_metadata(obj["metadata"], resource)
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def _cells(resource: ServedResource, kind: str, obj: Object, now: float) -> Sequence[Any]:
    if resource.custom and kind == resource.kind:
        return custom_columns.custom_cells(resource, obj, now)
    printer = _PRINTERS.get(kind)
    if printer:
        return printer(obj, now)
    return [name_of(obj), obj["metadata"].get("creationTimestamp")]


def _columns(resource: ServedResource, kind: str) -> Sequence[Object]:
    if resource.custom and kind == resource.kind:
        return [_NAME, *custom_columns.custom_columns(resource, _AGE)]
    return _COLUMNS.get(kind, _DEFAULT)


def _load() -> tuple[Mapping[str, Sequence[Object]], Object, Sequence[Object]]:
    content = msgspec.yaml.decode(files(__package__).joinpath("columns.yaml").read_bytes())
    keys = ("name", "type", "format", "priority", "description")
    kinds = {kind: [dict(zip(keys, one, strict=True)) for one in columns] for kind, columns in content["kinds"].items()}
    name, *_, age = kinds["Namespace"]
    return kinds, name, [name, {**age, "name": "Created At", "type": "date"}]


_COLUMNS, _NAME, _DEFAULT = _load()
_AGE: str = _DEFAULT[1]["description"]
