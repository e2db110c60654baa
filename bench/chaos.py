"""How many stories of chance a machine plays in a second, and what came of them: ``lastcall simulate chaos`` and its like."""

import os
import time

from figures import Figures, Row

from lastcall_lab.simulation import chaos, drain_chaos, failover_chaos, kubelet_chaos
from lastcall_lab.simulation.report import text
from lastcall_lab.simulation.runner import run_rehearsals
from lastcall_lab.simulation.shipped_scenarios import CHAOS, DRAIN_CHAOS, FAILOVER_CHAOS, KUBELET_CHAOS
from lastcall_lab.simulation.tally import OutcomeTally

STORIES = {CHAOS: chaos, FAILOVER_CHAOS: failover_chaos, KUBELET_CHAOS: kubelet_chaos, DRAIN_CHAOS: drain_chaos}
SEEDS = 5000
FEWER_SEEDS = {DRAIN_CHAOS: 3000}
TOLD = 250


class Chaos:
    """The seeds of one of ``STORIES``, from 1 on, on all processors."""

    def __init__(self, name, *, quick, tell):
        self._name = name
        self._seeds = 4 if quick else FEWER_SEEDS.get(name, SEEDS)
        self._tell = tell
        self._tally = OutcomeTally(name, STORIES[name].VERBS)

    def rows(self):
        """Plays them all."""
        began = time.perf_counter()
        for outcome in run_rehearsals(STORIES[self._name].generate_scenario, range(1, self._seeds + 1)):
            self._tally.add(outcome)
            if not outcome.is_good:
                self._tell(text.failure_line(outcome))
            if self._tally.seeds % TOLD == 0:
                self._tell(f"{self._tally.seeds} seeds of {self._name}")
        seconds = time.perf_counter() - began
        what = f"{self._seeds} seeds of {self._name} in virtual time, {len(os.sched_getaffinity(0))} processors"
        never = len(self._tally.coverage.missing_kinds())
        return [
            Row(f"{what}: seeds in a second", None, Figures((self._seeds / seconds,), "seeds")),
            Row(f"{what}: that break a promise", None, Figures((len(self._tally.failed),), "seeds"), limit=0),
            Row(f"{what}: faults that never struck", None, Figures((never,), "kinds"), limit=0),
        ]

    def told(self):
        """What was broken, and which faults have struck."""
        yield text.summary_text(self._tally)
        yield from (text.failure_line(outcome) for outcome in self._tally.failed)
        yield ""
        yield "| fault | times | seeds | what it hit most |"
        yield "|---|---|---|---|"
        for one in self._tally.coverage.hits():
            steps = ", ".join(f"{step} ({times})" for step, times in list(one.steps.items())[:5])
            yield f"| {one.kind} | {one.times} | {one.seeds} | {steps} |"
        yield from (f"| {kind} | 0 | 0 | **never struck** |" for kind in self._tally.coverage.missing_kinds())
