"""Limits how long an object that repeatedly cannot be read delays decisions (pure).

A node's shutdown announcement only delays fencing. So if the API server fails to return it or it cannot be decoded, the
controller waits for it as long as for a shutdown without a deadline, and then ignores it for the same time.
"""

from dataclasses import dataclass

from lastcall.failover.evidence.node_shutdown_facts import UNSTATED

GAP = 180.0
"""The most seconds between two failures of one series.

A node in trouble is checked more often, but a response may take up to a minute, and a worker pauses after it.
"""


@dataclass(frozen=True)
class ReadFailures:
    """A series of failed reads from ``since`` to ``last``."""

    since: float
    last: float

    def is_given_up(self, now: float) -> bool:
        """Whether the read is skipped at ``now``: each failed read also keeps nodes from being fenced for a while."""
        return self.last >= self.since + UNSTATED and now < self.last + UNSTATED


def add_failure(before: ReadFailures | None, now: float) -> ReadFailures:
    """The series after a failure at ``now``; ``before``: None after a successful read."""
    goes_on = before is not None and now <= before.last + GAP
    return ReadFailures(before.since if before and goes_on else now, now)
