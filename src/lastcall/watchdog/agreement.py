"""Whether enough nodes have lost the API server that a node may pet its watchdog without it (pure).

While more than half of **all** nodes have lost the API server, no observer can see a majority that has it. A controller
that counts the same nodes can tell when such a majority was impossible (``failover.evidence.outage_reports``). A
partition with fewer nodes resets itself, even if its nodes reach each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Counted = tuple[frozenset[str] | None, ...]
"""Each set of nodes by which the Lease may claim that peers are counted; None: it may claim that none are."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """``pets``: whether this agreement permits to pet the watchdog. ``reason`` ends a sentence for people."""

    pets: bool
    reason: str


def find_agreement(counted: Counted, reports: Mapping[str, float], *, me: str, now: float, report: float) -> Agreement:
    """The agreement of the peers that reported losing the API server.

    ``reports`` holds, per peer, when the question was asked that it answered last; a report counts for ``report``
    seconds. ``me`` counts too: a node asks only after it has lost the API server. If the Lease may claim one of several
    sets of nodes, each of them must allow the pet.
    """
    if not counted or None in counted:
        return Agreement(pets=False, reason="other nodes are not counted")
    fresh = {me, *(name for name, asked in reports.items() if 0 <= now - asked < report)}
    tallies = [(len(fresh & nodes), len(nodes)) for nodes in counted if nodes is not None]
    agreeing, every = min(tallies, key=lambda tally: tally[0] / tally[1] if tally[1] else 0.0)
    tally = f"{agreeing} of all {every} nodes report that they have lost the API server"
    return Agreement(
        pets=all(2 * some > nodes for some, nodes in tallies),
        reason=tally if 2 * agreeing > every else f"only {tally}, which is no majority",
    )
