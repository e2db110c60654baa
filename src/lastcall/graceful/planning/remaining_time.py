"""How the remaining time is divided among the phases (pure); computed anew at each phase, so that no time is lost.

If logind grants less than requested, time that earlier phases did not use restores what later phases gave up.
No phase ever gets more than its configured seconds.
"""

from collections.abc import Sequence

from lastcall.graceful.planning.time_budget import fit_phases
from lastcall.model.shutdown import PhasePlan

RESERVE = 0.05
"""Seconds kept in reserve if logind's limit ends the shutdown: logind's clock started before ours."""


_SLACK = 0.25
"""A shortage of so few seconds does not shrink a phase: a shutdown's first steps take that long, and the deadline
cuts the last phase anyway."""


def release_deadline(now: float, requested: float, granted: float) -> float:
    """The latest time at which the lock is released, on the clock of ``now``."""
    return now + (requested if granted >= requested else max(0.0, granted - RESERVE))


def next_phase_seconds(phases: Sequence[PhasePlan], left: float) -> float:
    """The seconds of the first of ``phases``, none of which has begun, when ``left`` seconds remain.

    Applies the rule of ``time_budget.fit_phases``, to the millisecond.
    """
    if left + _SLACK >= sum(phase.seconds for phase in phases):
        return float(phases[0].seconds)
    fine = [PhasePlan(priority=phase.priority, seconds=phase.seconds * 1000) for phase in phases]
    return fit_phases(fine, left * 1000)[0].seconds / 1000
