"""An outcome as one self-contained HTML file: no script, nothing loaded from anywhere."""

from collections.abc import Iterable, Sequence

from lastcall.lab.simulation.outcome import Outcome, Topic
from lastcall.lab.simulation.report import chart, findings
from lastcall.lab.simulation.report.style import CSS
from lastcall.lab.simulation.wording.sentences import of_expectation
from lastcall.report import style
from lastcall.report.markup import Markup, join, tag
from lastcall.report.words import count, lasting

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


def html(outcome: Outcome) -> str:
    """The whole file."""
    sections = (_head, _expected, _violations, _chart, _workloads, _happened, _faults)
    body = tag("body", chart.patterns(), tag("main", *(section(outcome) for section in sections)))
    return "<!DOCTYPE html>\n" + tag("html", _meta(f"{outcome.scenario}, seed {outcome.seed}"), body, lang="en") + "\n"


def _meta(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("title", title),
        tag("style", Markup(style.CSS + CSS)),
    )


def _head(outcome: Outcome) -> Markup:
    headline = tag("span", findings.headline(outcome), class_=None if outcome.good else "alarm")
    facts = (
        ("Seed", outcome.seed),
        ("Lasted", lasting(outcome.lasts)),
        ("Machines", str(len(outcome.nodes))),
        ("Pods at the end", str(sum(one.serving for one in outcome.workloads))),
    )
    return join(
        tag("h1", f"{outcome.scenario}: ", headline),
        tag("p", outcome.description, class_="soft"),
        tag("dl", *(tag("div", tag("dt", label), tag("dd", value)) for label, value in facts), class_="facts"),
    )


def _expected(outcome: Outcome) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", of_expectation(one.expectation), scope="row"),
            tag("td", "holds" if one.holds else "broken"),
            tag("td", one.measured, data_label="Measured"),
            class_=None if one.holds else "broken",
        )
        for one in outcome.verdicts
    ]
    return _section("What was expected", ("Expectation", "", "Measured"), rows)


def _violations(outcome: Outcome) -> Markup:
    rows = [
        tag(
            "tr", tag("td", lasting(one.at), class_="number"), tag("td", one.rule), tag("td", one.what), class_="broken"
        )
        for one in outcome.violations
    ]
    return _section("What must never happen, and did", ("When", "Promise", "How it was broken"), rows)


def _chart(outcome: Outcome) -> Markup:
    shown, others = findings.machines(outcome)
    machines = [_lane(node.name, chart.machine(outcome, node), findings.not_on(node, most=2)) for node in shown]
    serving, calm = findings.workloads(outcome)
    workloads = [
        _lane(one.name, chart.workload(outcome, one), f"{one.serving} of {count(one.wanted, 'pod')} at the end")
        for one in serving
    ]
    told = "; ".join(filter(None, (others, calm)))
    axis = tag("div", tag("div", chart.axis(outcome), class_="bars"), class_="row axis")
    return join(
        tag("h2", "Timeline"),
        tag("div", chart.backdrop(outcome), axis, *machines, *workloads, class_="chart"),
        tag("p", told, class_="soft") if told else Markup(""),
        _legend(outcome),
    )


def _lane(name: str, bars: Markup, words: str) -> Markup:
    return tag(
        "div",
        tag("div", name, class_="name"),
        tag("div", bars, class_="bars"),
        tag("div", words, class_="result"),
        class_="row lane",
    )


def _legend(outcome: Outcome) -> Markup:
    """Of the states of machines only those that occur."""
    states = {span.state.value.replace(" ", "-") for node in outcome.nodes for span in node.spans}
    always = {"serve", "short", "none", "wanted", "lost-requests", "event"}
    found = [(kind, words) for kind, words in _LEGEND if kind in states | always]
    return tag("ul", *(tag("li", chart.sample(kind), words) for kind, words in found), class_="legend")


def _workloads(outcome: Outcome) -> Markup:
    rows = []
    for one in findings.workloads(outcome)[0]:
        cells = (
            one.kind.value,
            f"{one.serving} of {one.wanted}",
            findings.down(one),
            lasting(one.longest_outage),
            lasting(one.degraded),
            findings.requests(one),
            findings.writes(one),
            findings.pods(one),
        )
        told = [
            tag("td", cell, data_label=label, class_="wide" if label == _COLUMNS[-1] else "number")
            for label, cell in zip(_COLUMNS, cells, strict=True)
        ]
        rows.append(tag("tr", tag("th", one.name, scope="row"), *told))
    return _section("Workloads", ("Workload", *_COLUMNS), rows)


def _happened(outcome: Outcome) -> Markup:
    numbers = {id(line): number for number, line in enumerate(chart.events(outcome), 1)}
    rows = [
        tag(
            "tr",
            tag("td", str(numbers.get(id(line), "")), class_="event-number"),
            tag("td", lasting(line.at), class_="number"),
            tag("td", line.text, class_="wide most"),
            class_=line.topic.value if line.topic in (Topic.EVENT, Topic.VIOLATION) else None,
        )
        for line in outcome.lines
    ]
    return _section("What happened", ("", "When", "What"), rows)


def _faults(outcome: Outcome) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", kind, scope="row"),
            tag("td", str(times), class_="number"),
            tag("td", steps, class_="wide most"),
        )
        for kind, times, steps in findings.faults(outcome)
    ]
    return _section("Faults that struck", ("Fault", "Times", "What it hit"), rows)


def _section(title: str, columns: Sequence[str], rows: Iterable[Markup]) -> Markup:
    """Nothing if it has no rows."""
    body = list(rows)
    if not body:
        return Markup("")
    head = tag("tr", *(tag("th", label, scope="col") for label in columns))
    return join(tag("h2", title), tag("table", tag("thead", head), tag("tbody", *body)))
