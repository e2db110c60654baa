"""The chart as small SVG images, one per row.

Positions on the time axis are percentages; everything else is in pixels. A row therefore fits any width while its text,
marks and lines keep their size, without a script or a second drawing for phones.
"""

from lastcall.model.shutdown import PhaseEnd
from lastcall.report.formatting import format_duration
from lastcall.report.markup import Markup, join, tag
from lastcall.report.timeline import Activity, ActivitySpan, Lane, PhaseRow, PodRow, Timeline

LANE = 16
"""The height of one container's lane in pixels."""

_BAR = 10
_CLASSES = {Activity.WAIT: "wait", Activity.PRE_STOP: "hook", Activity.TERM: "term", Activity.KILL: "kill"}


def fill_patterns() -> Markup:
    """An invisible image that defines the fill patterns: hatches distinguish them without colour."""
    hook = tag("pattern", _pattern_ground("hook"), _pattern_stroke("M-1 7 7 -1"), id="hook", **_TILE)
    kill = tag("pattern", _pattern_ground("kill"), _pattern_stroke("M-1 7 7 -1M-1 -1 7 7"), id="kill", **_TILE)
    return tag("svg", tag("defs", hook, kill), width=0, height=0, class_="defs", aria_hidden="true")


def draw_axis(timeline: Timeline) -> Markup:
    """The labels of the time axis and the deadline."""
    ticks = [_tick_label(timeline, at) for at in timeline.ticks(5)]
    if timeline.shows_deadline:
        place = _axis_percent(timeline, timeline.deadline)
        # The deadline's label is in the upper line, above the axis labels, so that they never overlap.
        end = timeline.deadline > timeline.extent / 2
        words = f"deadline {format_duration(timeline.deadline)}"
        ticks.append(tag("text", words, x=place, y=11, class_="limit", text_anchor="end" if end else "start"))
    return tag("svg", *ticks, width="100%", height=30, aria_hidden="true")


def draw_backdrop(timeline: Timeline) -> Markup:
    """The vertical lines through all rows: the grid and the deadline."""
    lines = [_vertical_line(timeline, at, "grid") for at in timeline.ticks(5)]
    if timeline.shows_deadline:
        lines.append(_vertical_line(timeline, timeline.deadline, "limit"))
    return tag("svg", *lines, width="100%", height="100%", class_="backdrop", aria_hidden="true")


def draw_phase_bar(timeline: Timeline, phase: PhaseRow) -> Markup:
    """The phase's granted time, and the part of it that was used."""
    record = phase.record
    if record.started is None or record.end is PhaseEnd.EMPTY:
        return Markup("")
    over = timeline.last if record.ended is None else record.ended
    given = record.started + (record.given or 0.0)
    window = _time_rect(timeline, record.started, max(given, over), y=2, height=12, kind="window")
    return _row_image(
        f"{phase.title}: {phase.description}",
        16,
        window,
        _time_rect(timeline, record.started, over, y=5, height=6, kind="phase"),
    )


def draw_pod_bars(timeline: Timeline, pod: PodRow) -> Markup:
    """One lane per container; a dotted box shows the time that the pod asked for but did not get."""
    lanes = [_draw_lane(timeline, pod, lane, index * LANE) for index, lane in enumerate(pod.lanes)]
    words = "; ".join(lane.description for lane in pod.lanes) or pod.outcome_text
    return _row_image(f"{pod.name}: {words}", LANE * max(1, len(lanes)), *lanes)


def legend_sample(kind: str) -> Markup:
    """The symbol of a legend entry."""
    drawn = {
        "wait": tag("line", x1=2, x2=32, y1=8, y2=8, class_="wait"),
        "hook": tag("rect", x=2, y=3, width=30, height=_BAR, class_="hook"),
        "term": join(tag("rect", x=6, y=3, width=26, height=_BAR, class_="term"), _term_mark("6", 0)),
        "kill": join(tag("rect", x=12, y=3, width=14, height=_BAR, class_="kill"), _kill_mark("12", 0)),
        "ended": tag("line", x1=17, x2=17, y1=1, y2=15, class_="ended"),
        "open": _open_mark("8", 0),
        "lost": tag("rect", x=2, y=3, width=30, height=_BAR, class_="lost"),
        "window": tag("rect", x=2, y=2, width=30, height=12, class_="window"),
        "limit": tag("line", x1=17, x2=17, y1=0, y2=16, class_="limit"),
    }[kind]
    return tag("svg", drawn, width=36, height=16, aria_hidden="true")


def _draw_lane(timeline: Timeline, pod: PodRow, lane: Lane, top: int) -> Markup:
    parts = [_draw_span(timeline, span, top) for span in lane.spans]
    if pod.record.was_cut_short and lane.record.kill is not None:
        parts.insert(0, _time_rect(timeline, lane.record.kill, pod.wanted, y=top + 3, height=_BAR, kind="lost"))
    if lane.record.term is not None:
        parts.append(_term_mark(_axis_percent(timeline, lane.record.term), top))
    if lane.record.kill is not None:
        parts.append(_kill_mark(_axis_percent(timeline, lane.record.kill), top))
    if lane.record.ended is not None:
        place = _axis_percent(timeline, lane.record.ended)
        parts.append(tag("line", x1=place, x2=place, y1=top + 1, y2=top + 15, class_="ended"))
    elif lane.spans:
        parts.append(_open_mark(_axis_percent(timeline, lane.spans[-1].end), top))
    return join(*parts)


def _draw_span(timeline: Timeline, span: ActivitySpan, top: int) -> Markup:
    if span.doing is Activity.WAIT:
        start, end = _axis_percent(timeline, span.start), _axis_percent(timeline, span.end)
        return tag("line", x1=start, x2=end, y1=top + 8, y2=top + 8, class_="wait")
    return _time_rect(timeline, span.start, span.end, y=top + 3, height=_BAR, kind=_CLASSES[span.doing])


def _time_rect(timeline: Timeline, start: float, end: float, *, y: float, height: float, kind: str) -> Markup:
    end = min(end, timeline.extent)
    width = _axis_percent(timeline, max(0.0, end - start))
    return tag("rect", x=_axis_percent(timeline, start), y=y, width=width, height=height, class_=kind)


def _term_mark(place: str, top: int) -> Markup:
    """A small triangle above the bar."""
    return _place_mark(place, top, tag("path", d="M-4 0h8l-4 5z", class_="term-mark"))


def _kill_mark(place: str, top: int) -> Markup:
    """A cross on the bar."""
    return _place_mark(place, top, tag("path", d="M-5 3l10 10m0-10l-10 10", class_="kill-mark"))


def _open_mark(place: str, top: int) -> Markup:
    """An arrow: the end was not observed."""
    return _place_mark(place, top, tag("path", d="M6 3l6 5-6 5", class_="open-mark"))


def _place_mark(place: str, top: int, shape: Markup) -> Markup:
    return tag("svg", shape, x=place, y=top, class_="mark")


def _vertical_line(timeline: Timeline, at: float, kind: str) -> Markup:
    place = _axis_percent(timeline, at)
    return tag("line", x1=place, x2=place, y1=0, y2="100%", class_=kind)


def _tick_label(timeline: Timeline, at: float) -> Markup:
    anchor = "start" if at == 0 else "end" if at > timeline.extent * 0.93 else "middle"
    return tag("text", format_duration(at), x=_axis_percent(timeline, at), y=26, class_="tick", text_anchor=anchor)


def _row_image(words: str, height: int, *shapes: str) -> Markup:
    return tag("svg", tag("title", words), *shapes, width="100%", height=height, role="img")


def _axis_percent(timeline: Timeline, at: float) -> str:
    return f"{at / timeline.extent * 100:.2f}%"


def _pattern_ground(kind: str) -> Markup:
    return tag("rect", width=6, height=6, class_=f"{kind}-ground")


def _pattern_stroke(path: str) -> Markup:
    return tag("path", d=path, class_="hatch")


_TILE: dict[str, str | float] = {"width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
