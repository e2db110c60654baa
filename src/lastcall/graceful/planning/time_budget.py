"""How the phases shrink if logind grants less time than they ask for (pure)."""

import math
from collections.abc import Sequence

from lastcall.model.pods import SYSTEM_CRITICAL
from lastcall.model.shutdown import PhasePlan


def fit_phases(groups: Sequence[PhasePlan], granted: float) -> tuple[PhasePlan, ...]:
    """The groups, scaled to fit into ``granted`` seconds (fractions are dropped, ``inf`` is unlimited).

    Groups of priority 2000000000 and above keep their seconds; the others share the rest pro rata, rounded down. If
    even the critical groups do not fit, the others get nothing, and the critical groups share the granted time in the
    same way. Each critical group then loses the same fraction, because storage and network both need some time. More
    time never takes seconds from a group, and no group gets more than it asks for.
    """
    if granted >= sum(group.seconds for group in groups):
        return tuple(groups)
    whole = max(0, math.floor(granted))
    critical = sum(group.seconds for group in groups if _is_critical(group))
    ordinary = sum(group.seconds for group in groups if not _is_critical(group))
    for_critical = min(critical, whole)
    return tuple(
        _scale_phase(group, for_critical, critical)
        if _is_critical(group)
        else _scale_phase(group, whole - for_critical, ordinary)
        for group in groups
    )


def _is_critical(group: PhasePlan) -> bool:
    return group.priority >= SYSTEM_CRITICAL


def _scale_phase(group: PhasePlan, share: int, of: int) -> PhasePlan:
    return PhasePlan(priority=group.priority, seconds=group.seconds * share // of if of else 0)
