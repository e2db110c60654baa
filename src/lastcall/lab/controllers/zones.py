"""How many nodes of a zone may be tainted, and how fast (pure): ``k8s.io/kubernetes/pkg/controller/nodelifecycle``.

When many nodes of a zone are silent, the network is the likelier culprit than the nodes, and their pods are better left
where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lastcall.lab.controllers import taints
from lastcall.lab.controllers.view import Object

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label by which a node does not count for the state of its zone."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Nodes a second that are tainted in a zone, and the bounds between its states."""

    normal: float = 0.1
    """``--node-eviction-rate``; holds also for a zone without a ready node, as long as another zone has one."""
    secondary: float = 0.01
    """``--secondary-node-eviction-rate``: in a large zone that is partly disrupted; in a small one none is tainted."""
    large: int = 50
    """``--large-cluster-size-threshold``: a zone with more nodes is large."""
    unhealthy: float = 0.55
    """``--unhealthy-zone-threshold``: the share of nodes that are not ready."""


class State(Enum):
    """Of a zone."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True)
class Limiter:
    """A token bucket that holds one token: ``tokens`` at ``at``, ``rate`` more a second; at rate 0 it gives none."""

    rate: float
    at: float
    tokens: float = 1.0

    def ready_in(self, now: float) -> float:
        """Seconds until there is a token; infinite if there will be none."""
        if self.rate <= 0:
            return float("inf")
        return max(0.0, (1.0 - self._tokens(now)) / self.rate)

    def taken(self, now: float) -> "Limiter":
        """After one token was taken."""
        return Limiter(self.rate, now, self._tokens(now) - 1.0)

    def at_rate(self, rate: float, now: float) -> "Limiter":
        """The same with another rate; it is empty if this one was."""
        if rate == self.rate:
            return self
        return Limiter(rate, now, 1.0 if self.ready_in(now) <= 0 else 0.0)

    def _tokens(self, now: float) -> float:
        return min(1.0, self.tokens + (now - self.at) * self.rate)


@dataclass(frozen=True)
class Zone:
    """What is kept of a zone."""

    state: State
    limiter: Limiter


def zone_of(node: Object) -> str:
    """Region and zone; empty for nodes that say nothing (``GetZoneKey``)."""
    labels = node["metadata"].get("labels") or {}
    region, zone = labels.get(REGION, ""), labels.get(ZONE, "")
    return f"{region}:\0:{zone}" if region or zone else ""


class Standing(NamedTuple):
    """What a node is to its zone; ``counts`` is whether it is one of those by whom the zone is judged."""

    zone: str
    counts: bool
    ready: bool


def standing(node: Object) -> Standing:
    """Of a node as it is."""
    counts = EXCLUDED not in (node["metadata"].get("labels") or {})
    return Standing(zone_of(node), counts, taints.node_ready(node))


def state_of(ready: Sequence[bool], rates: Rates) -> State:
    """Of a zone whose nodes are ready or not (``ComputeZoneState``)."""
    silent = sum(not one for one in ready)
    if silent and silent == len(ready):
        return State.FULL
    if silent > 2 and silent / len(ready) >= rates.unhealthy:
        return State.PARTIAL
    return State.NORMAL


def everywhere(states: Mapping[str, State]) -> bool:
    """Whether no zone has a ready node: then nothing is tainted, and taints are taken off."""
    return bool(states) and all(state is State.FULL for state in states.values())


def after(
    zones: Mapping[str, Zone], states: Mapping[str, State], sizes: Mapping[str, int], rates: Rates, now: float
) -> dict[str, Zone]:
    """The zones with their new states, and with the rates that these allow (``handleDisruption``)."""
    stopped = everywhere(states)
    result = dict(zones)
    for name, state in states.items():
        rate = 0.0 if stopped else _rate(state, sizes[name], rates)
        result[name] = Zone(state, zones.get(name, unseen(rates, now)).limiter.at_rate(rate, now))
    return result


def unseen(rates: Rates, now: float) -> Zone:
    """A zone of which nothing is known yet, or none of whose nodes counts."""
    return Zone(State.INITIAL, Limiter(rates.normal, now))


def _rate(state: State, size: int, rates: Rates) -> float:
    if state is not State.PARTIAL:
        return rates.normal
    return rates.secondary if size > rates.large else 0.0
