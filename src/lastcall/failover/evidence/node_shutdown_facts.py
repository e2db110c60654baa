"""What nodes say themselves of their going down (``NodeShutdown``), as facts on the observer's clock (pure).

The times in such an object are on the node's own clock: only how far they lie apart is believed. They count from when the
object was seen, which is a little later than it was written: fencing waits a little longer.
"""

from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.evidence.facts import ShutdownAnnounced
from lastcall.failover.evidence.revisions import revision_number
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import ShutdownOutcome

UNSTATED = 600.0
"""Seconds for which a shutdown without a deadline is waited for: logind sets no limit, so the node states none."""

Said = WatchedShutdown | NodeShutdown
"""As a watch tells it, or as it was read live."""


@dataclass(frozen=True, kw_only=True)
class ObservedShutdown:
    """A node's word as it was seen: this shutdown first at ``began``, and as it is now at ``written``."""

    boot_id: str
    start: datetime | None
    """By the node's own clock; with ``boot_id`` it says which shutdown it is."""
    seconds: float
    """From its start to its deadline."""
    cancelled: bool
    revision: str
    began: float
    written: float
    new: bool
    """Whether it was written since the observer began; what he found when he looked first may be of any age."""


def observe_shutdown(
    before: ObservedShutdown | None,
    shutdown: Said,
    now: float,
    *,
    first: bool = False,
    since: ObservedShutdown | None = None,
) -> ObservedShutdown:
    """What is known after the object was seen at ``now``.

    ``first``: this is the observer's first look. What is older than what was seen before says nothing: a watch and a live
    read overtake each other. But a live read never gives what is older than what was known when it was asked for
    (``since``), unless history has gone back; then nothing that was seen before holds.
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
        revision=revision,
        began=before.began if before and (before.boot_id, before.start) == (boot_id, start) else now,
        written=now,
        new=before is not None or not first,
    )


def shutdown_fact(word: ObservedShutdown, live: NodeShutdown | None) -> ShutdownAnnounced:
    """``live``: the object as it was read just now, whole; None if there is none any more, or it could not be read.

    Each of the two may be the newer one: either says that the shutdown was cancelled, and it is. Of the pods ``live``
    alone tells, if it tells of the same shutdown.
    """
    same = live if live and _shutdown_key(live) == (word.boot_id, word.start) else None
    return ShutdownAnnounced(
        boot_id=word.boot_id,
        written=word.written,
        new=word.new,
        deadline=word.began + word.seconds,
        cancelled=word.cancelled or (same is not None and _is_cancelled(same)),
        gone=same.ended_pod_uids if same else frozenset(),
    )


def _shutdown_key(shutdown: Said) -> tuple[str, datetime | None]:
    return shutdown.spec.boot_id, _parse_time(shutdown.status.start_time)


def _is_cancelled(shutdown: Said) -> bool:
    return shutdown.status.outcome in (ShutdownOutcome.CANCELLED, ShutdownOutcome.CANCELLED.value)


def _parse_time(said: str | datetime | None) -> datetime | None:
    """None if it is no RFC 3339 time."""
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said)
        except ValueError:
            return None
    return said if said and said.tzinfo else None


def _allowed_seconds(start: datetime | None, deadline: datetime | None) -> float:
    return max(0.0, (deadline - start).total_seconds()) if start and deadline else UNSTATED
