"""What came out of a rehearsal as text, JSON and a page."""

import json
import re
from html.parser import HTMLParser

import pytest
from msgspec import structs
from support.simulation.outcomes import broken, node, outcome, workload

from lastcall_lab.simulation.outcome import FaultCount, MachineState
from lastcall_lab.simulation.report.chart import chart_marks
from lastcall_lab.simulation.report.document import outcome_document, summary_document
from lastcall_lab.simulation.report.page import render_html
from lastcall_lab.simulation.report.text import coverage_text, failure_line, render_text
from lastcall_lab.simulation.report.text import summary_text as text_summary
from lastcall_lab.simulation.scenario import Verb
from lastcall_lab.simulation.tally import OutcomeTally


def rows(found):
    return {row.split()[0]: row for row in render_text(found).splitlines() if row.startswith("  ")}


def tally(*outcomes, verbs=()):
    found = OutcomeTally("reboot", verbs)
    for one in outcomes:
        found.add(one)
    return found


def many(count, eventful=0):
    calm = [node(f"node-{n}", (MachineState.ON, 600)) for n in range(count - eventful)]
    return (*calm, *(node(f"gone-{n}", (MachineState.ON, 60), (MachineState.OFF, 600)) for n in range(eventful)))


# -- text --------------------------------------------------------------------------------------------------------------


def test_the_first_line_says_whether_all_is_well():
    assert render_text(outcome()).splitlines()[0] == "reboot, seed 7: what was expected holds"
    first = render_text(broken()).splitlines()[0]
    assert first == "broken, seed 7: 2 of 2 expectations are broken and 1 violation of what must never happen"
    assert render_text(outcome(verdicts=())).splitlines()[0] == "reboot, seed 7: nothing was expected"


def test_expectations_are_told_as_they_were_said():
    assert "  yes  web is never down: 0s\n" in render_text(outcome())
    assert "  NO   db is down for at most 30s: 9m\n" in render_text(broken())


def test_a_short_state_is_not_hidden():
    bar = rows(outcome())["node-2"]
    assert re.search(r"-\\ +/+-", bar), bar
    assert bar.rstrip().endswith("off 1m")


def test_workloads_over_time():
    assert re.search(r"web +#{6}:::#{51}", render_text(outcome()))
    assert re.search(r"db +#{6}:{4}!{50}", render_text(broken()))


def test_how_long_a_workload_was_down():
    """A StatefulSet is down while one of its pods is; the longest outage and the degraded time stand beside that."""
    assert re.search(r"^  db +9m +8m20s +30s +- +4 of 1000$", render_text(broken()), re.MULTILINE), render_text(
        broken()
    )
    cells = re.findall(r"<td [^>]*>([^<]*)</td>", render_html(broken()).partition("<h2>Workloads</h2>")[2])
    assert cells[:5] == ["StatefulSet", "0 of 3", "9m", "8m20s", "30s"]


def test_it_fits_and_nothing_steers_the_terminal():
    told = render_text(broken())
    assert max(map(len, told.splitlines())) <= 100
    assert "\x1b" not in told


def test_it_fits_a_terminal_of_80_columns():
    told = render_text(broken(), 80)
    assert max(map(len, told.splitlines())) <= 80
    assert re.search(r"db +#{4}:{2,3}!+", told), told


def test_a_long_name_has_room_or_says_that_it_is_cut():
    names = "ip-10-0-17-203.eu-west-1.comp", "gke-main-default-pool-1b2c3d4e-x9zq.internal"
    long = outcome(nodes=tuple(node(name, (MachineState.ON, 600)) for name in names))
    assert f"  {names[0]} " in render_text(long)
    assert f"  {names[1][:28]}.. " in render_text(long)
    assert f"  {names[0][:16]}.. " in render_text(long, 80)


def test_the_legend_has_the_states_that_occur():
    told = render_text(outcome(nodes=many(3)))
    assert "\nmachines: - on\n" in told
    assert "going down" in render_text(outcome())


def test_of_many_machines_those_that_were_always_on_are_counted():
    told = render_text(outcome(nodes=many(100, 2)))
    assert "gone-1" in told
    assert "node-50" not in told
    assert "98 machines more, on all the time" in told


def test_faults_are_summed():
    assert "45 x late watch event: WATCH 9; WATCH 8" in render_text(broken())
    assert "and 3 more steps" in render_text(broken())


def test_one_line_for_each_that_failed():
    assert failure_line(broken()) == (
        "seed 7: db is down for at most 30s: 9m; db loses no write: 4 writes; "
        "no volume written by two: pv-1: two writers (node-1, node-2)"
    )
    [once] = broken().violations
    assert failure_line(structs.replace(broken(), verdicts=(), violations=(once, once, once))) == (
        "seed 7: no volume written by two: pv-1: two writers (node-1, node-2) (and 2 more)"
    )
    hint = "--seed 7 shows the first, and with --shrink as short as can be"
    assert text_summary(tally(outcome(), broken())) == f"reboot: 2 seeds, 1 failed; {hint}"
    assert text_summary(tally(outcome())) == "reboot: 1 seed, all is well in each"


def test_what_has_struck_over_many_seeds():
    told = coverage_text(tally(outcome(), broken(), verbs=[Verb.WATCH_LATE, Verb.HANG]))
    assert told.startswith(
        "\nFaults that struck in 2 seeds\n       45 x late watch event, in 1 seed: WATCH 9 (9), WATCH 8 (8)"
    )
    assert told.endswith("\n  never: hang\n")
    many = tuple(FaultCount(kind="hang", step=f"step {n}", count=20 - n) for n in range(14))
    assert "step 9 (11) and 4 more steps\n" in coverage_text(tally(outcome(faults=many)))
    assert max(map(len, told.splitlines())) <= 100
    assert coverage_text(tally(broken(), verbs=[Verb.WATCH_LATE])).endswith("\n  every fault has struck\n")


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_the_document():
    told = json.loads(json.dumps(outcome_document(broken())))
    assert list(told)[:3] == ["scenario", "seed", "good"]
    assert told["good"] is False
    assert told["verdicts"][0] == {"expectation": "db is down for at most 30s", "holds": False, "measured": "9m"}
    assert told["workloads"][0]["writesLost"] == 4
    assert told["nodes"][1]["spans"][1] == {"begin": 60, "end": 66, "state": "going down"}


def test_the_summary_has_what_was_broken():
    told = summary_document(tally(outcome(), broken()))
    assert (told["seeds"], told["failures"]) == (2, 1)
    assert [one["seed"] for one in told["failed"]] == ["7"]
    assert len(told["failed"][0]["verdicts"]) == 2
    assert told["faults"][0]["count"] == 45
    assert told["neverStruck"] == []


# -- the page ----------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Every tag is closed; what is loaded from elsewhere is noted."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loaded, self.tags = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loaded += [value for name, value in attributes if name in ("src", "href", "xlink:href")]
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_of_many_workloads_those_to_which_nothing_happened_are_counted():
    calm = [workload(f"calm-{n}", degraded=0.0, requests_lost=0.0) for n in range(99)]
    found = outcome(workloads=(*calm, workload("web")))
    assert "99 workloads more, to which nothing happened" in render_text(found)
    assert "99 workloads more, to which nothing happened" in render_html(found)
    assert "calm-7" not in render_text(found)
    assert "calm-7" not in render_html(found)
    assert len(outcome_document(found)["workloads"]) == 100


@pytest.mark.parametrize("found", [outcome(), broken(), outcome(nodes=many(100, 2)), outcome(lasts=0.0, workloads=())])
def test_the_page_is_whole_and_loads_nothing(found):
    page = Page(render_html(found))
    assert page.open == []
    assert page.loaded == []
    assert "script" not in page.tags


def test_the_page_escapes():
    assert "<script>" not in render_html(broken())
    assert "&lt;script&gt;" in render_html(broken())


def test_the_page_draws_states_and_service():
    page = render_html(broken())
    for kind in ("going-down", "off", "starting", "serve", "short", "none"):
        assert re.search(rf'<rect [^>]*class="{kind}"', page), kind


def test_events_at_about_the_same_time_share_a_mark():
    [first] = chart_marks(outcome())
    assert (first.at, first.label) == (60, "1")
    event = outcome().lines[0]
    close = outcome(lines=(event, type(event)(at=65, topic=event.topic, text="hang node-1")))
    [both] = chart_marks(close)
    assert both.label == "1-2"
    assert both.words == "1m: reboot node-2; 1m5s: hang node-1"
