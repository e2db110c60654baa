"""Node health: whether a node's heartbeats arrive, and which conditions are written if they do not (pure).

``tryUpdateNodeHealth`` of ``k8s.io/kubernetes/pkg/controller/nodelifecycle``. A heartbeat is a new one of the condition
Ready or a renewed Lease. Its time is the controller's own clock; the node's clock does not count.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import pods

_POSTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""The conditions that a kubelet posts; NetworkUnavailable belongs to other components."""


class LeaseRenewal(NamedTuple):
    """A renewal computed instead of written: its renewTime, and when it came by the controller's clock."""

    text: str
    at: float


Renewals = Callable[[str], LeaseRenewal | None]
"""The computed renewal of the node with that name; None if all of its renewals are written."""


@dataclass(frozen=True)
class NodeHealth:
    """The last heartbeats of a node, and when the last one was observed (``probe``).

    ``renewed`` is also None after each new heartbeat of the condition; the Lease then counts as a heartbeat at the next
    check, whatever its time. So a node whose clock was set back is considered silent only until its kubelet posts the
    status.
    """

    heartbeat: str | None
    renewed: str | None
    probe: float


def observe_health(before: NodeHealth | None, node: Object, lease: Object | None, now: float) -> NodeHealth:
    """The health after a check at ``now``."""
    ready = pods.condition_of(node, "Ready")
    heartbeat = (ready.get("lastHeartbeatTime") or "") if ready else None
    known = before.renewed if before else None
    if renewed := _newer_renew_time(known, lease):
        return NodeHealth(heartbeat, renewed, now)
    if before is None and heartbeat is None:
        return NodeHealth(None, None, pods.unix_seconds(node["metadata"]["creationTimestamp"]))
    if before is None or before.heartbeat != heartbeat:
        return NodeHealth(heartbeat, None, now)
    return before


def _newer_renew_time(known: str | None, lease: Object | None) -> str | None:
    """The renewTime of a Lease that is newer than the known one."""
    renewed: str | None = ((lease or {}).get("spec") or {}).get("renewTime")
    return renewed if renewed and (known is None or pods.unix_seconds(known) < pods.unix_seconds(renewed)) else None


def mark_silent(health: NodeHealth, lease: Object | None) -> NodeHealth:
    """The health after the conditions became Unknown: the Lease's current time is no heartbeat."""
    return replace(health, renewed=((lease or {}).get("spec") or {}).get("renewTime"))


def with_renewal(before: NodeHealth, renewal: LeaseRenewal, seen: float) -> NodeHealth:
    """Adds a renewal that was observed at ``seen``, if it is newer than the known one.

    Without a known one, nothing changes, and ``observe_health`` must check the Lease.
    """
    if before.renewed is None or pods.unix_seconds(before.renewed) >= pods.unix_seconds(renewal.text):
        return before
    return replace(before, renewed=renewal.text, probe=max(seen, before.probe))


def mark_alive(health: NodeHealth, now: float) -> NodeHealth:
    """The health as if a heartbeat had come now."""
    return replace(health, probe=now)


def unknown_conditions(node: Object, now: float) -> list[Mapping[str, Any]]:
    """The conditions for a node without heartbeats; empty if Ready is already Unknown.

    Missing conditions count from the node's creation.
    """
    if pods.condition_of(node, "Ready").get("status") == "Unknown":
        return []
    since = timestamp(now)
    return [
        _unknown_condition(node, kind, since)
        for kind in _POSTED
        if pods.condition_of(node, kind).get("status") != "Unknown"
    ]


def _unknown_condition(node: Object, kind: str, since: str) -> Mapping[str, Any]:
    changed = {"type": kind, "status": "Unknown", "lastTransitionTime": since}
    if pods.condition_of(node, kind):
        return {**changed, "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    return {
        **changed,
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": node["metadata"]["creationTimestamp"],
    }
