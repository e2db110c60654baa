"""Zone states and the eviction rates that they allow (pure): ``k8s.io/kubernetes/pkg/controller/nodelifecycle``.

When many nodes of a zone are silent, the cause is more likely the network than the nodes, and their pods should stay
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
"""The label that excludes a node from its zone's state."""


@dataclass(frozen=True, kw_only=True)
class TaintRates:
    """Nodes tainted per second in a zone, and the thresholds between zone states."""

    normal: float = 0.1
    """``--node-eviction-rate``; also for a zone without a ready node while another zone has one."""
    secondary: float = 0.01
    """``--secondary-node-eviction-rate``: for a large, partially disrupted zone; in a small one no node is tainted."""
    large: int = 50
    """``--large-cluster-size-threshold``: a zone with more nodes is large."""
    unhealthy: float = 0.55
    """``--unhealthy-zone-threshold``: the share of not-ready nodes."""


class ZoneState(Enum):
    """The state of a zone."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True)
class ZoneRateLimiter:
    """A token bucket of size one: ``tokens`` at ``at``, ``rate`` more per second; rate 0 gives none."""

    rate: float
    at: float
    tokens: float = 1.0

    def ready_in(self, now: float) -> float:
        """Seconds until a token is available; infinite if none will be."""
        if self.rate <= 0:
            return float("inf")
        return max(0.0, (1.0 - self._tokens_at(now)) / self.rate)

    def with_token_taken(self, now: float) -> "ZoneRateLimiter":
        """The bucket after one token was taken."""
        return ZoneRateLimiter(self.rate, now, self._tokens_at(now) - 1.0)

    def with_rate(self, rate: float, now: float) -> "ZoneRateLimiter":
        """The bucket with another rate; an empty one stays empty."""
        if rate == self.rate:
            return self
        return ZoneRateLimiter(rate, now, 1.0 if self.ready_in(now) <= 0 else 0.0)

    def _tokens_at(self, now: float) -> float:
        return min(1.0, self.tokens + (now - self.at) * self.rate)


@dataclass(frozen=True)
class ZoneRecord:
    """The record of a zone."""

    state: ZoneState
    limiter: ZoneRateLimiter


def zone_of(node: Object) -> str:
    """Region and zone; empty for nodes without these labels (``GetZoneKey``)."""
    labels = node["metadata"].get("labels") or {}
    region, zone = labels.get(REGION, ""), labels.get(ZONE, "")
    return f"{region}:\0:{zone}" if region or zone else ""


class ZoneMembership(NamedTuple):
    """A node in its zone; ``counts``: whether it counts for the zone's state."""

    zone: str
    counts: bool
    ready: bool


def zone_membership(node: Object) -> ZoneMembership:
    """The membership of a node."""
    counts = EXCLUDED not in (node["metadata"].get("labels") or {})
    return ZoneMembership(zone_of(node), counts, taints.is_node_ready(node))


def zone_state(ready: Sequence[bool], rates: TaintRates) -> ZoneState:
    """The state of a zone from its ready and not ready nodes (``ComputeZoneState``)."""
    silent = sum(not one for one in ready)
    if silent and silent == len(ready):
        return ZoneState.FULL
    if silent > 2 and silent / len(ready) >= rates.unhealthy:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def is_full_disruption(states: Mapping[str, ZoneState]) -> bool:
    """Whether no zone has a ready node: then no node is tainted, and existing taints are removed."""
    return bool(states) and all(state is ZoneState.FULL for state in states.values())


def next_zones(
    zones: Mapping[str, ZoneRecord],
    states: Mapping[str, ZoneState],
    sizes: Mapping[str, int],
    rates: TaintRates,
    now: float,
) -> dict[str, ZoneRecord]:
    """The zones with new states, and the rates that these allow (``handleDisruption``)."""
    stopped = is_full_disruption(states)
    result = dict(zones)
    for name, state in states.items():
        rate = 0.0 if stopped else _taint_rate(state, sizes[name], rates)
        result[name] = ZoneRecord(state, zones.get(name, new_zone(rates, now)).limiter.with_rate(rate, now))
    return result


def new_zone(rates: TaintRates, now: float) -> ZoneRecord:
    """A zone without observations, or without any node that counts."""
    return ZoneRecord(ZoneState.INITIAL, ZoneRateLimiter(rates.normal, now))


def _taint_rate(state: ZoneState, size: int, rates: TaintRates) -> float:
    if state is not ZoneState.PARTIAL:
        return rates.normal
    return rates.secondary if size > rates.large else 0.0
