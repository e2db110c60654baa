"""Converts nodes' own shutdown announcements (``NodeShutdown``) to facts on the observer's clock (pure).

The times in such an object are on the node's own clock, so only their differences are used. They count from when the
object was seen, slightly after it was written: fencing waits slightly longer.
"""

from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.evidence.facts import ShutdownAnnounced
from lastcall.failover.evidence.revisions import revision_number
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import ShutdownOutcome
from lastcall.model.shutdown_kind import ends_boot

UNSTATED = 600.0
"""Seconds to wait for a shutdown without a deadline; the node states none if logind sets no limit."""

Said = WatchedShutdown | NodeShutdown
"""As a watch delivers it, or as read live."""


@dataclass(frozen=True, kw_only=True)
class ObservedShutdown:
    """A node's announcement as observed: this shutdown first at ``began``, its current form at ``written``."""

    boot_id: str
    start: datetime | None
    """On the node's own clock; together with ``boot_id`` it identifies the shutdown."""
    seconds: float
    """Seconds from its start to its deadline."""
    cancelled: bool
    how: str
    """The kind of the shutdown; empty if unknown."""
    revision: str
    began: float
    written: float
    new: bool
    """Whether its boot wrote it since the observer began.

    An object found at the first look may be of any age, and one with a ``returnedTime`` was written by the next boot.
    """


def observe_shutdown(
    before: ObservedShutdown | None,
    shutdown: Said,
    now: float,
    *,
    first: bool = False,
    since: ObservedShutdown | None = None,
) -> ObservedShutdown:
    """The observation after the object was read at ``now``.

    ``first``: the observer's first look. An older state than the last one is ignored, because watch and live reads
    overtake each other. But a live read never returns older state than was known when it began (``since``), unless
    history went back; then all earlier observations are invalid.
    """
    revision = shutdown.metadata.resource_version
    if before and revision_number(revision) < revision_number(before.revision):
        if since is None or revision_number(revision) >= revision_number(since.revision):
            return before
        before, first = None, True
    if before and revision == before.revision:
        return before
    boot_id, start = _shutdown_key(shutdown)
    return ObservedShutdown(
        boot_id=boot_id,
        start=start,
        seconds=_allowed_seconds(start, _parse_time(shutdown.status.deadline_time)),
        cancelled=_is_cancelled(shutdown),
        how=shutdown.spec.how,
        revision=revision,
        began=before.began if before and (before.boot_id, before.start) == (boot_id, start) else now,
        written=now,
        new=(before is not None or not first) and shutdown.status.returned_time is None,
    )


def shutdown_fact(word: ObservedShutdown, live: NodeShutdown | None) -> ShutdownAnnounced:
    """The fact from both sources. ``live``: the whole object as just read; None if it is missing or unreadable.

    Either source may be the newer one, so the shutdown counts as cancelled if one of them says so. Ended pods are taken
    from ``live`` alone, if it describes the same shutdown.
    """
    same = live if live and _shutdown_key(live) == (word.boot_id, word.start) else None
    return ShutdownAnnounced(
        boot_id=word.boot_id,
        written=word.written,
        new=word.new,
        deadline=word.began + word.seconds,
        cancelled=word.cancelled or (same is not None and _is_cancelled(same)),
        gone=same.ended_pod_uids if same and ends_boot(word.how) else frozenset(),
        how=same.spec.how if same else word.how,
    )


def _shutdown_key(shutdown: Said) -> tuple[str, datetime | None]:
    return shutdown.spec.boot_id, _parse_time(shutdown.status.start_time)


def _is_cancelled(shutdown: Said) -> bool:
    return shutdown.status.outcome in (ShutdownOutcome.CANCELLED, ShutdownOutcome.CANCELLED.value)


def _parse_time(said: str | datetime | None) -> datetime | None:
    """The parsed time; None if it is no RFC 3339 time."""
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said)
        except ValueError:
            return None
    return said if said and said.tzinfo else None


def _allowed_seconds(start: datetime | None, deadline: datetime | None) -> float:
    return max(0.0, (deadline - start).total_seconds()) if start and deadline else UNSTATED
