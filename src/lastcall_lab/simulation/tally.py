"""A summary of the outcomes of many seeds (pure)."""

from collections.abc import Iterable

from lastcall_lab.simulation.coverage import FaultCoverage
from lastcall_lab.simulation.outcome import RehearsalOutcome
from lastcall_lab.simulation.scenario import Verb


class OutcomeTally:
    """``failed`` are whole, in the order of their seeds; of the others is kept what has struck in them.

    ``verbs`` are those whose faults should strike (``FaultCoverage``).
    """

    def __init__(self, name: str, verbs: Iterable[Verb] = ()) -> None:
        self.name = name
        self.seeds = 0
        self.failed: list[RehearsalOutcome] = []
        self.coverage = FaultCoverage(verbs)

    def add(self, outcome: RehearsalOutcome) -> None:
        """One more seed."""
        self.seeds += 1
        self.coverage.add(outcome)
        if not outcome.is_good:
            self.failed.append(outcome)
