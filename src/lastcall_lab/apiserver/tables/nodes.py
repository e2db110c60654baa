"""Nodes, namespaces and leases."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import (
    NONE,
    UNKNOWN,
    Printer,
    age_text,
    find_condition,
    name_of,
    spec_of,
    status_of,
)
from lastcall_lab.apiserver.values.request import Object

_ROLE = "node-role.kubernetes.io/"


def node_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a node (``printNode``)."""
    info = status_of(obj).get("nodeInfo") or {}
    return [
        name_of(obj),
        _readiness(obj),
        ",".join(_roles(obj)) or NONE,
        age_text(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        _kernel(info),
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _kernel(info: Object) -> str:
    """The kernel with the architecture, if known."""
    kernel, architecture = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


def _readiness(obj: Object) -> str:
    ready = find_condition(obj, "Ready")
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if spec_of(obj).get("unschedulable") else word


def _roles(obj: Object) -> Sequence[str]:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get("kubernetes.io/role")}
    return sorted(role for role in roles if role)


def _address(obj: Object, kind: str) -> str:
    found = (one["address"] for one in status_of(obj).get("addresses") or () if one.get("type") == kind)
    return next(found, NONE)


def namespace_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a namespace."""
    return [name_of(obj), status_of(obj).get("phase", ""), age_text(obj, now)]


def lease_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a lease."""
    return [name_of(obj), spec_of(obj).get("holderIdentity") or "", age_text(obj, now)]


PRINTERS: Mapping[str, Printer] = {"Node": node_cells, "Namespace": namespace_cells, "Lease": lease_cells}
