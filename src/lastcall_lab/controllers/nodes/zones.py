"""How many nodes of a zone may be tainted, and how fast (pure): ``k8s.io/kubernetes/pkg/controller/nodelifecycle``.

When many nodes of a zone are silent, the network is the likelier culprit than the nodes, and their pods are better left
where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import taints

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label by which a node does not count for the state of its zone."""


@dataclass(frozen=True, kw_only=True)
class TaintRates:
    """Nodes a second that are tainted in a zone, and the bounds between its states."""

    normal: float = 0.1
    """``--node-eviction-rate``; holds also for a zone without a ready node, as long as another zone has one."""
    secondary: float = 0.01
    """``--secondary-node-eviction-rate``: in a large zone that is partly disrupted; in a small one none is tainted."""
    large: int = 50
    """``--large-cluster-size-threshold``: a zone with more nodes is large."""
    unhealthy: float = 0.55
    """``--unhealthy-zone-threshold``: the share of nodes that are not ready."""


class ZoneState(Enum):
    """Of a zone."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True)
class ZoneRateLimiter:
    """A token bucket that holds one token: ``tokens`` at ``at``, ``rate`` more a second; at rate 0 it gives none."""

    rate: float
    at: float
    tokens: float = 1.0

    def ready_in(self, now: float) -> float:
        """Seconds until there is a token; infinite if there will be none."""
        if self.rate <= 0:
            return float("inf")
        return max(0.0, (1.0 - self._tokens_at(now)) / self.rate)

    def with_token_taken(self, now: float) -> "ZoneRateLimiter":
        """After one token was taken."""
        return ZoneRateLimiter(self.rate, now, self._tokens_at(now) - 1.0)

    def with_rate(self, rate: float, now: float) -> "ZoneRateLimiter":
        """The same with another rate; it is empty if this one was."""
        if rate == self.rate:
            return self
        return ZoneRateLimiter(rate, now, 1.0 if self.ready_in(now) <= 0 else 0.0)

    def _tokens_at(self, now: float) -> float:
        return min(1.0, self.tokens + (now - self.at) * self.rate)


@dataclass(frozen=True)
class ZoneRecord:
    """What is kept of a zone."""

    state: ZoneState
    limiter: ZoneRateLimiter


def zone_of(node: Object) -> str:
    """Region and zone; empty for nodes that say nothing (``GetZoneKey``)."""
    labels = node["metadata"].get("labels") or {}
    region, zone = labels.get(REGION, ""), labels.get(ZONE, "")
    return f"{region}:\0:{zone}" if region or zone else ""


class ZoneMembership(NamedTuple):
    """What a node is to its zone; ``counts`` is whether it is one of those by whom the zone is judged."""

    zone: str
    counts: bool
    ready: bool


def zone_membership(node: Object) -> ZoneMembership:
    """Of a node as it is."""
    counts = EXCLUDED not in (node["metadata"].get("labels") or {})
    return ZoneMembership(zone_of(node), counts, taints.is_node_ready(node))


def zone_state(ready: Sequence[bool], rates: TaintRates) -> ZoneState:
    """Of a zone whose nodes are ready or not (``ComputeZoneState``)."""
    silent = sum(not one for one in ready)
    if silent and silent == len(ready):
        return ZoneState.FULL
    if silent > 2 and silent / len(ready) >= rates.unhealthy:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def is_full_disruption(states: Mapping[str, ZoneState]) -> bool:
    """Whether no zone has a ready node: then nothing is tainted, and taints are taken off."""
    return bool(states) and all(state is ZoneState.FULL for state in states.values())


def next_zones(
    zones: Mapping[str, ZoneRecord],
    states: Mapping[str, ZoneState],
    sizes: Mapping[str, int],
    rates: TaintRates,
    now: float,
) -> dict[str, ZoneRecord]:
    """The zones with their new states, and with the rates that these allow (``handleDisruption``)."""
    stopped = is_full_disruption(states)
    result = dict(zones)
    for name, state in states.items():
        rate = 0.0 if stopped else _taint_rate(state, sizes[name], rates)
        result[name] = ZoneRecord(state, zones.get(name, new_zone(rates, now)).limiter.with_rate(rate, now))
    return result


def new_zone(rates: TaintRates, now: float) -> ZoneRecord:
    """A zone of which nothing is known yet, or none of whose nodes counts."""
    return ZoneRecord(ZoneState.INITIAL, ZoneRateLimiter(rates.normal, now))


def _taint_rate(state: ZoneState, size: int, rates: TaintRates) -> float:
    if state is not ZoneState.PARTIAL:
        return rates.normal
    return rates.secondary if size > rates.large else 0.0
