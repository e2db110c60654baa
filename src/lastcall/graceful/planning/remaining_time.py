"""How the time that is left is spent (pure); asked again when each phase begins, so that nothing saved is lost.

Time that earlier phases did not use makes good what later ones had to give up when less was granted than asked for.
No phase ever gets more than it is configured with.
"""

from collections.abc import Sequence

from lastcall.graceful.planning.time_budget import fit_phases
from lastcall.model.shutdown import PhasePlan

RESERVE = 0.05
"""Seconds kept back where logind's own limit, whose clock started before ours, would end the shutdown."""


_SLACK = 0.25
"""A shortage of so few seconds, as the first steps of a shutdown take, does not shrink a phase: its deadline will."""


def release_deadline(now: float, requested: float, granted: float) -> float:
    """When the lock is released at the latest, in ``now``'s seconds."""
    return now + (requested if granted >= requested else max(0.0, granted - RESERVE))


def next_phase_seconds(phases: Sequence[PhasePlan], left: float) -> float:
    """The seconds of the first of these phases, all of which are still to come, when ``left`` seconds are left.

    By the rule of ``budget.fit_phases``, to the millisecond.
    """
    if left + _SLACK >= sum(phase.seconds for phase in phases):
        return float(phases[0].seconds)
    fine = [PhasePlan(priority=phase.priority, seconds=phase.seconds * 1000) for phase in phases]
    return fit_phases(fine, left * 1000)[0].seconds / 1000
