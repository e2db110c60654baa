"""Which other Nodes may stand for the machine of a node (pure).

A machine that was renamed, or installed anew, is registered as another Node, and its old Node stays behind, silent. To fence
the old one switches off the machine, on which the new one runs. This module compares what both Nodes say, and which devices
their policies' fencers have for them: none is used while the other Node is heard of. Two Nodes that show the same system UUID
are refused by ``targets`` too, also while the other one is silent; but an order that is under way asks this module alone.
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
"""Something by which two Nodes of one machine are alike; its first member says what it is."""

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
    """By what a Node may be known again: ``policy`` holds for it, ``every`` are all that there are.

    A fencer of another policy has a device for the Node, too, if it takes that from the Node or from a table.
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
    """What it says of itself."""
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
    """The traces of all Nodes, by name, and which Nodes have each."""

    _traces: dict[str, frozenset[Trace]] = field(default_factory=dict)
    _nodes: dict[Trace, dict[str, None]] = field(default_factory=dict)

    def update_node(self, name: str, found: frozenset[Trace]) -> None:
        """A Node has these traces now; none: it is gone."""
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
        """The other Nodes that have a trace, by name."""
        return sorted(one for one in self._nodes.get(trace, ()) if one != name)


def find_rivals(node: FenceNode, fencer: Fencer, policy: FencePolicy, among: TraceIndex) -> Mapping[str, str]:
    """The other Nodes that a fencer may strike, whether they are heard of or not, each with what both have in common."""
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
    """Why a fencer is not used, by the first of them that is heard of; empty if none is."""
    for name, why in find_rivals(node, fencer, policy, among).items():
        if heard_of(name):
            return f"node {name}, which is heard of, {why}"
    return ""
