"""What nodes say themselves of their going down (``NodeShutdown``), as facts on the observer's clock (pure).

The times in such an object are on the node's own clock: only how far they lie apart is believed. They count from when the
object was seen, which is a little later than it was written: fencing waits a little longer.
"""

from dataclasses import dataclass
from datetime import datetime

from lastcall.failover.knowing.facts import LastWord
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import WatchedShutdown
from lastcall.model.shutdown import Outcome

UNSTATED = 600.0
"""Seconds for which a shutdown without a deadline is waited for: logind sets no limit, so the node states none."""


@dataclass(frozen=True)
class Heard:
    """A node's word as it was seen: this shutdown first at ``began``, and as it is now at ``written``."""

    shutdown: WatchedShutdown
    began: float
    written: float


def heard(before: Heard | None, shutdown: WatchedShutdown, now: float) -> Heard:
    """What is known after the object was seen at ``now``."""
    if before is None or _which(before.shutdown) != _which(shutdown):
        return Heard(shutdown, now, now)
    if before.shutdown.metadata.resource_version == shutdown.metadata.resource_version:
        return before
    return Heard(shutdown, before.began, now)


def fact(word: Heard, live: NodeShutdown | None) -> LastWord:
    """``live``: the object as it was read just now, whole; None if that is not the same shutdown any more."""
    status = word.shutdown.status
    same = live is not None and live.spec.boot_id == word.shutdown.spec.boot_id
    return LastWord(
        boot_id=word.shutdown.spec.boot_id,
        written=word.written,
        deadline=word.began + _seconds(status.start_time, status.deadline_time),
        cancelled=status.outcome == Outcome.CANCELLED.value,
        gone=live.gone if live is not None and same else frozenset(),
    )


def _which(shutdown: WatchedShutdown) -> tuple[str, str]:
    return shutdown.spec.boot_id, shutdown.status.start_time


def _seconds(start: str, deadline: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(deadline) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):
        return UNSTATED
