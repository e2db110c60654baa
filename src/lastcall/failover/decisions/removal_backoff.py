"""How often pods are removed by force from one boot (pure): who makes them anew at once does not keep us busy for ever.

A pod that names a dead node itself, or tolerates all taints, is bound there as soon as it is made, and whoever owns it makes
the next one when it has gone. The first time is at once; then there is a pause before each, twice as long as the last.
"""

from dataclasses import dataclass

FIRST, LONGEST = 1.0, 60.0
"""Seconds between the first two times, and at most."""
CALM = 2 * LONGEST
"""After so many seconds without any the next time is a first one again."""
MANY = 3
"""So many times in a row are told: others make anew what we remove."""


@dataclass(frozen=True, kw_only=True)
class ForcedRemovals:
    """So often in a row pods were removed by force from one boot, the last time at ``last``."""

    boot_id: str = ""
    times: int = 0
    last: float = 0.0


NEVER = ForcedRemovals()
"""Not once."""


def count_removal(before: ForcedRemovals, boot_id: str, now: float) -> ForcedRemovals:
    """It was done once more."""
    first = before.boot_id != boot_id or now > before.last + CALM
    return ForcedRemovals(boot_id=boot_id, times=1 if first else before.times + 1, last=now)


def pause_seconds(times: int) -> float:
    """Seconds after so many times in a row."""
    return min(LONGEST, FIRST * 2.0 ** min(times - 1, 10)) if times else 0.0


def next_removal_at(forced: ForcedRemovals, boot_id: str) -> float:
    """When pods of this boot may be removed by force at the earliest."""
    return forced.last + pause_seconds(forced.times) if forced.boot_id == boot_id and forced.times else float("-inf")
