"""Backoff for forced deletions from one boot (pure), against owners that recreate pods immediately.

A pod that names a dead node in its spec, or tolerates all taints, is bound there as soon as it is created, and its
owner recreates it after each deletion. The first deletion is immediate; each later one waits twice as long as the last.
"""

from dataclasses import dataclass

FIRST, LONGEST = 1.0, 60.0
"""Seconds between the first two deletions, and at most."""
CALM = 2 * LONGEST
"""Seconds without a deletion after which the backoff starts over."""
MANY = 3
"""The number of deletions in a row from which status reports them: another controller recreates the pods."""


@dataclass(frozen=True, kw_only=True)
class ForcedRemovals:
    """The number of consecutive forced deletions from one boot, the latest at ``last``."""

    boot_id: str = ""
    times: int = 0
    last: float = 0.0


NEVER = ForcedRemovals()
"""No deletion yet."""


def count_removal(before: ForcedRemovals, boot_id: str, now: float) -> ForcedRemovals:
    """The count after one more deletion."""
    first = before.boot_id != boot_id or now > before.last + CALM
    return ForcedRemovals(boot_id=boot_id, times=1 if first else before.times + 1, last=now)


def pause_seconds(times: int) -> float:
    """The pause in seconds after this many deletions in a row."""
    return min(LONGEST, FIRST * 2.0 ** min(times - 1, 10)) if times else 0.0


def next_removal_at(forced: ForcedRemovals, boot_id: str) -> float:
    """The earliest time of the next forced deletion from this boot."""
    return forced.last + pause_seconds(forced.times) if forced.boot_id == boot_id and forced.times else float("-inf")
