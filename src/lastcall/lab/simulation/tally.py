"""What is kept of the outcomes of many seeds (pure)."""

from collections.abc import Iterable

from lastcall.lab.simulation.coverage import Coverage
from lastcall.lab.simulation.outcome import Outcome
from lastcall.lab.simulation.scenario import Verb


class Tally:
    """``failed`` are whole, in the order of their seeds; of the others is kept what has struck in them.

    ``verbs`` are those whose faults should strike (``Coverage``).
    """

    def __init__(self, name: str, verbs: Iterable[Verb] = ()) -> None:
        self.name = name
        self.seeds = 0
        self.failed: list[Outcome] = []
        self.coverage = Coverage(verbs)

    def add(self, outcome: Outcome) -> None:
        """One more seed."""
        self.seeds += 1
        self.coverage.add(outcome)
        if not outcome.good:
            self.failed.append(outcome)
