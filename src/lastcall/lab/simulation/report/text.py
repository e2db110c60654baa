"""An outcome as plain text, as wide as a terminal is but 100 columns at most."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lastcall.lab.simulation.outcome import NodeOutcome, NodeState, Outcome, Topic, WorkloadOutcome
from lastcall.lab.simulation.report import findings
from lastcall.lab.simulation.tally import Tally
from lastcall.lab.simulation.wording.sentences import of_expectation
from lastcall.model.foreign import plain
from lastcall.report.timeline import ticks
from lastcall.report.words import count, lasting

COLUMNS = 100
"""Of a report that goes into a file."""

_NAMES = (18, 30)
_BESIDE = 22
"""Columns beside the chart, for what is told of a machine."""

_MOST_STEPS = 10

_MARKS = {
    NodeState.ON: "-",
    NodeState.GOING_DOWN: "\\",
    NodeState.OFF: " ",
    NodeState.STARTING: "/",
    NodeState.CUT_OFF: "x",
    NodeState.NO_STORAGE: "s",
    NodeState.HUNG: "h",
}
_SERVING = "workloads: # all pods serve   : some   ! none   (blank) none is wanted"
_TOPICS = {Topic.EVENT: ">", Topic.VIOLATION: "!"}
_TABLE = ("Workload", "Down", "Outage", "Degraded", "Requests lost", "Writes lost")
_WIDTHS = (7, 7, 8, 16, 11)


@dataclass(frozen=True)
class _Sheet:
    """How wide it all is, and the column of names in it."""

    columns: int
    name: int = _NAMES[0]

    @property
    def chart(self) -> int:
        return self.columns - self.name - _BESIDE

    def wrapped(self, words: str, first: str = "", later: str = "  ") -> list[str]:
        return textwrap.wrap(words, self.columns, initial_indent=first, subsequent_indent=later) or [first]

    def named(self, name: str) -> str:
        """In its column; one that is too long says so."""
        told = plain(name)
        if len(told) > self.name:
            told = f"{told[: self.name - 2]}.."
        return f"  {told:<{self.name}}"


def _sheet(outcome: Outcome, columns: int) -> _Sheet:
    names = [one.name for one in findings.machines(outcome)[0]] + [one.name for one in findings.workloads(outcome)[0]]
    longest = max(map(len, names), default=0)
    return _Sheet(columns, min(max(longest, _NAMES[0]), _NAMES[1] if columns >= COLUMNS else _NAMES[0]))


def text(outcome: Outcome, columns: int = COLUMNS) -> str:
    """The whole report, in ``columns`` from 80 on; every line ends with a newline."""
    sheet = _sheet(outcome, columns)
    lines = [*sheet.wrapped(f"{outcome.scenario}, seed {outcome.seed}: {findings.headline(outcome)}")]
    if outcome.description:
        lines += sheet.wrapped(plain(outcome.description), "  ", "  ")
    for title, part in (
        ("Expected", _expected(outcome, sheet)),
        ("What must never happen", _violations(outcome, sheet)),
        ("", _chart(outcome, sheet)),
        ("", _workloads(findings.workloads(outcome)[0], sheet)),
        ("What happened", _happened(outcome, sheet)),
        ("Faults that struck", _faults(outcome, sheet)),
    ):
        found = list(part)
        if found:
            lines += ["", *([title] if title else []), *found]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def line(outcome: Outcome) -> str:
    """One that has failed among many: what was broken, in one line; of each promise the first time."""
    broken = [f"{of_expectation(one.expectation)}: {one.measured}" for one in outcome.verdicts if not one.holds]
    times = Counter(one.rule for one in outcome.violations)
    for rule, many in times.items():
        first = next(one.what for one in outcome.violations if one.rule == rule)
        broken.append(f"{rule}: {first}{f' (and {many - 1} more)' if many > 1 else ''}")
    return plain(f"seed {outcome.seed}: {'; '.join(broken)}")


def summary(tally: Tally) -> str:
    """Of all of them."""
    if not tally.failed:
        return f"{tally.name}: {count(tally.seeds, 'seed')}, all is well in each"
    hint = f"--seed {tally.failed[0].seed} shows the first"
    if tally.failed[0].violations:
        hint += ", and with --shrink as short as can be"
    return f"{tally.name}: {count(tally.seeds, 'seed')}, {len(tally.failed)} failed; {hint}"


def coverage(tally: Tally, columns: int = COLUMNS) -> str:
    """Which faults have struck, and what they have hit most; each line ends with a newline. JSON has all of it."""
    sheet = _Sheet(columns)
    lines = ["", f"Faults that struck in {count(tally.seeds, 'seed')}"]
    for one in tally.coverage.hits():
        steps = ", ".join([f"{step} ({times})" for step, times in one.steps.items()][:_MOST_STEPS])
        if len(one.steps) > _MOST_STEPS:
            steps += f" and {len(one.steps) - _MOST_STEPS} more steps"
        lines += sheet.wrapped(
            plain(f"{one.kind}, in {count(one.seeds, 'seed')}: {steps}"), f"  {one.times:>7} x ", " " * 12
        )
    never = ", ".join(tally.coverage.never())
    lines += sheet.wrapped(f"never: {never}" if never else "every fault has struck", "  ", "    ")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _expected(outcome: Outcome, sheet: _Sheet) -> Iterator[str]:
    for one in outcome.verdicts:
        words = f"{of_expectation(one.expectation)}: {one.measured}"
        yield from sheet.wrapped(words, "  yes  " if one.holds else "  NO   ", " " * 7)


def _violations(outcome: Outcome, sheet: _Sheet) -> Iterator[str]:
    for one in outcome.violations:
        yield from sheet.wrapped(plain(f"{one.rule}: {one.what}"), f"  ! {lasting(one.at):>8}  ", " " * 14)


def _chart(outcome: Outcome, sheet: _Sheet) -> Iterator[str]:
    """Machines and workloads over time."""
    extent = outcome.lasts or 1.0
    yield from _axis(extent, sheet)
    shown, others = findings.machines(outcome)
    for node in shown:
        bar = _machine_bar(node, extent, sheet.chart)
        yield f"{sheet.named(node.name)} {bar} {findings.not_on(node, most=1)}"[: sheet.columns]
    if others:
        yield f"  {others}"
    serving, calm = findings.workloads(outcome)
    for workload in serving:
        yield f"{sheet.named(workload.name)} {_workload_bar(workload, extent, sheet.chart)}"
    if calm:
        yield f"  {calm}"
    yield ""
    yield from _legend(shown, sheet)


def _axis(extent: float, sheet: _Sheet) -> Iterator[str]:
    indent, labels, line = " " * (sheet.name + 3), [" "] * sheet.chart, ["-"] * sheet.chart
    for tick in ticks(extent, 6):
        at, label = min(sheet.chart - 1, int(tick / extent * sheet.chart)), lasting(tick)
        line[at] = "+"
        labels[at : at + len(label)] = label
    yield indent + "".join(labels)
    yield indent + "".join(line)


def _legend(machines: Sequence[NodeOutcome], sheet: _Sheet) -> Iterator[str]:
    """Of the states of machines only those that occur."""
    occur = {span.state for node in machines for span in node.spans}
    states = [f"{mark.strip() or '(blank)'} {state.value}" for state, mark in _MARKS.items() if state in occur]
    yield from sheet.wrapped(f"machines: {'   '.join(states)}", later=" " * 10)
    yield from sheet.wrapped(_SERVING, later=" " * 10)


def _machine_bar(node: NodeOutcome, extent: float, width: int) -> str:
    """What is short must not be hidden by what is beside it."""
    cells = [" "] * width
    for span in sorted(node.spans, key=lambda one: one.begin - one.end):
        _fill(cells, span.begin / extent, span.end / extent, _MARKS[span.state])
    return "".join(cells)


def _workload_bar(workload: WorkloadOutcome, extent: float, width: int) -> str:
    cells = [" "] * width
    for begin, end, has, wants in sorted(findings.service(workload), key=lambda one: -_worth(*one[2:])):
        _fill(cells, begin / extent, min(end, extent) / extent, "!:# "[_worth(has, wants)])
    return "".join(cells)


def _worth(has: int, wants: int) -> int:
    """The less, the worse: the worst must not be hidden by what is beside it."""
    return 3 if not wants and not has else 2 if has >= wants else 1 if has else 0


def _fill(cells: list[str], begin: float, end: float, mark: str) -> None:
    width = len(cells)
    first = min(width - 1, int(begin * width))
    for at in range(first, max(first + 1, min(width, int(end * width)))):
        cells[at] = mark


def _workloads(workloads: Sequence[WorkloadOutcome], sheet: _Sheet) -> Iterator[str]:
    if not workloads:
        return
    yield _line(_TABLE, sheet)
    for one in workloads:
        spans = (findings.down(one), lasting(one.longest_outage), lasting(one.degraded))
        words = findings.pods(one)
        yield _line((one.name, *spans, findings.requests(one) or "-", findings.writes(one) or "-"), sheet)
        if words:
            yield from sheet.wrapped(f"pods: {words}", "    ", "    ")


def _line(cells: Sequence[str], sheet: _Sheet) -> str:
    fitted = [f"{cell:<{width}}" for cell, width in zip(cells[1:], _WIDTHS, strict=True)]
    return f"{sheet.named(cells[0])} {' '.join(fitted)}"


def _happened(outcome: Outcome, sheet: _Sheet) -> Iterator[str]:
    for one in outcome.lines:
        yield from sheet.wrapped(plain(one.text), f"  {lasting(one.at):>8} {_TOPICS.get(one.topic, ' ')} ", " " * 13)


def _faults(outcome: Outcome, sheet: _Sheet) -> Iterator[str]:
    for kind, times, steps in findings.faults(outcome):
        yield from sheet.wrapped(plain(f"{kind}: {steps}"), f"  {times:>5} x ", " " * 10)
