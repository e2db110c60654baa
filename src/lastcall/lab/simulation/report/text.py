"""An outcome as plain text of at most 100 columns."""

import textwrap
from collections.abc import Iterator, Sequence

from lastcall.lab.simulation.outcome import NodeOutcome, NodeState, Outcome, Topic, WorkloadOutcome
from lastcall.lab.simulation.report import findings
from lastcall.lab.simulation.sentences import of_expectation
from lastcall.lab.simulation.tally import Tally
from lastcall.report.timeline import ticks
from lastcall.report.words import count, lasting, plain

_COLUMNS = 100
_NAME = 20
_CHART = 60
_MARKS = {
    NodeState.ON: "-",
    NodeState.GOING_DOWN: "\\",
    NodeState.OFF: " ",
    NodeState.STARTING: "/",
    NodeState.CUT_OFF: "x",
    NodeState.NO_STORAGE: "s",
    NodeState.HUNG: "h",
}
_LEGEND = (
    "machines: - on   \\ going down   (blank) off   / starting   x cut off   s no storage   h hung",
    "workloads: # all pods serve   : some   ! none   (blank) none is wanted",
)
_TOPICS = {Topic.EVENT: ">", Topic.VIOLATION: "!"}
_TABLE = ("Workload", "Down", "Outage", "Degraded", "Requests lost", "Writes lost")
_WIDTHS = (20, 8, 8, 9, 18, 13)


def text(outcome: Outcome) -> str:
    """The whole report; every line ends with a newline."""
    lines = [*_wrapped(f"{outcome.scenario}, seed {outcome.seed}: {findings.headline(outcome)}")]
    if outcome.description:
        lines += _wrapped(plain(outcome.description), "  ", "  ")
    for title, part in (
        ("Expected", _expected(outcome)),
        ("What must never happen", _violations(outcome)),
        ("", _chart(outcome)),
        ("", _workloads(findings.workloads(outcome)[0])),
        ("What happened", _happened(outcome)),
        ("Faults that struck", _faults(outcome)),
    ):
        found = list(part)
        if found:
            lines += ["", *([title] if title else []), *found]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def line(outcome: Outcome) -> str:
    """One that has failed among many: what was broken, in one line."""
    broken = [f"{of_expectation(one.expectation)}: {one.measured}" for one in outcome.verdicts if not one.holds]
    broken += [f"{one.rule}: {one.what}" for one in outcome.violations]
    return plain(f"seed {outcome.seed}: {'; '.join(broken)}")


def summary(tally: Tally) -> str:
    """Of all of them."""
    if not tally.failed:
        return f"{tally.name}: {count(tally.seeds, 'seed')}, all is well in each"
    hint = f"--seed {tally.failed[0].seed} shows the first"
    if tally.failed[0].violations:
        hint += ", and with --shrink as short as can be"
    return f"{tally.name}: {count(tally.seeds, 'seed')}, {len(tally.failed)} failed; {hint}"


def coverage(tally: Tally) -> str:
    """Which faults have struck, and what they have hit; each line ends with a newline."""
    lines = ["", f"Faults that struck in {count(tally.seeds, 'seed')}"]
    for one in tally.coverage.hits():
        steps = ", ".join(f"{step} ({times})" for step, times in one.steps.items())
        lines += _wrapped(
            plain(f"{one.kind}, in {count(one.seeds, 'seed')}: {steps}"), f"  {one.times:>7} x ", " " * 12
        )
    never = ", ".join(tally.coverage.never())
    lines += _wrapped(f"never: {never}" if never else "every fault has struck", "  ", "    ")
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _expected(outcome: Outcome) -> Iterator[str]:
    for one in outcome.verdicts:
        words = f"{of_expectation(one.expectation)}: {one.measured}"
        yield from _wrapped(words, "  yes  " if one.holds else "  NO   ", " " * 7)


def _violations(outcome: Outcome) -> Iterator[str]:
    for one in outcome.violations:
        yield from _wrapped(plain(f"{one.rule}: {one.what}"), f"  ! {lasting(one.at):>8}  ", " " * 14)


def _chart(outcome: Outcome) -> Iterator[str]:
    """Machines and workloads over time."""
    extent = outcome.lasts or 1.0
    labels, line = [" "] * (_CHART + 10), ["-"] * _CHART
    for tick in ticks(extent, 6):
        at = min(_CHART - 1, int(tick / extent * _CHART))
        line[at] = "+"
        labels[at : at + len(lasting(tick))] = lasting(tick)
    yield " " * _NAME + "".join(labels)
    yield " " * _NAME + "".join(line)
    shown, others = findings.machines(outcome)
    for node in shown:
        yield _row(node.name, _machine_bar(node, extent), findings.not_on(node, most=1))
    if others:
        yield f"  {others}"
    serving, calm = findings.workloads(outcome)
    for workload in serving:
        yield _row(workload.name, _workload_bar(workload, extent), "")
    if calm:
        yield f"  {calm}"
    yield ""
    yield from _LEGEND


def _row(name: str, bar: str, words: str) -> str:
    return f"  {plain(name):<{_NAME - 3}.{_NAME - 3}} {bar:<{_CHART}} {words}"[:_COLUMNS]


def _machine_bar(node: NodeOutcome, extent: float) -> str:
    """What is short must not be hidden by what is beside it."""
    cells = [" "] * _CHART
    for span in sorted(node.spans, key=lambda one: one.begin - one.end):
        _fill(cells, span.begin / extent, span.end / extent, _MARKS[span.state])
    return "".join(cells)


def _workload_bar(workload: WorkloadOutcome, extent: float) -> str:
    cells = [" "] * _CHART
    for begin, end, has, wants in sorted(findings.service(workload), key=lambda one: -_worth(*one[2:])):
        _fill(cells, begin / extent, min(end, extent) / extent, "!:# "[_worth(has, wants)])
    return "".join(cells)


def _worth(has: int, wants: int) -> int:
    """The less, the worse: the worst must not be hidden by what is beside it."""
    return 3 if not wants and not has else 2 if has >= wants else 1 if has else 0


def _fill(cells: list[str], begin: float, end: float, mark: str) -> None:
    first = min(_CHART - 1, int(begin * _CHART))
    for at in range(first, max(first + 1, min(_CHART, int(end * _CHART)))):
        cells[at] = mark


def _workloads(workloads: Sequence[WorkloadOutcome]) -> Iterator[str]:
    if not workloads:
        return
    yield _line(_TABLE)
    for one in workloads:
        spans = (findings.down(one), lasting(one.longest_outage), lasting(one.degraded))
        words = findings.pods(one)
        yield _line((plain(one.name), *spans, findings.requests(one) or "-", findings.writes(one) or "-"))
        if words:
            yield from _wrapped(f"pods: {words}", "    ", "    ")


def _line(cells: Sequence[str]) -> str:
    fitted = [f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)]
    return "  " + " ".join(fitted)


def _happened(outcome: Outcome) -> Iterator[str]:
    for one in outcome.lines:
        yield from _wrapped(plain(one.text), f"  {lasting(one.at):>8} {_TOPICS.get(one.topic, ' ')} ", " " * 13)


def _faults(outcome: Outcome) -> Iterator[str]:
    for kind, times, steps in findings.faults(outcome):
        yield from _wrapped(plain(f"{kind}: {steps}"), f"  {times:>5} x ", " " * 10)


def _wrapped(words: str, first: str = "", later: str = "  ") -> list[str]:
    return textwrap.wrap(words, _COLUMNS, initial_indent=first, subsequent_indent=later) or [first]
