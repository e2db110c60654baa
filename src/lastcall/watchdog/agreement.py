"""Whether enough nodes have lost the API server that a node may pet its watchdog without it (pure).

While more than half of **all** nodes have lost it, nobody who reaches it can know more than half to have it; and who counts
the same nodes can tell when that was impossible (``failover.knowing.calm``). A partition with fewer nodes resets itself, however
well its nodes know each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Counted = tuple[frozenset[str] | None, ...]
"""Sets of nodes, by names: each of those by which the Lease may say that others are counted; None: that none are."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """``pets``: the watchdog may be petted by it. ``reason`` is the end of a sentence, for people."""

    pets: bool
    reason: str


def find_agreement(counted: Counted, reports: Mapping[str, float], *, me: str, now: float, report: float) -> Agreement:
    """By ``reports``: the last time each peer was asked that has answered that the API server is lost to it.

    They count for ``report`` seconds. ``me`` has lost it as well: else nobody would ask. Where the Lease may say one of
    several things, each of them has to allow it.
    """
    if not counted or None in counted:
        return Agreement(pets=False, reason="other nodes are not counted")
    fresh = {me, *(name for name, asked in reports.items() if 0 <= now - asked < report)}
    tallies = [(len(fresh & nodes), len(nodes)) for nodes in counted if nodes is not None]
    agreeing, every = min(tallies, key=lambda tally: tally[0] / tally[1] if tally[1] else 0.0)
    told = f"{agreeing} of all {every} nodes report that the API server is lost to them"
    return Agreement(
        pets=all(2 * some > nodes for some, nodes in tallies),
        reason=told if 2 * agreeing > every else f"only {told}, which is no majority",
    )
