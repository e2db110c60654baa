"""A node's own Lease, as its agent renews it, as a fact about its watchdog (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lastcall.failover.evidence.facts import NodesWithoutOutageReport, WatchdogSeen
from lastcall.model.watchdog_lease import WatchdogPromise, parse_promise


@dataclass(frozen=True, kw_only=True)
class Reachability:
    """From ``at`` on, until the next one, the API server has heard from ``reachable`` of all ``nodes``."""

    at: float
    reachable: int
    nodes: int


@dataclass(frozen=True, kw_only=True)
class WatchdogObservation:
    """What such a Lease has said ``since``: when it was seen first, on the observer's clock; so a little later than true."""

    promise: WatchdogPromise | None
    renewed: str
    """``spec.renewTime``, which is another after each renewal; it is compared with itself alone."""
    since: float


def observe_lease(
    before: WatchdogObservation | None, *, annotations: Mapping[str, str], renewed: str, now: float
) -> WatchdogObservation:
    """What is known after a look whose answer came, or an event that came, at ``now``.

    A Lease that is missing has no annotations. Any change counts as a renewal.
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
    """That the node's watchdog was armed, and its agent has not renewed since; None if it promises nothing.

    ``read`` is when the last **live** look at the Lease (a quorum read: no ``resourceVersion`` in the request) was asked
    for: it is then that the Lease was still as it is. ``contacts`` are in order of time; while there is none, nothing is
    known of the nodes, and the bound will prove nothing. ``calm`` is about the nodes that its agent counts, if it does: what is
    seen of them first, then what has been confirmed.
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
    """Those that held at some moment from ``begin`` to ``end``; none if it is not known how it was at ``begin``."""
    earlier = [one for one in contacts if one.at <= begin]
    return [earlier[-1], *(one for one in contacts if begin < one.at <= end)] if earlier else []
