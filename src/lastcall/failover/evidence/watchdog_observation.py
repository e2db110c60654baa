"""Converts a node's Lease, as its agent renews it, to a fact about its watchdog (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lastcall.failover.evidence.facts import NodesWithoutOutageReport, WatchdogSeen
from lastcall.model.watchdog_lease import WatchdogPromise, parse_promise


@dataclass(frozen=True, kw_only=True)
class Reachability:
    """From ``at`` until the next entry, the API server has contact with ``reachable`` of all ``nodes``."""

    at: float
    reachable: int
    nodes: int


@dataclass(frozen=True, kw_only=True)
class WatchdogObservation:
    """A watchdog Lease's state and when we first observed it (our clock, therefore slightly late)."""

    promise: WatchdogPromise | None
    renewed: str
    """``spec.renewTime``, which changes with each renewal; it is compared only with itself."""
    since: float


def observe_lease(
    before: WatchdogObservation | None, *, annotations: Mapping[str, str], renewed: str, now: float
) -> WatchdogObservation:
    """The observation after a read or an event that arrived at ``now``.

    A missing Lease has no annotations. Any change counts as a renewal.
    """
    promise = parse_promise(annotations)
    if before and before.renewed == renewed and before.promise == promise:
        return before
    return WatchdogObservation(promise=promise, renewed=renewed, since=now)


def watchdog_evidence(
    watched: WatchdogObservation,
    *,
    read: float,
    contacts: Sequence[Reachability],
    calm: Sequence[NodesWithoutOutageReport] = (),
) -> WatchdogSeen | None:
    """The fact that the watchdog was armed and the agent has not renewed since; None if the Lease promises nothing.

    ``read`` is when the last **live** read of the Lease (a quorum read, without ``resourceVersion`` in the request)
    began: at that time the Lease was still unchanged. ``contacts`` are in order of time; without any, nothing is known
    about the nodes, and the bound proves nothing. ``calm`` is about the nodes that the agent counts, if it does: first
    by observation, then as confirmed by surveys.
    """
    settings = watched.promise.armed_timing if watched.promise else None
    if watched.promise is None or settings is None or read < watched.since:
        return None
    told = _contacts_between(contacts, watched.since, read)
    fact = WatchdogSeen(
        boot_id=watched.promise.boot_id,
        settings=settings,
        renewed=watched.since,
        read=read,
        reachable=min((one.reachable for one in told), default=0),
        nodes=max((one.nodes for one in told), default=0),
    )
    if not settings.peers:
        return fact
    facts = [replace(fact, peers=one) for one in (calm or [NodesWithoutOutageReport(nodes=0, calm=0)])]
    return next((one for one in facts if one.is_expired), facts[0])


def _contacts_between(contacts: Sequence[Reachability], begin: float, end: float) -> Sequence[Reachability]:
    """The entries in effect at some moment from ``begin`` to ``end``; empty if the state at ``begin`` is unknown."""
    earlier = [one for one in contacts if one.at <= begin]
    return [earlier[-1], *(one for one in contacts if begin < one.at <= end)] if earlier else []
