"""An outcome as one self-contained HTML file: no script, nothing loaded from anywhere."""

from collections.abc import Iterable, Sequence

from lastcall.report import style
from lastcall.report.formatting import count_text, format_duration
from lastcall.report.markup import Markup, join, tag
from lastcall_lab.simulation.outcome import RehearsalOutcome, TimelineTopic
from lastcall_lab.simulation.report import chart, findings
from lastcall_lab.simulation.report.style import CSS
from lastcall_lab.simulation.scenario_text.sentences import expectation_sentence

_LEGEND = (
    ("on", "on"),
    ("going-down", "going down"),
    ("off", "off"),
    ("starting", "starting"),
    ("cut-off", "cut off from the control plane"),
    ("no-storage", "cut off from the storage"),
    ("hung", "hung"),
    ("serve", "pods serve"),
    ("short", "fewer than are wanted"),
    ("none", "none"),
    ("wanted", "as many as are wanted"),
    ("lost-requests", "requests are lost"),
    ("event", "what the scenario lets happen"),
)
_COLUMNS = (
    "Kind",
    "Pods",
    "Down",
    "Longest outage",
    "Degraded",
    "Requests lost",
    "Writes lost",
    "Pods that ended badly",
)


def render_html(outcome: RehearsalOutcome) -> str:
    """The whole file."""
    sections = (
        _page_head,
        _expectation_section,
        _violation_section,
        _chart_section,
        _workload_section,
        _timeline_section,
        _fault_section,
    )
    body = tag("body", chart.fill_patterns(), tag("main", *(section(outcome) for section in sections)))
    return (
        "<!DOCTYPE html>\n"
        + tag("html", _meta_tags(f"{outcome.scenario}, seed {outcome.seed}"), body, lang="en")
        + "\n"
    )


def _meta_tags(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", title),
        tag("style", Markup(style.CSS + CSS)),
    )


def _page_head(outcome: RehearsalOutcome) -> Markup:
    headline = tag("span", findings.headline(outcome), class_=None if outcome.is_good else "alarm")
    facts = (
        ("Seed", outcome.seed),
        ("Lasted", format_duration(outcome.lasts)),
        ("Machines", str(len(outcome.nodes))),
        ("Pods at the end", str(sum(one.serving for one in outcome.workloads))),
    )
    return join(
        tag("h1", f"{outcome.scenario}: ", headline),
        tag("p", outcome.description, class_="soft"),
        tag("dl", *(tag("div", tag("dt", label), tag("dd", value)) for label, value in facts), class_="facts"),
    )


def _expectation_section(outcome: RehearsalOutcome) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", expectation_sentence(one.expectation), scope="row"),
            tag("td", "holds" if one.holds else "broken"),
            tag("td", one.measured, data_label="Measured"),
            class_=None if one.holds else "broken",
        )
        for one in outcome.verdicts
    ]
    return _table_section("What was expected", ("Expectation", "", "Measured"), rows)


def _violation_section(outcome: RehearsalOutcome) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", format_duration(one.at), class_="number"),
            tag("td", one.rule),
            tag("td", one.what),
            class_="broken",
        )
        for one in outcome.violations
    ]
    return _table_section("What must never happen, and did", ("When", "Promise", "How it was broken"), rows)


def _chart_section(outcome: RehearsalOutcome) -> Markup:
    shown, others = findings.shown_machines(outcome)
    machines = [
        _chart_lane(node.name, chart.draw_machine(outcome, node), findings.time_not_on(node, most=2)) for node in shown
    ]
    serving, calm = findings.shown_workloads(outcome)
    workloads = [
        _chart_lane(
            one.name, chart.draw_workload(outcome, one), f"{one.serving} of {count_text(one.wanted, 'pod')} at the end"
        )
        for one in serving
    ]
    told = "; ".join(filter(None, (others, calm)))
    axis = tag("div", tag("div", chart.draw_axis(outcome), class_="bars"), class_="row axis")
    return join(
        tag("h2", "Timeline"),
        tag("div", chart.draw_backdrop(outcome), axis, *machines, *workloads, class_="chart"),
        tag("p", told, class_="soft") if told else Markup(""),
        _chart_legend(outcome),
    )


def _chart_lane(name: str, bars: Markup, words: str) -> Markup:
    return tag(
        "div",
        tag("div", name, class_="name"),
        tag("div", bars, class_="bars"),
        tag("div", words, class_="result"),
        class_="row lane",
    )


def _chart_legend(outcome: RehearsalOutcome) -> Markup:
    """Of the states of machines only those that occur."""
    states = {span.state.value.replace(" ", "-") for node in outcome.nodes for span in node.spans}
    always = {"serve", "short", "none", "wanted", "lost-requests", "event"}
    found = [(kind, words) for kind, words in _LEGEND if kind in states | always]
    return tag("ul", *(tag("li", chart.legend_sample(kind), words) for kind, words in found), class_="legend")


def _workload_section(outcome: RehearsalOutcome) -> Markup:
    rows = []
    for one in findings.shown_workloads(outcome)[0]:
        cells = (
            one.kind.value,
            f"{one.serving} of {one.wanted}",
            findings.downtime_text(one),
            format_duration(one.longest_outage),
            format_duration(one.degraded),
            findings.request_text(one),
            findings.write_text(one),
            findings.pod_text(one),
        )
        told = [
            tag("td", cell, data_label=label, class_="wide" if label == _COLUMNS[-1] else "number")
            for label, cell in zip(_COLUMNS, cells, strict=True)
        ]
        rows.append(tag("tr", tag("th", one.name, scope="row"), *told))
    return _table_section("Workloads", ("Workload", *_COLUMNS), rows)


def _timeline_section(outcome: RehearsalOutcome) -> Markup:
    numbers = {id(line): number for number, line in enumerate(chart.event_lines(outcome), 1)}
    rows = [
        tag(
            "tr",
            tag("td", str(numbers.get(id(line), "")), class_="event-number"),
            tag("td", format_duration(line.at), class_="number"),
            tag("td", line.text, class_="wide most"),
            class_=line.topic.value if line.topic in (TimelineTopic.EVENT, TimelineTopic.VIOLATION) else None,
        )
        for line in outcome.lines
    ]
    return _table_section("What happened", ("", "When", "What"), rows)


def _fault_section(outcome: RehearsalOutcome) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", kind, scope="row"),
            tag("td", str(times), class_="number"),
            tag("td", steps, class_="wide most"),
        )
        for kind, times, steps in findings.fault_rows(outcome)
    ]
    return _table_section("Faults that struck", ("Fault", "Times", "What it hit"), rows)


def _table_section(title: str, columns: Sequence[str], rows: Iterable[Markup]) -> Markup:
    """Nothing if it has no rows."""
    body = list(rows)
    if not body:
        return Markup("")
    head = tag("tr", *(tag("th", label, scope="col") for label in columns))
    return join(tag("h2", title), tag("table", tag("thead", head), tag("tbody", *body)))
