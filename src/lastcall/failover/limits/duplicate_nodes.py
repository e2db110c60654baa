"""Finds other Nodes that may represent the same machine as a node (pure).

A machine that is renamed or reinstalled registers as another Node; its old Node remains and is silent. Fencing the old
Node would power off the machine on which the new one runs. This module compares the identity of both Nodes and the
devices that the fencers of their policies use for them. A fencer is not used while the other Node shows signs of life.
``fence_targets`` also refuses two Nodes with the same system UUID, even if the other one is silent; but an order that
is under way consults only this module.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lastcall.failover.limits.fence_targets import comparable_provider_ids, comparable_serials
from lastcall.model import fencer_device
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy, MachineIDCheck
from lastcall.model.fencer import Fencer
from lastcall.model.system_uuid import uuid_spellings

Trace = tuple[str, ...]
"""A property that two Nodes of one machine share; the first item names its kind."""

BOOT, UUID, MACHINE, SERIAL, PROVIDER, DEVICE = "boot", "uuid", "machine", "serial", "provider", "device"

_SAID = {
    BOOT: "shows the same boot id: it is the same machine",
    UUID: "shows the same system UUID: it is the same machine",
    SERIAL: "has the same serial number: it is the same machine",
    PROVIDER: "has the same providerID: it is the same instance",
    DEVICE: "has the same device in its policy: it would be switched off as well",
    MACHINE: "shows the same machineID: it may be the same machine (for machines that were cloned: machineIDCheck: Disabled)",
}


def node_traces(node: FenceNode, policy: FencePolicy | None, every: Iterable[FencePolicy]) -> frozenset[Trace]:
    """The identifying traces of a Node; ``policy`` applies to it, ``every`` holds all policies of the cluster.

    A fencer of another policy also has a device for the Node, if it derives the device from the Node or from a table.
    """
    found = set(_own_traces(node))
    others = [
        fencer
        for one in every
        if one is not policy
        for fencer in one.spec.fencers
        if fencer_device.differs_by_node(fencer)
    ]
    for fencer in (*(policy.spec.fencers if policy else ()), *others):
        if trace := _device_trace(fencer, node):
            found.add(trace)
    return frozenset(found)


def _own_traces(node: FenceNode) -> Iterator[Trace]:
    """The traces from the Node object itself."""
    yield from ((BOOT, text) for text in (node.boot_id.strip(),) if text)
    yield from ((UUID, min(found)) for found in (uuid_spellings(node.system_uuid),) if found)
    yield from ((MACHINE, text) for text in (node.machine_id.strip().casefold(),) if text.strip("0"))
    yield from ((SERIAL, text) for text in comparable_serials(node.serial))
    yield from ((PROVIDER, text) for text in comparable_provider_ids(node.provider_id))


def _device_trace(fencer: Fencer, node: FenceNode) -> Trace | None:
    found = fencer_device.device_key(fencer, node)
    return (DEVICE, *found) if found else None


@dataclass
class TraceIndex:
    """The traces of all Nodes by name, and the Nodes that have each trace."""

    _traces: dict[str, frozenset[Trace]] = field(default_factory=dict)
    _nodes: dict[Trace, dict[str, None]] = field(default_factory=dict)

    def update_node(self, name: str, found: frozenset[Trace]) -> None:
        """Replaces the traces of a Node; an empty set removes the Node."""
        before = self._traces.pop(name, frozenset())
        for trace in before - found:
            self._nodes[trace].pop(name, None)
            if not self._nodes[trace]:
                del self._nodes[trace]
        for trace in found - before:
            self._nodes.setdefault(trace, {})[name] = None
        if found:
            self._traces[name] = found

    def other_nodes(self, name: str, trace: Trace) -> list[str]:
        """The names of the other Nodes that have a trace, sorted."""
        return sorted(one for one in self._nodes.get(trace, ()) if one != name)


def find_rivals(node: FenceNode, fencer: Fencer, policy: FencePolicy, among: TraceIndex) -> Mapping[str, str]:
    """The other Nodes that the fencer may hit, silent or not, each with the trace that both share."""
    known = dict.fromkeys(_own_traces(node))
    if policy.spec.machine_id_check is MachineIDCheck.DISABLED:
        known = {trace: None for trace in known if trace[0] != MACHINE}
    every = (*known, *filter(None, (_device_trace(fencer, node),)))
    ranked = sorted(every, key=lambda trace: [*_SAID].index(trace[0]))
    found: dict[str, str] = {}
    for trace in ranked:
        for name in among.other_nodes(node.name, trace):
            found.setdefault(name, _SAID[trace[0]])
    return found


def fencer_refusal(
    node: FenceNode, fencer: Fencer, policy: FencePolicy, among: TraceIndex, heard_of: Callable[[str], bool]
) -> str:
    """Why a fencer is not used: the first rival Node with signs of life. Empty if there is none."""
    for name, why in find_rivals(node, fencer, policy, among).items():
        if heard_of(name):
            return f"node {name}, which is heard of, {why}"
    return ""
