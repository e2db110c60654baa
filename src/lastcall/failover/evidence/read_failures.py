"""One object that cannot be read again and again (pure): for how long it stands in the way of what is decided.

What a node says of its own going down only puts off fencing. So its object, if the API server fails at it or nobody can
decode it, is waited for as long as a shutdown of which no deadline is known, and then is taken for none for as long.
"""

from dataclasses import dataclass

from lastcall.failover.evidence.node_shutdown_facts import UNSTATED

GAP = 180.0
"""Seconds between two failures of one row at most.

A node in trouble is looked at more often, but an answer is waited for up to a minute, and a worker pauses after it.
"""


@dataclass(frozen=True)
class ReadFailures:
    """Reading it has failed from ``since`` until ``last``, each time in between."""

    since: float
    last: float

    def is_given_up(self, now: float) -> bool:
        """Whether it is not asked for at ``now``: each failure to answer keeps nodes from being fenced for a while, too."""
        return self.last >= self.since + UNSTATED and now < self.last + UNSTATED


def add_failure(before: ReadFailures | None, now: float) -> ReadFailures:
    """What is known after it has failed at ``now``; ``before``: None if it was read since."""
    goes_on = before is not None and now <= before.last + GAP
    return ReadFailures(before.since if before and goes_on else now, now)
