"""How far a pod's departure has spread (pure): slices, then proxies, then connections.

All times are in seconds of one clock. Each wait has a limit, so that a drain never stands still because of traffic.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from lastcall.model.slice_places import SlicePlace


class DepartureStage(Enum):
    """What a pod's traffic waits for."""

    SLICES = "Slices"
    PROXIES = "Proxies"
    CONNECTIONS = "Connections"
    MOVED = "Moved"


class DepartureLimits(NamedTuple):
    """Seconds: for the slices from the eviction, for proxies and for connections since the slices left the pod out.

    Of a pod that serves until it is gone, that for the slices counts from then.
    """

    slices: float = 30.0
    proxies: float = 30.0
    connections: float = 60.0


class ProxyState(Enum):
    """What is known of one node's proxy about one pod."""

    FOLLOWED = "Followed"
    LATE = "Late"
    """It answers, and does not follow yet."""
    SILENT = "Silent"
    """Its agent does not tell: the settle time stands for it."""
    LEFT_OUT = "LeftOut"
    """Its Node is not Ready: nothing is expected of it."""


class DepartureFacts(NamedTuple):
    """What is known of one pod now."""

    evicted: float | None
    """When its eviction was accepted, or when it was first seen in deletion; None before."""
    place: SlicePlace | None
    """How slices name it; None if that is not known, because they cannot be read."""
    was_ready: bool
    """A slice has named it as ready since it is watched, or may have done so before it could be seen."""
    left: float | None
    """When no Service sent it traffic any more, as the slices say; None before."""
    proxies: Mapping[str, ProxyState]
    """By node: those that are asked."""
    unasked: int
    """The number of Ready nodes that are not asked, because there are too many."""
    settle: float
    """The settle time in seconds."""
    connections: int | None
    """Established connections to the pod on its node; None if its agent does not tell."""
    gone: float | None
    """When the pod's object was gone, and its connections with it; None before."""
    balancers: Sequence[str] = ()
    """Its readiness gates that load balancers set: these follow the slices too, and tell nothing."""


class DepartureStep(NamedTuple):
    """The stage, why, and when it changes at the latest (infinity if nothing is waited for)."""

    stage: DepartureStage
    why: str
    until: float = float("inf")
    cut_short: bool = False
    """A limit has ended a wait before it was shown that the traffic has moved."""


def assess_departure(facts: DepartureFacts, limits: DepartureLimits, now: float) -> DepartureStep:
    """The first rule that waits counts."""
    if facts.evicted is None:
        return DepartureStep(DepartureStage.SLICES, "it is not evicted yet")
    if facts.place is None:
        return _wait_unseen(facts, facts.evicted, now)
    if facts.place.ready:
        return _wait_for_slices(facts.place, facts.evicted + limits.slices, limits, now)
    if facts.place.lasting:
        return _wait_until_gone(facts.place, facts.gone, limits, now)
    if not facts.was_ready or facts.left is None:
        return DepartureStep(DepartureStage.MOVED, "no Service sends it traffic")
    return (
        _wait_for_proxies(facts, facts.left, limits, now)
        or _wait_for_settle_time(facts, facts.place, facts.left, now)
        or _wait_for_connections(facts, facts.left, limits, now)
        or _finish_departure(facts, limits)
    )


def _wait_unseen(facts: DepartureFacts, evicted: float, now: float) -> DepartureStep:
    """Without the slices nothing is observed: the pod's settle time runs from its eviction."""
    until = evicted + facts.settle
    why = f"the EndpointSlices cannot be read, so the settle time of {facts.settle:g} s counts"
    return (
        DepartureStep(DepartureStage.PROXIES, why, until)
        if now < until
        else DepartureStep(DepartureStage.MOVED, why, cut_short=True)
    )


def _wait_for_slices(place: SlicePlace, until: float, limits: DepartureLimits, now: float) -> DepartureStep:
    why = f"{_some(place.ready)} still name it as ready"
    if now < until:
        return DepartureStep(DepartureStage.SLICES, why, until)
    return DepartureStep(DepartureStage.MOVED, f"{why} after {limits.slices:g} s", cut_short=True)


def _wait_until_gone(place: SlicePlace, gone: float | None, limits: DepartureLimits, now: float) -> DepartureStep:
    """Without a limit while the pod is there: what it serves is no reason to cut its end short."""
    if gone is None:
        return DepartureStep(DepartureStage.SLICES, f"{_some(place.lasting)} send it traffic until it is gone")
    why, until = f"{_some(place.lasting)} still name it though it is gone", gone + limits.slices
    if now < until:
        return DepartureStep(DepartureStage.SLICES, why, until)
    return DepartureStep(DepartureStage.MOVED, f"{why} for {limits.slices:g} s", cut_short=True)


def _wait_for_proxies(facts: DepartureFacts, left: float, limits: DepartureLimits, now: float) -> DepartureStep | None:
    late, until = _nodes(facts, ProxyState.LATE), left + limits.proxies
    if not late or now >= until:
        return None
    return DepartureStep(DepartureStage.PROXIES, f"the proxies of {_some(late)} do not follow yet", until)


def _wait_for_settle_time(facts: DepartureFacts, place: SlicePlace, left: float, now: float) -> DepartureStep | None:
    """The settle time stands for all that tell nothing: nodes without an answer, and what else follows slices."""
    silent, until = _nodes(facts, ProxyState.SILENT), left + facts.settle
    reasons = [f"{_some(silent)} do not tell"] if silent else []
    reasons += [f"{facts.unasked} more nodes are not asked"] if facts.unasked else []
    reasons += [f"kube-proxy does not follow {_some(place.others)}"] if place.others else []
    reasons += [f"the load balancer of {_some(tuple(facts.balancers))} does not tell"] if facts.balancers else []
    reasons = reasons or ([] if facts.proxies else ["no node is asked"])
    if not reasons or now >= until:
        return None
    return DepartureStep(
        DepartureStage.PROXIES, f"the settle time of {facts.settle:g} s runs: {'; '.join(reasons)}", until
    )


def _wait_for_connections(
    facts: DepartureFacts, left: float, limits: DepartureLimits, now: float
) -> DepartureStep | None:
    until = left + limits.connections
    if facts.gone is not None or not facts.connections or now >= until:
        return None
    return DepartureStep(DepartureStage.CONNECTIONS, f"{facts.connections} connections are open", until)


def _finish_departure(facts: DepartureFacts, limits: DepartureLimits) -> DepartureStep:
    late, left_out = _nodes(facts, ProxyState.LATE), _nodes(facts, ProxyState.LEFT_OUT)
    said = [f"the proxies of {_some(late)} did not follow in {limits.proxies:g} s"] if late else []
    open_ = facts.connections if facts.gone is None else 0
    said += [f"{open_} connections were open after {limits.connections:g} s"] if open_ else []
    said += ["its connections are unknown"] if open_ is None else []
    said += [f"{_some(left_out)} are not Ready and left out"] if left_out else []
    return DepartureStep(
        DepartureStage.MOVED, "; ".join(said) or "its traffic has moved", cut_short=bool(late or open_)
    )


def _nodes(facts: DepartureFacts, state: ProxyState) -> tuple[str, ...]:
    return tuple(sorted(node for node, one in facts.proxies.items() if one is state))


def _some(names: tuple[str, ...]) -> str:
    """The first three names, and how many more."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
