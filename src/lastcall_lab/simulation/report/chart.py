"""The pieces of a rehearsal's chart as small SVG images, one a row.

Positions along the time axis are percentages and all else is in pixels, as in ``lastcall.report.svg_chart``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lastcall.report.formatting import format_duration
from lastcall.report.markup import Markup, join, tag
from lastcall.report.timeline import axis_ticks
from lastcall_lab.simulation.outcome import (
    MachineOutcome,
    RehearsalOutcome,
    TimelineLine,
    TimelineTopic,
    WorkloadOutcome,
)
from lastcall_lab.simulation.report import findings

_MACHINE = 16
_WORKLOAD = 34
_LOSSES = 4
"""Heights in pixels; that of losses is a part of a workload's."""

_CLOSE = 0.03
"""Marks that are closer than this part of the axis share a label."""

_HATCHES = {
    "starting": "M-1 7 7 -1",
    "cut-off": "M-1 7 7 -1M-1 -1 7 7",
    "no-storage": "M0 3H6",
    "hung": "M3 0V6",
    "none": "M-1 -1 7 7",
}


class ChartMark(NamedTuple):
    """Events at about the same time, with the numbers that they have in the table: ``3`` or ``3-5``."""

    at: float
    label: str
    words: str


def chart_marks(outcome: RehearsalOutcome) -> Sequence[ChartMark]:
    """All of them, in order."""
    groups: list[list[tuple[int, TimelineLine]]] = []
    for number, line in enumerate(event_lines(outcome), 1):
        if groups and line.at - groups[-1][0][1].at < outcome.lasts * _CLOSE:
            groups[-1].append((number, line))
        else:
            groups.append([(number, line)])
    return [
        ChartMark(
            at=group[0][1].at,
            label=str(group[0][0]) if len(group) == 1 else f"{group[0][0]}-{group[-1][0]}",
            words="; ".join(f"{format_duration(line.at)}: {line.text}" for _, line in group),
        )
        for group in groups
    ]


def event_lines(outcome: RehearsalOutcome) -> Sequence[TimelineLine]:
    """The lines of what the scenario wants to happen."""
    return [line for line in outcome.lines if line.topic is TimelineTopic.EVENT]


def fill_patterns() -> Markup:
    """An invisible image with the fills that the others use: hatches tell them apart without colour."""
    found = [
        tag("pattern", _draw_background(kind), tag("path", d=path, class_="hatch"), id=kind, **_TILE)
        for kind, path in _HATCHES.items()
    ]
    return tag("svg", tag("defs", *found), width=0, height=0, class_="defs", aria_hidden="true")


def draw_axis(outcome: RehearsalOutcome) -> Markup:
    """The labels of the time axis, and above them the events' numbers."""
    labels = [_draw_label(outcome, at) for at in axis_ticks(outcome.lasts or 1.0, 6)]
    numbers = [
        join(
            tag("text", mark.label, tag("title", mark.words), x=_x_percent(outcome, mark.at), y=10, **_MIDDLE),
            tag("svg", tag("path", d="M-4 13h8l-4 5z", class_="event-mark"), x=_x_percent(outcome, mark.at), **_MARK),
        )
        for mark in chart_marks(outcome)
    ]
    return tag("svg", *labels, *numbers, width="100%", height=34, aria_hidden="true")


def draw_backdrop(outcome: RehearsalOutcome) -> Markup:
    """The lines that run through all rows: the grid and the events."""
    lines = [_draw_rule(outcome, at, "grid") for at in axis_ticks(outcome.lasts or 1.0, 6)]
    lines += [_draw_rule(outcome, mark.at, "event") for mark in chart_marks(outcome)]
    return tag("svg", *lines, width="100%", height="100%", class_="backdrop", aria_hidden="true")


def draw_machine(outcome: RehearsalOutcome, node: MachineOutcome) -> Markup:
    """How it was, over time."""
    shapes = [
        _draw_rect(outcome, span.begin, span.end, y=2, height=_MACHINE - 4, kind=_css_class(span.state.value))
        for span in node.spans
    ]
    words = ", ".join(
        f"{span.state.value} {format_duration(span.begin)} to {format_duration(span.end)}" for span in node.spans
    )
    return _draw_image(f"{node.name}: {words}", _MACHINE, *shapes)


def draw_workload(outcome: RehearsalOutcome, found: WorkloadOutcome) -> Markup:
    """How many pods served of those that were wanted, and when requests were lost."""
    return _draw_image(
        f"{found.name}: {_alternative_text(found)}",
        _WORKLOAD,
        *_draw_area(outcome, found),
        *_draw_losses(outcome, found),
    )


def legend_sample(kind: str) -> Markup:
    """What the legend shows beside the words."""
    if kind == "event":
        drawn = tag("line", x1=17, x2=17, y1=0, y2=16, class_="event")
    elif kind == "wanted":
        drawn = tag("line", x1=2, x2=32, y1=8, y2=8, class_="wanted")
    elif kind == "lost-requests":
        drawn = tag("rect", x=2, y=6, width=30, height=_LOSSES, class_=kind)
    else:
        drawn = tag("rect", x=2, y=2, width=30, height=12, class_=kind)
    return tag("svg", drawn, width=36, height=16, aria_hidden="true")


def _draw_area(outcome: RehearsalOutcome, found: WorkloadOutcome) -> Iterator[Markup]:
    stretches = list(findings.service_levels(found))
    most = max((max(has, wants) for _, _, has, wants in stretches), default=0) or 1
    height, floor = _WORKLOAD - _LOSSES - 4, _WORKLOAD - _LOSSES - 2
    for begin, end, has, wants in stretches:
        tall = height * has / most
        if has:
            kind = "serve" if has >= wants else "short"
            yield _draw_rect(outcome, begin, end, y=floor - tall, height=tall, kind=kind)
        elif wants:
            yield _draw_rect(
                outcome, begin, end, y=floor - height * wants / most, height=height * wants / most, kind="none"
            )
    for begin, end, _, wants in stretches:
        y = floor - height * wants / most
        ends = {"x1": _x_percent(outcome, begin), "x2": _x_percent(outcome, min(end, outcome.lasts))}
        yield tag("line", **ends, y1=y, y2=y, class_="wanted")


def _draw_losses(outcome: RehearsalOutcome, found: WorkloadOutcome) -> Iterator[Markup]:
    for one in found.losses:
        shape = _draw_rect(outcome, one.begin, one.end, y=_WORKLOAD - _LOSSES, height=_LOSSES, kind="lost-requests")
        yield shape


def _alternative_text(found: WorkloadOutcome) -> str:
    stretches = (
        f"from {format_duration(begin)} {has} of {wants} pods"
        for begin, _, has, wants in findings.service_levels(found)
    )
    return ", ".join(stretches)


def _css_class(state: str) -> str:
    return state.replace(" ", "-")


def _draw_rect(outcome: RehearsalOutcome, begin: float, end: float, *, y: float, height: float, kind: str) -> Markup:
    end = min(end, outcome.lasts)
    width = _x_percent(outcome, max(0.0, end - begin))
    return tag("rect", x=_x_percent(outcome, begin), y=round(y, 2), width=width, height=round(height, 2), class_=kind)


def _draw_rule(outcome: RehearsalOutcome, at: float, kind: str) -> Markup:
    place = _x_percent(outcome, at)
    return tag("line", x1=place, x2=place, y1=34 if kind == "grid" else 18, y2="100%", class_=kind)


def _draw_label(outcome: RehearsalOutcome, at: float) -> Markup:
    anchor = "start" if at == 0 else "end" if at > outcome.lasts * 0.95 else "middle"
    return tag("text", format_duration(at), x=_x_percent(outcome, at), y=30, class_="tick", text_anchor=anchor)


def _draw_image(words: str, height: int, *shapes: str) -> Markup:
    return tag("svg", tag("title", words), *shapes, width="100%", height=height, role="img")


def _x_percent(outcome: RehearsalOutcome, at: float) -> str:
    return f"{at / (outcome.lasts or 1.0) * 100:.2f}%"


def _draw_background(kind: str) -> Markup:
    return tag("rect", width=6, height=6, class_=f"{kind}-ground")


_TILE: dict[str, str | float] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
_MIDDLE: dict[str, str | float] = {"class_": "event-label", "text_anchor": "middle"}
_MARK: dict[str, str | float] = {"class_": "mark"}
