"""What a configuration must keep to: the kubelet's six rules in its own words, and those that it lacks.

The six are those of ``ValidateKubeletConfiguration`` (Kubernetes, pkg/kubelet/apis/config/validation/validation.go).
Go prints the durations in them as the structs that they are: in braces.
"""

from collections.abc import Iterator

from lastcall.model import duration
from lastcall.model.base import Facts
from lastcall.model.pods import SYSTEM_CRITICAL
from lastcall.model.shutdown import PhasePlan

LIST = "shutdownGracePeriodByPodPriority"


class Periods(Facts, frozen=True):
    """What a configuration file asks for. Durations are nanoseconds; the list is in the file's order."""

    total: int = 0
    critical: int = 0
    by_priority: tuple[PhasePlan, ...] = ()
    graceful_gate: bool = True
    priority_gate: bool = True


def kubelet_violations(periods: Periods) -> list[str]:
    """The kubelet's rules that are broken, in its order and its exact words."""
    return [f"invalid configuration: {violation}" for violation in _kubelet(periods)]


def own_errors(periods: Periods) -> list[str]:
    """Negative seconds and duplicate priorities: wrong in every kind of configuration."""
    return [*_negative(periods), *_duplicates(periods)]


def own_concerns(periods: Periods) -> list[str]:
    """Zero seconds and a sum that Go cannot hold: wrong in an AgentConfiguration, a warning in a KubeletConfiguration."""
    return [*_zero(periods), *_overflow(periods)]


def warnings(periods: Periods) -> list[str]:
    """What is valid and yet hardly meant."""
    return list(_warnings(periods))


def _kubelet(periods: Periods) -> Iterator[str]:
    total, critical = f"{{{duration.text(periods.total)}}}", f"{{{duration.text(periods.critical)}}}"
    if periods.graceful_gate:
        if periods.critical > periods.total:
            yield f"shutdownGracePeriodCriticalPods {critical} must be <= shutdownGracePeriod {total}"
        if not _zero_or_a_second(periods.total):
            yield f"shutdownGracePeriod {total} must be either zero or otherwise >= 1 sec"
        if not _zero_or_a_second(periods.critical):
            yield f"shutdownGracePeriodCriticalPods {critical} must be either zero or otherwise >= 1 sec"
    asked = periods.total > 0 or periods.critical > 0
    if asked and not periods.graceful_gate:
        yield (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods"
            " requires feature gate GracefulNodeShutdown"
        )
    if periods.by_priority and asked and periods.priority_gate:
        yield f"Cannot specify both {LIST} and shutdownGracePeriod at the same time"
    if periods.by_priority and not periods.priority_gate:
        yield f"Specifying {LIST} requires feature gate GracefulNodeShutdownBasedOnPodPriority"


def _zero_or_a_second(nanoseconds: int) -> bool:
    return nanoseconds == 0 or nanoseconds >= duration.SECOND


def _negative(periods: Periods) -> Iterator[str]:
    for index, group in enumerate(periods.by_priority):
        if group.seconds < 0:
            yield f"{LIST}[{index}].shutdownGracePeriodSeconds: {group.seconds}: must not be negative"


def _duplicates(periods: Periods) -> Iterator[str]:
    seen: dict[int, int] = {}
    for index, group in enumerate(periods.by_priority):
        first = seen.setdefault(group.priority, index)
        if first != index:
            yield f"{LIST}[{index}].priority: {group.priority}: must not stand twice, see {LIST}[{first}]"


def _zero(periods: Periods) -> Iterator[str]:
    for index, group in enumerate(periods.by_priority):
        if group.seconds == 0:
            yield f"{LIST}[{index}].shutdownGracePeriodSeconds: 0: must be at least 1, or the group's pods get no time"


def _overflow(periods: Periods) -> Iterator[str]:
    most = duration.MAX // duration.SECOND
    seconds = sum(group.seconds for group in periods.by_priority)
    if seconds > most:
        yield f"{LIST}: {seconds}: the sum of all seconds must be at most {most}, or the kubelet's int64 overflows"


def _warnings(periods: Periods) -> Iterator[str]:
    if periods.by_priority:
        lowest = min(group.priority for group in periods.by_priority)
        if lowest > 0:
            yield f"{LIST}: no group at or below priority 0: ordinary pods end with the group of priority {lowest}"
    elif 0 <= periods.critical <= periods.total and periods.total:
        ordinary = (periods.total - periods.critical) // duration.SECOND
        if not periods.critical // duration.SECOND:
            yield (
                "shutdownGracePeriodCriticalPods: 0s: pods of priority "
                f"{SYSTEM_CRITICAL} and above get no time to end in"
            )
        if not ordinary:
            yield (
                f"shutdownGracePeriod: {duration.text(periods.total)}: nothing is left beside "
                "shutdownGracePeriodCriticalPods: ordinary pods get no time to end in"
            )
