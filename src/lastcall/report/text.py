"""A timeline as plain text of at most 100 columns, for a terminal or an e-mail."""

import textwrap
from collections.abc import Iterator

from lastcall.model.foreign import plain
from lastcall.report.timeline import Doing, Lane, PhaseRow, PodRow, Timeline
from lastcall.report.words import lasting, moment

_COLUMNS = 100
_NAME = 44
_CHART = 34
_MARKS = {Doing.WAIT: ".", Doing.PRE_STOP: "p", Doing.TERM: "=", Doing.KILL: "X"}
_LEGEND = ". waits   p preStop hook   = after SIGTERM   X SIGKILL   | ended   ? end not seen   ! deadline"


def text(timeline: Timeline) -> str:
    """The whole report; every line ends with a newline."""
    lines = [*_head(timeline), "", *_axis(timeline)]
    for phase in timeline.phases:
        lines += _phase(timeline, phase)
    lines += ["", *_wrapped(_LEGEND)]
    if timeline.notes:
        lines += ["", "Notes"]
    for note in timeline.notes:
        lines += _wrapped(plain(note.text), f"  {lasting(note.at):>7}  ", " " * 11)
    return "".join(f"{plain(line).rstrip()}\n" for line in lines)


def _head(timeline: Timeline) -> Iterator[str]:
    record = timeline.record
    yield from _wrapped(f"Shutdown {plain(record.id)} of node {plain(record.node)}: {record.outcome.value}")
    yield ""
    began = f"{moment(record.wall)} ({plain(record.how)})" if record.how else moment(record.wall)
    for label, value in (("Began", began), *timeline.facts):
        yield from _wrapped(value, f"  {label:<17}", " " * 19)


def _axis(timeline: Timeline) -> Iterator[str]:
    """Two lines: the labels, and ticks with the deadline among them."""
    labels, line = [" "] * (_CHART + 10), ["-"] * (_CHART + 1)
    for tick in timeline.ticks(5):
        at = _column(timeline, tick)
        line[at] = "+"
        labels[at : at + len(lasting(tick))] = lasting(tick)
    if timeline.deadline_shown:
        line[_column(timeline, timeline.deadline)] = "!"
    yield " " * _NAME + "".join(labels)
    yield " " * _NAME + "".join(line)


def _phase(timeline: Timeline, phase: PhaseRow) -> Iterator[str]:
    yield ""
    yield from _wrapped(f"{phase.title}: {phase.words}")
    for pod in phase.pods:
        yield from _pod(timeline, pod)


def _pod(timeline: Timeline, pod: PodRow) -> Iterator[str]:
    result = f"{pod.took:>6} {pod.result}"
    one = pod.lanes[0] if len(pod.lanes) == 1 else None
    yield from _row(f"  {pod.name}", _bar(timeline, one) if one else "", result)
    if not one:
        for lane in pod.lanes:
            yield from _row(f"    - {plain(lane.record.name)}", _bar(timeline, lane), "")
    for remark in pod.remarks:
        yield from _wrapped(remark, "      ! ", "        ")


def _row(label: str, bar: str, result: str) -> Iterator[str]:
    """Label, bar and result beside each other; a label too long for its column has lines of its own."""
    rest = f"{bar:<{_CHART + 1}} {result}"
    if len(label) < _NAME:
        yield f"{label:<{_NAME}}{rest}"
        return
    indent = len(label) - len(label.lstrip())
    yield from _wrapped(label.strip(), " " * indent, " " * (indent + 2))
    if rest.strip():
        yield " " * _NAME + rest


def _bar(timeline: Timeline, lane: Lane) -> str:
    cells = [" "] * (_CHART + 1)
    for span in lane.spans:
        for at in range(_column(timeline, span.start), _column(timeline, span.end) + 1):
            cells[at] = _MARKS[span.doing]
    for span in lane.spans:  # a longer stretch next to it must not hide a short one
        cells[_column(timeline, span.start)] = _MARKS[span.doing]
    if lane.record.ended is not None:
        at = _column(timeline, lane.record.ended)
        cells[min(_CHART, at + 1) if cells[at] == "X" else at] = "|"
    elif lane.spans:
        cells[min(_CHART, _column(timeline, lane.spans[-1].end) + 1)] = "?"
    return "".join(cells).rstrip()


def _column(timeline: Timeline, at: float) -> int:
    return min(_CHART, max(0, int(at / timeline.extent * _CHART)))


def _wrapped(text: str, first: str = "", later: str = "  ") -> list[str]:
    return textwrap.wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=later) or [first]
