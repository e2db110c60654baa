"""Horizontal pod autoscalers: current against target metrics (``formatHPAMetrics``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.tables.cell_text import (
    NONE,
    UNKNOWN,
    UNSET,
    Printer,
    age_text,
    name_of,
    spec_of,
    status_of,
)
from lastcall_lab.apiserver.values.request import Object

_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def autoscaler_cells(obj: Object, now: float) -> Sequence[Any]:
    """The cells of a horizontal pod autoscaler."""
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        UNSET if spec.get("minReplicas") is None else str(spec["minReplicas"]),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_text(obj, now),
    ]


def _metrics(wanted: Sequence[Object], measured: Sequence[Object]) -> str:
    pairs = [(one, measured[index] if index < len(measured) else {}) for index, one in enumerate(wanted)]
    texts = [_metric(one, found) for one, found in pairs]
    more = f" + {len(texts) - 2} more..." if len(texts) > 2 else ""
    return ", ".join(texts[:2]) + more if texts else NONE


def _metric(wanted: Object, measured: Object) -> str:
    kind = wanted.get("type", "")
    if kind not in _FIELDS:
        return "<unknown type>"
    said, found = wanted.get(_FIELDS[kind]) or {}, measured.get(_FIELDS[kind])
    target, current = said.get("target") or {}, (found or {}).get("current") or {}
    if kind.endswith("Resource"):
        return f"{said.get('name', '')}: {_resource(target, current)}"
    if kind == "Pods":
        return f"{current.get('averageValue', UNKNOWN)}/{target.get('averageValue', '0')}"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', '0')}"


def _resource(target: Object, current: Object) -> str:
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
    used, aim = current.get("averageUtilization"), target.get("averageUtilization")
    return f"{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if aim is None else f'{aim}%'}"


PRINTERS: Mapping[str, Printer] = {"HorizontalPodAutoscaler": autoscaler_cells}
