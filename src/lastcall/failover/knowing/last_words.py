"""What nodes say themselves of their going down (``NodeShutdown``), as facts on the observer's clock (pure).

The times in such an object are on the node's own clock: only how far they lie apart is believed. They count from when the
object was seen, which is a little later than it was written: fencing waits a little longer.
"""

from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.knowing.facts import LastWord
from lastcall.failover.knowing.revisions import number_of
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import Outcome

UNSTATED = 600.0
"""Seconds for which a shutdown without a deadline is waited for: logind sets no limit, so the node states none."""

Said = WatchedShutdown | NodeShutdown
"""As a watch tells it, or as it was read live."""


@dataclass(frozen=True, kw_only=True)
class Heard:
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


def heard(
    before: Heard | None, shutdown: Said, now: float, *, first: bool = False, since: Heard | None = None
) -> Heard:
    """What is known after the object was seen at ``now``.

    ``first``: this is the observer's first look. What is older than what was seen before says nothing: a watch and a live
    read overtake each other. But a live read never gives what is older than what was known when it was asked for
    (``since``), unless history has gone back; then nothing that was seen before holds.
    """
    revision = shutdown.metadata.resource_version
    if before and number_of(revision) < number_of(before.revision):
        if since is None or number_of(revision) >= number_of(since.revision):
            return before
        before, first = None, True
    if before and revision == before.revision:
        return before
    boot_id, start = _which(shutdown)
    return Heard(
        boot_id=boot_id,
        start=start,
        seconds=_seconds(start, _moment(shutdown.status.deadline_time)),
        cancelled=_cancelled(shutdown),
        revision=revision,
        began=before.began if before and (before.boot_id, before.start) == (boot_id, start) else now,
        written=now,
        new=before is not None or not first,
    )


def fact(word: Heard, live: NodeShutdown | None) -> LastWord:
    """``live``: the object as it was read just now, whole; None if there is none any more, or it could not be read.

    Each of the two may be the newer one: either says that the shutdown was cancelled, and it is. Of the pods ``live``
    alone tells, if it tells of the same shutdown.
    """
    same = live if live and _which(live) == (word.boot_id, word.start) else None
    return LastWord(
        boot_id=word.boot_id,
        written=word.written,
        new=word.new,
        deadline=word.began + word.seconds,
        cancelled=word.cancelled or (same is not None and _cancelled(same)),
        gone=same.gone if same else frozenset(),
    )


def _which(shutdown: Said) -> tuple[str, datetime | None]:
    return shutdown.spec.boot_id, _moment(shutdown.status.start_time)


def _cancelled(shutdown: Said) -> bool:
    return shutdown.status.outcome in (Outcome.CANCELLED, Outcome.CANCELLED.value)


def _moment(said: str | datetime | None) -> datetime | None:
    """None if it is no RFC 3339 time."""
    if isinstance(said, str):
        try:
            said = datetime.fromisoformat(said)
        except ValueError:
            return None
    return said if said and said.tzinfo else None


def _seconds(start: datetime | None, deadline: datetime | None) -> float:
    return max(0.0, (deadline - start).total_seconds()) if start and deadline else UNSTATED
