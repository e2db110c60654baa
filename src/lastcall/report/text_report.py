"""A timeline as plain text of at most 100 columns, for a terminal or an e-mail."""

import textwrap
from collections.abc import Iterator

from lastcall.model.foreign_text import plain_text
from lastcall.report.formatting import format_duration, format_utc
from lastcall.report.timeline import Activity, Lane, PhaseRow, PodRow, Timeline

_COLUMNS = 100
_NAME = 44
_CHART = 34
_MARKS = {Activity.WAIT: ".", Activity.PRE_STOP: "p", Activity.TERM: "=", Activity.KILL: "X"}
_LEGEND = ". waits   p preStop hook   = after SIGTERM   X SIGKILL   | ended   ? end not seen   ! deadline"


def render_text(timeline: Timeline) -> str:
    """The whole report; every line ends with a newline."""
    lines = [*_head_lines(timeline), "", *_axis_lines(timeline)]
    for phase in timeline.phases:
        lines += _phase_lines(timeline, phase)
    lines += ["", *_wrap_text(_LEGEND)]
    if timeline.notes:
        lines += ["", "Notes"]
    for note in timeline.notes:
        lines += _wrap_text(plain_text(note.text), f"  {format_duration(note.at):>7}  ", " " * 11)
    return "".join(f"{plain_text(line).rstrip()}\n" for line in lines)


def _head_lines(timeline: Timeline) -> Iterator[str]:
    record = timeline.record
    yield from _wrap_text(f"Shutdown {plain_text(record.id)} of node {plain_text(record.node)}: {record.outcome.value}")
    yield ""
    began = f"{format_utc(record.wall)} ({plain_text(record.how)})" if record.how else format_utc(record.wall)
    for label, value in (("Began", began), *timeline.facts):
        yield from _wrap_text(value, f"  {label:<17}", " " * 19)


def _axis_lines(timeline: Timeline) -> Iterator[str]:
    """Two lines: the labels, and the ticks with the deadline."""
    labels, line = [" "] * (_CHART + 10), ["-"] * (_CHART + 1)
    for tick in timeline.ticks(5):
        at = _axis_column(timeline, tick)
        line[at] = "+"
        labels[at : at + len(format_duration(tick))] = format_duration(tick)
    if timeline.shows_deadline:
        line[_axis_column(timeline, timeline.deadline)] = "!"
    yield " " * _NAME + "".join(labels)
    yield " " * _NAME + "".join(line)


def _phase_lines(timeline: Timeline, phase: PhaseRow) -> Iterator[str]:
    yield ""
    yield from _wrap_text(f"{phase.title}: {phase.description}")
    for pod in phase.pods:
        yield from _pod_lines(timeline, pod)


def _pod_lines(timeline: Timeline, pod: PodRow) -> Iterator[str]:
    result = f"{pod.duration_text:>6} {pod.outcome_text}"
    one = pod.lanes[0] if len(pod.lanes) == 1 else None
    yield from _row_lines(f"  {pod.name}", _draw_bar(timeline, one) if one else "", result)
    if not one:
        for lane in pod.lanes:
            yield from _row_lines(f"    - {plain_text(lane.record.name)}", _draw_bar(timeline, lane), "")
    for remark in pod.remarks:
        yield from _wrap_text(remark, "      ! ", "        ")


def _row_lines(label: str, bar: str, result: str) -> Iterator[str]:
    """Label, bar and result side by side; a label too long for its column gets lines of its own."""
    rest = f"{bar:<{_CHART + 1}} {result}"
    if len(label) < _NAME:
        yield f"{label:<{_NAME}}{rest}"
        return
    indent = len(label) - len(label.lstrip())
    yield from _wrap_text(label.strip(), " " * indent, " " * (indent + 2))
    if rest.strip():
        yield " " * _NAME + rest


def _draw_bar(timeline: Timeline, lane: Lane) -> str:
    cells = [" "] * (_CHART + 1)
    for span in lane.spans:
        for at in range(_axis_column(timeline, span.start), _axis_column(timeline, span.end) + 1):
            cells[at] = _MARKS[span.doing]
    for span in lane.spans:  # a longer adjacent span must not hide a short one
        cells[_axis_column(timeline, span.start)] = _MARKS[span.doing]
    if lane.record.ended is not None:
        at = _axis_column(timeline, lane.record.ended)
        cells[min(_CHART, at + 1) if cells[at] == "X" else at] = "|"
    elif lane.spans:
        cells[min(_CHART, _axis_column(timeline, lane.spans[-1].end) + 1)] = "?"
    return "".join(cells).rstrip()


def _axis_column(timeline: Timeline, at: float) -> int:
    return min(_CHART, max(0, int(at / timeline.extent * _CHART)))


def _wrap_text(text: str, first: str = "", later: str = "  ") -> list[str]:
    return textwrap.wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=later) or [first]
