"""Values of a pod's fieldRef and resourceFieldRef (pure; ``pkg/fieldpath``, ``pkg/kubelet/kubelet_pods.go``)."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall.model.quantities import parse_quantity
from lastcall_lab.kubelet.base.missing_dependency import MissingDependency

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")


@dataclass(frozen=True)
class PodLocation:
    """Where a pod runs, as its status reports or will report it."""

    node: str
    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, str]


def field_value(pod: Object, path: str, place: PodLocation) -> str:
    """The text of a field; MissingDependency if the field is not supported."""
    metadata, spec = pod["metadata"], pod["spec"]
    if found := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(found[1]) or {}).get(found[2], ""))
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "metadata.labels": _format_map(metadata.get("labels")),
        "metadata.annotations": _format_map(metadata.get("annotations")),
        "spec.nodeName": place.node,
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": place.host_ip,
        "status.hostIPs": place.host_ip,
        "status.podIP": place.pod_ip,
        "status.podIPs": place.pod_ip,
    }
    if path not in known:
        raise MissingDependency(f"field label not supported: {path}")
    return str(known[path])


def _format_map(values: Mapping[str, str] | None) -> str:
    """The format of a downwardAPI volume's files."""
    return "\n".join(f'{key}="{_escape(value)}"' for key, value in sorted((values or {}).items()))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(container: Object, reference: Mapping[str, Any], place: PodLocation) -> str:
    """A limit or a request in units of the divisor, rounded up. Without a limit, the node's capacity."""
    kind, _, name = reference["resource"].partition(".")
    given = (container.get("resources") or {}).get(kind) or {}
    quantity = given.get(name)
    if quantity is None:
        quantity = place.allocatable.get(name, "0") if kind == "limits" else "0"
    divisor = parse_quantity(str(reference.get("divisor") or "1")) or 1
    return str(math.ceil(parse_quantity(str(quantity)) / divisor))
