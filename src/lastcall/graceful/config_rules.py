"""The rules for a configuration: the kubelet's six in its own words, and those that the kubelet lacks.

The six are those of ``ValidateKubeletConfiguration`` (Kubernetes, pkg/kubelet/apis/config/validation/validation.go).
Go prints durations in these messages as structs, which puts them in braces.
"""

from collections.abc import Iterator

from lastcall.model import duration
from lastcall.model.base import Facts
from lastcall.model.pods import SYSTEM_CRITICAL

LIST = "shutdownGracePeriodByPodPriority"


class PriorityItem(Facts, frozen=True):
    """One item of shutdownGracePeriodByPodPriority."""

    priority: int | None = 0
    seconds: int | None = 0


class GracePeriods(Facts, frozen=True):
    """The periods that a configuration file asks for. Durations are nanoseconds; items keep the file's order.

    None marks a value that cannot be read: it has its own error, and no rule is checked on it.
    """

    total: int | None = 0
    critical: int | None = 0
    by_priority: tuple[PriorityItem, ...] = ()
    graceful_gate: bool | None = True
    priority_gate: bool | None = True


def kubelet_violations(periods: GracePeriods) -> list[str]:
    """The kubelet's rules that the configuration breaks, in the kubelet's order and exact words."""
    return [f"invalid configuration: {violation}" for violation in _kubelet_rules(periods)]


def own_errors(periods: GracePeriods) -> list[str]:
    """Negative seconds and duplicate priorities: wrong in every kind of configuration."""
    return [*_negative_seconds(periods), *_duplicate_priorities(periods)]


def own_concerns(periods: GracePeriods) -> list[str]:
    """Zero seconds and a sum beyond Go's int64: errors in an AgentConfiguration, warnings in a KubeletConfiguration."""
    return [*_zero_seconds(periods), *_sum_overflow(periods)]


def config_warnings(periods: GracePeriods) -> list[str]:
    """Valid settings that are probably not intended; call it only for periods that break no rule."""
    return list(_iter_warnings(periods))


def _kubelet_rules(periods: GracePeriods) -> Iterator[str]:
    total, critical = periods.total, periods.critical
    asked = (total or 0) > 0 or (critical or 0) > 0
    if periods.graceful_gate is True:
        if total is not None and critical is not None and critical > total:
            yield f"shutdownGracePeriodCriticalPods {_go_duration(critical)} must be <= shutdownGracePeriod {_go_duration(total)}"
        if total is not None and not _zero_or_a_second(total):
            yield f"shutdownGracePeriod {_go_duration(total)} must be either zero or otherwise >= 1 sec"
        if critical is not None and not _zero_or_a_second(critical):
            yield f"shutdownGracePeriodCriticalPods {_go_duration(critical)} must be either zero or otherwise >= 1 sec"
    if periods.graceful_gate is False and asked:
        yield (
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods"
            " requires feature gate GracefulNodeShutdown"
        )
    if periods.priority_gate is True and periods.by_priority and asked:
        yield f"Cannot specify both {LIST} and shutdownGracePeriod at the same time"
    if periods.priority_gate is False and periods.by_priority:
        yield f"Specifying {LIST} requires feature gate GracefulNodeShutdownBasedOnPodPriority"


def _go_duration(nanoseconds: int) -> str:
    return f"{{{duration.format_duration(nanoseconds)}}}"


def _zero_or_a_second(nanoseconds: int) -> bool:
    return nanoseconds == 0 or nanoseconds >= duration.SECOND


def _negative_seconds(periods: GracePeriods) -> Iterator[str]:
    for index, item in enumerate(periods.by_priority):
        if item.seconds is not None and item.seconds < 0:
            yield f"{LIST}[{index}].shutdownGracePeriodSeconds: {item.seconds}: must not be negative"


def _duplicate_priorities(periods: GracePeriods) -> Iterator[str]:
    seen: dict[int, int] = {}
    for index, item in enumerate(periods.by_priority):
        if item.priority is None:
            continue
        first = seen.setdefault(item.priority, index)
        if first != index:
            yield f"{LIST}[{index}].priority: {item.priority}: must be unique, see {LIST}[{first}]"


def _zero_seconds(periods: GracePeriods) -> Iterator[str]:
    for index, item in enumerate(periods.by_priority):
        if item.seconds == 0:
            yield f"{LIST}[{index}].shutdownGracePeriodSeconds: 0: must be at least 1, or the group's pods get no time"


def _sum_overflow(periods: GracePeriods) -> Iterator[str]:
    most = duration.MAX // duration.SECOND
    seconds = sum(item.seconds or 0 for item in periods.by_priority)
    if seconds > most:
        yield f"{LIST}: {seconds}: the sum of all seconds must be at most {most}, or the kubelet's int64 overflows"


def _iter_warnings(periods: GracePeriods) -> Iterator[str]:
    if not periods.graceful_gate:
        if periods.by_priority:
            yield f"featureGates.GracefulNodeShutdown: false: {LIST} has no effect"
        return
    lowest = min((item.priority or 0 for item in periods.by_priority), default=0)
    if lowest > 0:
        yield f"{LIST}: no group at or below priority 0: pods below {lowest} end with the group of priority {lowest}"
    total, critical = periods.total or 0, periods.critical or 0
    if not total or periods.by_priority:
        return
    if not critical // duration.SECOND:
        yield (
            f"shutdownGracePeriodCriticalPods: {duration.format_duration(critical)}: pods of priority {SYSTEM_CRITICAL} and above "
            "get no time to end in"
        )
    if not (total - critical) // duration.SECOND:
        yield (
            f"shutdownGracePeriodCriticalPods: {duration.format_duration(critical)}: leaves no whole second of shutdownGracePeriod "
            f"{duration.format_duration(total)}: pods below priority {SYSTEM_CRITICAL} get no time to end in"
        )
