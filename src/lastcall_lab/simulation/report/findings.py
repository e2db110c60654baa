"""An outcome in words that text and page have in common."""

from collections.abc import Iterator, Sequence

from lastcall.report.formatting import count_text, format_duration
from lastcall_lab.simulation.outcome import (
    FaultCount,
    MachineOutcome,
    MachineState,
    RehearsalOutcome,
    WorkloadOutcome,
)

MOST_MACHINES = 24
"""Of more machines only those are shown that were not always on."""

MOST_WORKLOADS = 24
"""The same of workloads."""

_MOST_STEPS = 6


def headline(outcome: RehearsalOutcome) -> str:
    """Whether all is well, in few words."""
    broken = sum(not one.holds for one in outcome.verdicts)
    parts = []
    if broken:
        parts.append(
            f"{broken} of {count_text(len(outcome.verdicts), 'expectation')} {'is' if broken == 1 else 'are'} broken"
        )
    if outcome.violations:
        parts.append(f"{count_text(len(outcome.violations), 'violation')} of what must never happen")
    if parts:
        return " and ".join(parts)
    known = len(outcome.verdicts)
    return {0: "nothing was expected", 1: "what was expected holds"}.get(known, f"all {known} expectations hold")


def shown_machines(outcome: RehearsalOutcome) -> tuple[Sequence[MachineOutcome], str]:
    """Those to show, and a sentence about the others."""
    eventful = [node for node in outcome.nodes if any(span.state is not MachineState.ON for span in node.spans)]
    if len(outcome.nodes) <= MOST_MACHINES:
        return outcome.nodes, ""
    shown = eventful[: MOST_MACHINES * 4]
    told = []
    if calm := len(outcome.nodes) - len(eventful):
        told.append(f"{count_text(calm, 'machine')} more, on all the time")
    if left := len(eventful) - len(shown):
        told.append(f"{count_text(left, 'machine')} more, not shown")
    return shown, "; ".join(told)


def shown_workloads(outcome: RehearsalOutcome) -> tuple[Sequence[WorkloadOutcome], str]:
    """Those to show, and a sentence about the others: of many workloads only those to which something has happened."""
    if len(outcome.workloads) <= MOST_WORKLOADS:
        return outcome.workloads, ""
    shown = [one for one in outcome.workloads if _is_eventful(one)]
    if calm := len(outcome.workloads) - len(shown):
        return shown, f"{count_text(calm, 'workload')} more, to which nothing happened"
    return shown, ""


def _is_eventful(one: WorkloadOutcome) -> bool:
    return bool(one.degraded or one.requests_lost or one.writes_refused or one.writes_lost or pod_text(one))


def time_not_on(node: MachineOutcome, *, most: int) -> str:
    """For how long it was otherwise than on: ``off 1m5s``; so many states at most, the longest first."""
    sums: dict[MachineState, float] = {}
    for span in node.spans:
        if span.state is not MachineState.ON:
            sums[span.state] = sums.get(span.state, 0.0) + span.end - span.begin
    longest = sorted(sums, key=lambda state: -sums[state])[:most]
    return ", ".join(f"{state.value} {format_duration(sums[state])}" for state in longest)


def downtime_text(workload: WorkloadOutcome) -> str:
    """For how long it was down; a StatefulSet is when one of its pods is."""
    return format_duration(max(workload.down, workload.pod_down))


def request_text(workload: WorkloadOutcome) -> str:
    """How many were lost of how many; nothing if it has no clients."""
    if not workload.requests:
        return ""
    return f"{format_number(workload.requests_lost)} of {format_number(workload.requests)}"


def write_text(workload: WorkloadOutcome) -> str:
    """How many that were acknowledged are lost, of how many; nothing if it writes nothing."""
    return f"{workload.writes_lost} of {workload.writes}" if workload.writes or workload.writes_lost else ""


def format_number(value: float) -> str:
    """As people write it: whole if it is not small."""
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def pod_text(workload: WorkloadOutcome) -> str:
    """What was done to them that they would not have wanted."""
    counted = (
        (workload.killed, "killed"),
        (workload.power_cut, "cut off with the power"),
        (workload.hooks_missed, "without the whole preStop hook"),
    )
    return ", ".join(f"{many} {words}" for many, words in counted if many)


def fault_rows(outcome: RehearsalOutcome) -> Iterator[tuple[str, int, str]]:
    """Of each kind: how often it has struck, and what."""
    kinds: dict[str, list[FaultCount]] = {}
    for one in outcome.faults:
        kinds.setdefault(one.kind, []).append(one)
    for kind, found in kinds.items():
        most = sorted(found, key=lambda one: -one.count)[:_MOST_STEPS]
        more = f" and {len(found) - len(most)} more steps" if len(found) > len(most) else ""
        yield kind, sum(one.count for one in found), "; ".join(one.step for one in most) + more


def service_levels(workload: WorkloadOutcome) -> Iterator[tuple[float, float, int, int]]:
    """From when to when how many pods served, and how many were wanted; stretches in which neither changes."""
    times = sorted({step.at for step in (*workload.serving_steps, *workload.wanted_steps)})
    serving = {step.at: step.count for step in workload.serving_steps}
    wanted = {step.at: step.count for step in workload.wanted_steps}
    has = wants = 0
    for index, at in enumerate(times):
        has, wants = serving.get(at, has), wanted.get(at, wants)
        end = times[index + 1] if index + 1 < len(times) else float("inf")
        yield at, end, has, wants
