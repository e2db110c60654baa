"""What becomes of the phases when less time is granted than they ask for."""

import math
from collections.abc import Sequence

from lastcall.model.pods import SYSTEM_CRITICAL
from lastcall.model.shutdown import PhasePlan


def fit_phases(groups: Sequence[PhasePlan], granted: float) -> tuple[PhasePlan, ...]:
    """The groups with seconds that fit into ``granted`` seconds (fractions are lost, ``inf`` is unlimited).

    Groups of priority 2000000000 and above keep their seconds, the others share the rest pro rata, rounded down. If not
    even the critical groups fit, the others get nothing and the critical ones share what there is in the same way, so
    that each loses the same part of its time: storage and network both need some. More time never takes seconds from
    any group, and no group gets more than it asks for.
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
