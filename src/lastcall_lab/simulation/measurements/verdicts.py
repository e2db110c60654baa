"""Whether what was expected has come true (pure)."""

from collections.abc import Callable, Mapping, Sequence

from lastcall.errors import InvalidInput
from lastcall.report.formatting import format_duration
from lastcall_lab.simulation.outcome import ExpectationResult, WorkloadOutcome
from lastcall_lab.simulation.scenario import Expectation, Goal


def check_expectation(
    expectation: Expectation, workloads: Sequence[WorkloadOutcome], *, fenced: int = 0
) -> ExpectationResult:
    """An expectation of all workloads is one of each of them. InvalidInput if its subject is none of them."""
    if expectation.goal is Goal.FENCED:
        holds = fenced <= expectation.limit
        return ExpectationResult(expectation=expectation, holds=holds, measured=_format_amount(fenced, "machine"))
    found = [one for one in workloads if expectation.subject in ("", one.name, f"{one.namespace}/{one.name}")]
    if expectation.subject and not found:
        names = ", ".join(one.name for one in workloads) or "none"
        raise InvalidInput(
            "expect", [f"subject: {expectation.subject!r}: must be a workload of the scenario ({names})"]
        )
    if expectation.goal in (Goal.RUNS, Goal.STUCK):
        return _check_at_end(expectation, found)
    measure, unit = _MEASURES[expectation.goal]
    worst = max(map(measure, found), default=0.0)
    return ExpectationResult(
        expectation=expectation, holds=worst <= expectation.limit, measured=_format_amount(worst, unit)
    )


_MEASURES: Mapping[Goal, tuple[Callable[[WorkloadOutcome], float], str]] = {
    Goal.REQUESTS_LOST: (lambda one: one.requests_lost, "request"),
    Goal.DOWN_FOR: (lambda one: max(one.down, one.pod_down), ""),
    Goal.WRITES_LOST: (lambda one: one.writes_lost, "write"),
    Goal.ENDED_IN_TIME: (lambda one: one.power_cut, "pod"),
    Goal.ENDED_BY_ITSELF: (lambda one: one.killed + one.power_cut + one.unconfirmed, "pod"),
}
"""Of several workloads the worst counts. What has no unit is a time in seconds."""


def _check_at_end(expectation: Expectation, found: Sequence[WorkloadOutcome]) -> ExpectationResult:
    """Of all workloads: every one runs, or at least one is stuck."""
    lacking = [one for one in found if one.serving < one.wanted]
    shown = lacking or found
    measured = f"{sum(one.serving for one in shown)} of {_format_amount(sum(one.wanted for one in shown), 'pod')}"
    if lacking and not expectation.subject:
        measured += f" of {', '.join(one.name for one in lacking)}"
    return ExpectationResult(
        expectation=expectation, holds=bool(lacking) is (expectation.goal is Goal.STUCK), measured=measured
    )


def _format_amount(number: float, unit: str) -> str:
    if not unit:
        return format_duration(number)
    exactly = f"{number:.0f}" if number == int(number) else f"{number:.{1 if number >= 1 else 3}f}"
    return f"{exactly} {unit}{'' if number == 1 else 's'}"
