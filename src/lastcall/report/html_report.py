"""A timeline as one self-contained HTML file, without scripts and external resources."""

from collections.abc import Sequence
from typing import NamedTuple

from lastcall.model.shutdown import ContainerRecord, PodOutcome, ShutdownOutcome
from lastcall.report import svg_chart
from lastcall.report.formatting import format_duration, format_utc
from lastcall.report.markup import Markup, join, tag
from lastcall.report.style import CSS
from lastcall.report.timeline import Lane, PhaseRow, PodRow, Timeline

_LEGEND = (
    ("window", "time that the phase was given, and what it used"),
    ("wait", "waits for its turn"),
    ("hook", "preStop hook"),
    ("term", "SIGTERM, and what the process does after it"),
    ("kill", "SIGKILL, until it is confirmed"),
    ("ended", "ended"),
    ("open", "its end was not seen"),
    ("lost", "cut short: time that it asked for and did not have"),
    ("limit", "deadline: the lock is released then"),
)
_COLUMNS = ("Container", "preStop", "SIGTERM", "SIGKILL", "Ended", "Exit code", "Grace", "Result")


class Chapter(NamedTuple):
    """A section below the shutdown: ``rows`` are seconds with an event each, ``results`` are sentences."""

    title: str
    rows: Sequence[tuple[float, str]]
    results: Sequence[str]


def render_html(timeline: Timeline, *chapters: Chapter) -> str:
    """The complete HTML file."""
    record = timeline.record
    title = f"Shutdown of {record.node}, {format_utc(record.wall)}"
    body = tag(
        "body",
        svg_chart.fill_patterns(),
        tag(
            "main",
            _page_summary(timeline),
            _chart_section(timeline),
            _legend_list(),
            _container_table(timeline),
            _notes_section(timeline),
            *map(_chapter_section, chapters),
        ),
    )
    return "<!DOCTYPE html>\n" + tag("html", _html_head(title), body, lang="en") + "\n"


def _html_head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", title),
        tag("style", Markup(CSS)),
    )


def _page_summary(timeline: Timeline) -> Markup:
    record = timeline.record
    how = f" ({record.how})" if record.how else ""
    good = record.outcome is ShutdownOutcome.COMPLETED
    outcome = tag("span", record.outcome.value, class_=None if good else "alarm")
    facts = [
        tag("div", tag("dt", label), tag("dd", value), class_="wide" if len(value) > 30 else None)
        for label, value in timeline.facts
    ]
    return join(
        tag("h1", f"Shutdown of {record.node}: ", outcome),
        tag("p", f"{record.id}, began {format_utc(record.wall)}{how}", class_="soft"),
        tag("dl", *facts, class_="facts"),
    )


def _chart_section(timeline: Timeline) -> Markup:
    axis = tag("div", tag("div", svg_chart.draw_axis(timeline), class_="bars"), class_="row axis")
    rows = [row for phase in timeline.phases for row in _phase_rows(timeline, phase)]
    beyond = Markup("")
    if not timeline.shows_deadline:
        beyond = tag("p", f"The deadline, {format_duration(timeline.deadline)}, is beyond this chart.", class_="soft")
    chart = tag("div", svg_chart.draw_backdrop(timeline), axis, *rows, class_="chart")
    return join(tag("h2", "Timeline"), beyond, chart)


def _phase_rows(timeline: Timeline, phase: PhaseRow) -> list[Markup]:
    name = tag("div", phase.title, " ", tag("small", phase.description), class_="name")
    bars = tag("div", svg_chart.draw_phase_bar(timeline, phase), class_="bars")
    return [tag("div", name, bars, class_="row phase"), *(_pod_row(timeline, pod) for pod in phase.pods)]


def _pod_row(timeline: Timeline, pod: PodRow) -> Markup:
    remarks = [tag("div", remark, class_="remark") for remark in pod.remarks]
    return tag(
        "div",
        tag("div", tag("small", f"{pod.record.namespace}/"), pod.record.name, _lane_names(pod), class_="name"),
        tag("div", svg_chart.draw_pod_bars(timeline, pod), class_="bars"),
        tag("div", _result_tag(pod), class_="result"),
        *remarks,
        class_="row",
    )


def _lane_names(pod: PodRow) -> Markup:
    """The names of the containers from top to bottom, if there are several."""
    if len(pod.lanes) < 2:
        return Markup("")
    return tag("small", ", ".join(lane.record.name for lane in pod.lanes), class_="lanes")


def _result_tag(pod: PodRow) -> Markup:
    fine = pod.record.outcome in (PodOutcome.GRACEFUL, PodOutcome.OBSERVED)
    return tag("span", f"{pod.duration_text} {pod.outcome_text}".strip(), class_=None if fine else "alarm")


def _legend_list() -> Markup:
    return tag("ul", *(tag("li", svg_chart.legend_sample(kind), words) for kind, words in _LEGEND), class_="legend")


def _container_table(timeline: Timeline) -> Markup:
    head = tag("tr", tag("th", "Pod", scope="col"), *(tag("th", label, scope="col") for label in _COLUMNS))
    rows = [_container_row(pod, lane) for phase in timeline.phases for pod in phase.pods for lane in pod.lanes]
    about = tag("p", "Seconds since the shutdown began.", class_="soft")
    return join(tag("h2", "Containers"), about, tag("table", tag("thead", head), tag("tbody", *rows)))


def _container_row(pod: PodRow, lane: Lane) -> Markup:
    container = lane.record
    grace = format_duration(pod.record.grace)
    if pod.record.was_cut_short:
        grace += f" of {format_duration(pod.record.asked)}"
    code = "" if container.exit_code is None else str(container.exit_code)
    times = (_offset_text(container.term), _offset_text(container.kill), _offset_text(container.ended))
    cells = (container.name, _hook_cell(container), *times, code, grace, "")
    cells_markup = [
        tag("td", cell, data_label=label, class_="wide" if label in ("Container", "preStop") else "number")
        for label, cell in zip(_COLUMNS[:-1], cells[:-1], strict=True)
    ]
    return tag(
        "tr", tag("th", pod.name, scope="row"), *cells_markup, tag("td", _result_tag(pod), data_label=_COLUMNS[-1])
    )


def _hook_cell(container: ContainerRecord) -> str:
    if container.hook_started is None:
        return ""
    times = f"{_offset_text(container.hook_started)} to {_offset_text(container.hook_ended) or '?'}"
    failed = f", failed{': ' if container.hook_message else ''}{container.hook_message}"
    return times + (failed if container.hook_ok is False else "")


def _notes_section(timeline: Timeline) -> Markup:
    if not timeline.notes:
        return Markup("")
    rows = [
        tag("tr", tag("td", f"{_offset_text(note.at)} s", class_="number"), tag("td", note.text))
        for note in timeline.notes
    ]
    return join(tag("h2", "Notes"), tag("table", tag("tbody", *rows), class_="notes"))


def _chapter_section(chapter: Chapter) -> Markup:
    rows = [tag("tr", tag("td", f"{at:.2f} s", class_="number"), tag("td", what)) for at, what in chapter.rows]
    results = [tag("p", result) for result in chapter.results]
    return join(tag("h2", chapter.title), tag("table", tag("tbody", *rows), class_="notes"), *results)


def _offset_text(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3f}"
