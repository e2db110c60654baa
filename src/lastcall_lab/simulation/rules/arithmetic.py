"""The judge's own arithmetic: which phase a pod belongs to, and how much time is promised to it (pure).

Nothing here is shared with what is judged; import-linter holds that. Sources of the rules: KEP-2000 (graceful node
shutdown), KEP-2712 (phases by pod priority), ``docs/how-to/phases.md``, and ``docs/design/shutdown.md`` for the time that is
kept back before logind's own limit. All times are seconds.
"""

from collections.abc import Sequence

CRITICAL = 2_000_000_000
"""From this priority on a phase is critical, as system-cluster-critical is."""

CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priorities of the two classes that every cluster has."""

DEFAULT_GRACE = 30.0
"""What a pod asks for that names no terminationGracePeriodSeconds."""

LEAST_GRACE = 1.0
"""A deletion with fewer seconds still gives a container this long."""

AFTER_TERM = 2.0
"""A container has this long between SIGTERM and SIGKILL, where its phase is long enough."""

EARLIER_THAN_LOGIND = 0.05
"""Where less is granted than asked for, the lock is released so long before logind's own limit."""

UNNOTICED = 0.25
"""The first steps of a shutdown take time. A shortage of so little does not shrink a phase."""


def pod_priority(number: int | None, class_name: str) -> int:
    """The number counts; without one, that of the class if it is one of the two; else 0."""
    return CLASSES.get(class_name, 0) if number is None else number


def phase_index(lowest: Sequence[int], priority: int) -> int:
    """The index of the phase that a pod of that priority ends in; ``lowest`` are the phases' priorities, ascending.

    It is the last phase whose priority is not above the pod's. A pod below all of them ends with the first.
    """
    found = 0
    for index, least in enumerate(lowest):
        if least <= priority:
            found = index
    return found


def share_seconds(phases: Sequence[tuple[int, float]], left: float) -> Sequence[float]:
    """What each of these phases (priority, seconds) gets of ``left`` seconds.

    All get their seconds if those fit. If not, critical phases keep theirs and the others shrink in proportion. If not
    even the critical ones fit, the others get nothing, and the critical ones shrink in proportion.
    """
    if sum(seconds for _, seconds in phases) <= left + UNNOTICED:
        return [float(seconds) for _, seconds in phases]
    left = max(0.0, left)
    critical = sum(seconds for priority, seconds in phases if priority >= CRITICAL)
    ordinary = sum(seconds for priority, seconds in phases if priority < CRITICAL)
    if critical > left:
        return [seconds * left / critical if priority >= CRITICAL else 0.0 for priority, seconds in phases]
    return [
        float(seconds) if priority >= CRITICAL else seconds * (left - critical) / ordinary
        for priority, seconds in phases
    ]


def lock_deadline(seen: float, requested: float, granted: float) -> float:
    """Until when the lock of a shutdown is held that was seen at ``seen``."""
    return seen + requested if requested <= granted else seen + max(0.0, granted - EARLIER_THAN_LOGIND)


def machines_needed(least: str, every: int) -> int:
    """How many machines ``minHealthy`` means: a number, or a percentage of ``every``, rounded up."""
    if not least.endswith("%"):
        return int(least)
    hundredths = int(least.removesuffix("%")) * every
    return hundredths // 100 + (hundredths % 100 > 0)
