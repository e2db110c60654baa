"""An outcome as plain text, as wide as a terminal is but 100 columns at most."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lastcall.model.foreign_text import plain_text
from lastcall.report.formatting import count_text, format_duration
from lastcall.report.timeline import axis_ticks
from lastcall_lab.simulation.outcome import (
    MachineOutcome,
    MachineState,
    RehearsalOutcome,
    TimelineTopic,
    WorkloadOutcome,
)
from lastcall_lab.simulation.report import findings
from lastcall_lab.simulation.scenario_text.sentences import expectation_sentence
from lastcall_lab.simulation.tally import OutcomeTally

COLUMNS = 100
"""Of a report that goes into a file."""

_NAMES = (18, 30)
_BESIDE = 22
"""Columns beside the chart, for what is told of a machine."""

_MOST_STEPS = 10

_MARKS = {
    MachineState.ON: "-",
    MachineState.GOING_DOWN: "\\",
    MachineState.OFF: " ",
    MachineState.STARTING: "/",
    MachineState.CUT_OFF: "x",
    MachineState.NO_STORAGE: "s",
    MachineState.HUNG: "h",
}
_SERVING = "workloads: # all pods serve   : some   ! none   (blank) none is wanted"
_TOPICS = {TimelineTopic.EVENT: ">", TimelineTopic.VIOLATION: "!"}
_TABLE = ("Workload", "Down", "Outage", "Degraded", "Requests lost", "Writes lost")
_WIDTHS = (7, 7, 8, 16, 11)


@dataclass(frozen=True)
class _Layout:
    """How wide it all is, and the column of names in it."""

    columns: int
    name: int = _NAMES[0]

    @property
    def chart_width(self) -> int:
        return self.columns - self.name - _BESIDE

    def wrap(self, words: str, first: str = "", later: str = "  ") -> list[str]:
        return textwrap.wrap(words, self.columns, initial_indent=first, subsequent_indent=later) or [first]

    def name_cell(self, name: str) -> str:
        """In its column; one that is too long says so."""
        told = plain_text(name)
        if len(told) > self.name:
            told = f"{told[: self.name - 2]}.."
        return f"  {told:<{self.name}}"


def _layout_for(outcome: RehearsalOutcome, columns: int) -> _Layout:
    names = [one.name for one in findings.shown_machines(outcome)[0]] + [
        one.name for one in findings.shown_workloads(outcome)[0]
    ]
    longest = max(map(len, names), default=0)
    return _Layout(columns, min(max(longest, _NAMES[0]), _NAMES[1] if columns >= COLUMNS else _NAMES[0]))


def render_text(outcome: RehearsalOutcome, columns: int = COLUMNS) -> str:
    """The whole report, in ``columns`` from 80 on; every line ends with a newline."""
    sheet = _layout_for(outcome, columns)
    lines = [*sheet.wrap(f"{outcome.scenario}, seed {outcome.seed}: {findings.headline(outcome)}")]
    if outcome.description:
        lines += sheet.wrap(plain_text(outcome.description), "  ", "  ")
    for title, part in (
        ("Expected", _expectation_lines(outcome, sheet)),
        ("What must never happen", _violation_lines(outcome, sheet)),
        ("", _chart_lines(outcome, sheet)),
        ("", _workload_lines(findings.shown_workloads(outcome)[0], sheet)),
        ("What happened", _timeline_lines(outcome, sheet)),
        ("Faults that struck", _fault_lines(outcome, sheet)),
    ):
        found = list(part)
        if found:
            lines += ["", *([title] if title else []), *found]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def failure_line(outcome: RehearsalOutcome) -> str:
    """One that has failed among many: what was broken, in one line; of each promise the first time."""
    broken = [f"{expectation_sentence(one.expectation)}: {one.measured}" for one in outcome.verdicts if not one.holds]
    times = Counter(one.rule for one in outcome.violations)
    for rule, many in times.items():
        first = next(one.what for one in outcome.violations if one.rule == rule)
        broken.append(f"{rule}: {first}{f' (and {many - 1} more)' if many > 1 else ''}")
    return plain_text(f"seed {outcome.seed}: {'; '.join(broken)}")


def summary_text(tally: OutcomeTally) -> str:
    """Of all of them."""
    if not tally.failed:
        return f"{tally.name}: {count_text(tally.seeds, 'seed')}, all is well in each"
    hint = f"--seed {tally.failed[0].seed} shows the first"
    if tally.failed[0].violations:
        hint += ", and with --shrink as short as can be"
    return f"{tally.name}: {count_text(tally.seeds, 'seed')}, {len(tally.failed)} failed; {hint}"


def coverage_text(tally: OutcomeTally, columns: int = COLUMNS) -> str:
    """Which faults have struck, and what they have hit most; each line ends with a newline. JSON has all of it."""
    sheet = _Layout(columns)
    lines = ["", f"Faults that struck in {count_text(tally.seeds, 'seed')}"]
    for one in tally.coverage.hits():
        steps = ", ".join([f"{step} ({times})" for step, times in one.steps.items()][:_MOST_STEPS])
        if len(one.steps) > _MOST_STEPS:
            steps += f" and {len(one.steps) - _MOST_STEPS} more steps"
        lines += sheet.wrap(
            plain_text(f"{one.kind}, in {count_text(one.seeds, 'seed')}: {steps}"), f"  {one.times:>7} x ", " " * 12
        )
    never = ", ".join(tally.coverage.missing_kinds())
    lines += sheet.wrap(f"never: {never}" if never else "every fault has struck", "  ", "    ")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _expectation_lines(outcome: RehearsalOutcome, sheet: _Layout) -> Iterator[str]:
    for one in outcome.verdicts:
        words = f"{expectation_sentence(one.expectation)}: {one.measured}"
        yield from sheet.wrap(words, "  yes  " if one.holds else "  NO   ", " " * 7)


def _violation_lines(outcome: RehearsalOutcome, sheet: _Layout) -> Iterator[str]:
    for one in outcome.violations:
        yield from sheet.wrap(plain_text(f"{one.rule}: {one.what}"), f"  ! {format_duration(one.at):>8}  ", " " * 14)


def _chart_lines(outcome: RehearsalOutcome, sheet: _Layout) -> Iterator[str]:
    """Machines and workloads over time."""
    extent = outcome.lasts or 1.0
    yield from _axis_lines(extent, sheet)
    shown, others = findings.shown_machines(outcome)
    for node in shown:
        bar = _machine_bar(node, extent, sheet.chart_width)
        yield f"{sheet.name_cell(node.name)} {bar} {findings.time_not_on(node, most=1)}"[: sheet.columns]
    if others:
        yield f"  {others}"
    serving, calm = findings.shown_workloads(outcome)
    for workload in serving:
        yield f"{sheet.name_cell(workload.name)} {_workload_bar(workload, extent, sheet.chart_width)}"
    if calm:
        yield f"  {calm}"
    yield ""
    yield from _legend_lines(shown, sheet)


def _axis_lines(extent: float, sheet: _Layout) -> Iterator[str]:
    indent, labels, line = " " * (sheet.name + 3), [" "] * sheet.chart_width, ["-"] * sheet.chart_width
    for tick in axis_ticks(extent, 6):
        at, label = min(sheet.chart_width - 1, int(tick / extent * sheet.chart_width)), format_duration(tick)
        line[at] = "+"
        labels[at : at + len(label)] = label
    yield indent + "".join(labels)
    yield indent + "".join(line)


def _legend_lines(machines: Sequence[MachineOutcome], sheet: _Layout) -> Iterator[str]:
    """Of the states of machines only those that occur."""
    occur = {span.state for node in machines for span in node.spans}
    states = [f"{mark.strip() or '(blank)'} {state.value}" for state, mark in _MARKS.items() if state in occur]
    yield from sheet.wrap(f"machines: {'   '.join(states)}", later=" " * 10)
    yield from sheet.wrap(_SERVING, later=" " * 10)


def _machine_bar(node: MachineOutcome, extent: float, width: int) -> str:
    """What is short must not be hidden by what is beside it."""
    cells = [" "] * width
    for span in sorted(node.spans, key=lambda one: one.begin - one.end):
        _fill_cells(cells, span.begin / extent, span.end / extent, _MARKS[span.state])
    return "".join(cells)


def _workload_bar(workload: WorkloadOutcome, extent: float, width: int) -> str:
    cells = [" "] * width
    for begin, end, has, wants in sorted(findings.service_levels(workload), key=lambda one: -_severity(*one[2:])):
        _fill_cells(cells, begin / extent, min(end, extent) / extent, "!:# "[_severity(has, wants)])
    return "".join(cells)


def _severity(has: int, wants: int) -> int:
    """The less, the worse: the worst must not be hidden by what is beside it."""
    return 3 if not wants and not has else 2 if has >= wants else 1 if has else 0


def _fill_cells(cells: list[str], begin: float, end: float, mark: str) -> None:
    width = len(cells)
    first = min(width - 1, int(begin * width))
    for at in range(first, max(first + 1, min(width, int(end * width)))):
        cells[at] = mark


def _workload_lines(workloads: Sequence[WorkloadOutcome], sheet: _Layout) -> Iterator[str]:
    if not workloads:
        return
    yield _table_line(_TABLE, sheet)
    for one in workloads:
        spans = (findings.downtime_text(one), format_duration(one.longest_outage), format_duration(one.degraded))
        words = findings.pod_text(one)
        yield _table_line((one.name, *spans, findings.request_text(one) or "-", findings.write_text(one) or "-"), sheet)
        if words:
            yield from sheet.wrap(f"pods: {words}", "    ", "    ")


def _table_line(cells: Sequence[str], sheet: _Layout) -> str:
    fitted = [f"{cell:<{width}}" for cell, width in zip(cells[1:], _WIDTHS, strict=True)]
    return f"{sheet.name_cell(cells[0])} {' '.join(fitted)}"


def _timeline_lines(outcome: RehearsalOutcome, sheet: _Layout) -> Iterator[str]:
    for one in outcome.lines:
        yield from sheet.wrap(
            plain_text(one.text), f"  {format_duration(one.at):>8} {_TOPICS.get(one.topic, ' ')} ", " " * 13
        )


def _fault_lines(outcome: RehearsalOutcome, sheet: _Layout) -> Iterator[str]:
    for kind, times, steps in findings.fault_rows(outcome):
        yield from sheet.wrap(plain_text(f"{kind}: {steps}"), f"  {times:>5} x ", " " * 10)
