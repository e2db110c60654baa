"""The timeline of a shutdown as text and as HTML, and ``lastcall report``."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.agents import shutdown_records

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.cli.report import command
from lastcall.errors import InvalidInput, LastcallError, RefusedForSafety
from lastcall.model.foreign_text import plain_text
from lastcall.model.node_shutdown_export import to_node_shutdown
from lastcall.model.shutdown import (
    ApplicationWaited,
    ContainerSignalled,
    PodOutcome,
    PodUnmounted,
    ShutdownStarted,
    to_line,
)
from lastcall.model.shutdown_fold import fold_events
from lastcall.report.formatting import format_duration
from lastcall.report.html_report import Chapter, render_html
from lastcall.report.markup import Markup, join, tag
from lastcall.report.text_report import render_text
from lastcall.report.timeline import Activity, build_timeline

SCRIPTS = ("dozen", "cancelled", "crowd", "observed", "hostile")


def of(name):
    return build_timeline(fold_events(getattr(shutdown_records, name)()))


def row(chart, name):
    return next(pod for phase in chart.phases for pod in phase.pods if pod.record.name == name)


# -- the timeline ------------------------------------------------------------------------------------------------------


def test_what_a_container_did_is_in_spans():
    queue, log_agent = row(of("dozen"), "worker-0").lanes
    assert [span.doing for span in queue.spans] == [Activity.PRE_STOP, Activity.TERM, Activity.KILL]
    assert [span.end for span in queue.spans] == pytest.approx([14.2, 19.7, 19.75])
    assert [span.doing for span in log_agent.spans] == [Activity.WAIT, Activity.TERM]
    assert not any(span.open for lane in (queue, log_agent) for span in lane.spans)


def test_what_was_not_seen_to_end_is_open():
    chart = of("cancelled")
    (span,) = row(chart, "web-2").lanes[0].spans
    assert span.open
    assert span.end == chart.last
    kill = row(of("dozen"), "nfs-reader-0").lanes[0].spans[-1]
    assert (kill.doing, kill.open) == (Activity.KILL, True)


def test_a_stop_signal_of_its_own_is_named():
    events = [
        structs.replace(event, stop_signal="SIGUSR1")
        if isinstance(event, ContainerSignalled) and event.signal == "TERM" and event.container == "queue"
        else event
        for event in shutdown_records.dozen()
    ]
    worker = row(build_timeline(fold_events(events)), "worker-0")
    assert "SIGUSR1" in worker.lanes[0].description
    assert "SIGTERM" not in worker.lanes[0].description
    assert "SIGTERM" in worker.lanes[1].description
    assert "queue got SIGUSR1 instead of SIGTERM" in worker.remarks
    assert not any("SIGUSR1" in remark for remark in row(of("dozen"), "worker-0").remarks)


@pytest.mark.parametrize("outcome", [PodOutcome.GRACEFUL, PodOutcome.KILLED])
def test_a_pod_that_ended_while_no_agent_ran_is_told_as_such(outcome):
    """Its outcome alone would contradict the chart, which does not know its end."""
    script = shutdown_records.Script((0, 20))
    script.phase(0, 0.0, 9.0, seconds=20)
    script.pod("db", 0, 0.0, grace=20, containers={"main": {"term": 0.1, "over": 9.0}}, outcome=outcome)
    script.pod("web", 0, 0.0, grace=20, containers={"main": {"term": 0.1, "ended": 2.0}})
    chart = build_timeline(fold_events(script.events()))
    why = "ended while no agent ran: the time is not known"
    assert (row(chart, "db").remarks, row(chart, "web").remarks) == ((why,), ())
    assert f"! {why}" in " ".join(render_text(chart).split())
    assert Reader(render_html(chart)).text.count(why) == 1


@pytest.mark.parametrize(("unmounted", "remarks"), [(2.01, ()), (2.4, ("volumes unmounted 400ms after its end",))])
def test_a_pods_volumes_are_told_if_they_took_time(unmounted, remarks):
    script = shutdown_records.Script((0, 20))
    script.phase(0, 0.0, 9.0, seconds=20)
    script.pod("db", 0, 0.0, grace=20, containers={"main": {"term": 0.1, "ended": 2.0}})
    script.add(PodUnmounted, unmounted, uid="uid-db")
    assert row(build_timeline(fold_events(script.events())), "db").remarks == remarks


@pytest.mark.parametrize(
    ("waited", "remarks"),
    [
        ({"seconds": 0.02, "is_ready": True}, ()),
        ({"seconds": 2.5, "is_ready": True}, ("waited 2.5s for its application",)),
        (
            {"seconds": 10.0, "is_ready": False, "message": "1 of 3 members"},
            ("its application was not ready after 10s: 1 of 3 members",),
        ),
    ],
    ids=["at once", "later", "not in time"],
)
def test_what_came_of_the_wait_for_an_application_is_told(waited, remarks):
    script = shutdown_records.Script((0, 20))
    script.phase(0, 0.0, 19.0, seconds=20)
    script.pod("db", 0, 0.0, grace=20, containers={"main": {"term": 10.1, "ended": 12.0}})
    script.add(ApplicationWaited, 10.0, uid="uid-db", **waited)
    record = fold_events(script.events())
    assert row(build_timeline(record), "db").remarks == remarks
    [shown] = to_node_shutdown(record)["status"]["pods"]
    assert shown["applicationReady"] is waited["is_ready"]
    assert shown.get("applicationMessage") == waited.get("message")


def test_chapters_are_told_below_the_shutdown():
    chapter = Chapter("What came then", [(1.5, "NodeDead n1: <proved>")], ["none of them lost"])
    words = Reader(render_html(of("dozen"), chapter)).text
    told = ["Containers", "What came then", "1.50 s", "NodeDead n1: <proved>", "none of them lost"]
    places = [words.index(one) for one in told]
    assert places == sorted(places)


def test_the_facts_at_the_head():
    facts = dict(of("dozen").facts)
    assert facts == {
        "Asked for": "1m",
        "Granted": "45s, 15s less than asked for",
        "Took": "29s",
        "Left unused": "16s",
        "Longest pod": "shop/nfs-reader-0, 19.9s",
        "Pods": "12: 9 graceful, 2 killed, 1 unconfirmed, 2 of them cut short",
    }
    assert dict(of("cancelled").facts)["Granted"] == "unlimited"
    assert dict(of("cancelled").facts)["Cancelled after"] == "3.2s"
    assert dict(of("observed").facts)["Mode"] == "Observe: nothing was ended"
    assert "none was held" in dict(of("observed").facts)["Lock"]


def test_the_deadline_is_on_the_axis_unless_it_is_far_off():
    assert of("dozen").shows_deadline
    assert not of("cancelled").shows_deadline
    assert of("cancelled").extent < 4


@given(st.floats(0.001, 500_000), st.integers(1, 12))
def test_the_axis_has_few_ticks_within_it(last, most):
    chart = of("dozen")
    chart = type(chart)(**{**{name: getattr(chart, name) for name in chart.__dataclass_fields__}, "extent": last})
    ticks = chart.ticks(most)
    assert ticks[0] == 0
    assert len(ticks) <= most + 1
    assert ticks[-1] <= last


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0, "0s"), (0.0124, "12ms"), (3.44, "3.4s"), (59.96, "1m"), (90, "1m30s"), (3600, "1h"), (3660, "1h1m")),
        *((7205, "2h0m5s"), (600, "10m"), (0.9999, "1s"), (100.4, "1m40s")),
    ],
)
def test_durations_are_as_precise_as_people_want_them(seconds, words):
    assert format_duration(seconds) == words


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_fits_100_columns_and_names_every_pod(name):
    drawn = render_text(of(name))
    assert drawn.endswith("\n")
    assert max(len(line) for line in drawn.splitlines()) <= 100
    joined = re.sub(r"\s+", "", drawn)
    for phase in of(name).phases:
        for pod in phase.pods:
            assert pod.name in joined


def test_text_draws_what_happened():
    lines = render_text(of("dozen")).splitlines()
    bars = {line.split()[0]: line.split()[1] for line in lines if line.startswith("  shop/") and len(line.split()) > 2}
    assert re.fullmatch(r"p+=+\|", bars["shop/web-7d9c5b8f6d-2xk2p"])
    assert re.fullmatch(r"=+X\|", bars["shop/stubborn-5f6b"])
    assert re.fullmatch(r"=+X\?", bars["shop/nfs-reader-0"])
    assert any(re.fullmatch(r"    - log-agent +\.+\|", line) for line in lines)
    assert "      ! cut short: had 20s of 2m" in lines
    assert "      ! preStop of redis failed: exit code 1: save failed" in lines
    axis = next(line for line in lines if "+--" in line)
    assert axis.rstrip("-")[-1] == "!"


@pytest.mark.parametrize("name", SCRIPTS)
def test_text_steers_no_terminal(name):
    assert all(character.isprintable() or character == "\n" for character in render_text(of(name)))


@given(st.text())
def test_foreign_text_becomes_one_printable_line(foreign):
    assert plain_text(foreign).isprintable()
    assert len(plain_text(foreign)) == len(foreign)


# -- HTML --------------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Elements, attributes and visible text as a browser's parser sees them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value) for key, value in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_is_well_formed_and_loads_nothing(name):
    page = render_html(of(name))
    root = ET.fromstring(page)
    assert len(root.findall(".//svg")) > 2
    read = Reader(page)
    assert "script" not in read.tags
    assert {"link", "img", "iframe", "object", "use", "image"}.isdisjoint(read.tags)
    assert not re.search(r"https?:|@import|src=|url\((?!#)", page.replace("&lt;img src=&quot;", ""))
    assert not [found for found in read.attributes if found[1] in ("href", "style") or found[1].startswith("on")]
    targets = {value for _, key, value in read.attributes if key == "id"}
    assert set(re.findall(r"url\(#(\w+)\)", page)) <= targets


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_names_every_pod_and_says_every_bar_in_words(name):
    chart = of(name)
    page = render_html(chart)
    words = Reader(page).text
    titles = [title.text for title in ET.fromstring(page).iterfind(".//svg[@role='img']/title")]
    for phase in chart.phases:
        for pod in phase.pods:
            assert plain_text(pod.record.name) in words
            assert any(title.startswith(f"{pod.name}: ") for title in titles)
    images = ET.fromstring(page).findall(".//svg")
    assert all(
        image.get("role") == "img" or image.get("aria-hidden") or image.get("class") == "mark" for image in images
    )


def test_what_others_wrote_stays_text():
    page = render_html(of("hostile"))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\x00" not in page
    assert "<script>alert(2)</script>" in Reader(page).text


def test_the_page_draws_the_marks():
    page = ET.fromstring(render_html(of("dozen")))
    chart = page.find(".//div[@class='chart']")
    assert chart is not None
    counts = {
        kind: len(chart.findall(f".//*[@class='{kind}']")) for kind in ("kill-mark", "lost", "open-mark", "window")
    }
    assert counts == {"kill-mark": 3, "lost": 2, "open-mark": 1, "window": 3}
    assert len(chart.findall(".//path[@class='term-mark']")) == 13
    assert len(chart.findall(".//line[@class='limit']")) == 1


def test_no_bar_leaves_the_chart():
    for name in SCRIPTS:
        for rect in ET.fromstring(render_html(of(name))).iterfind(".//div[@class='bars']//rect"):
            x, width = (float(rect.get(key, "").rstrip("%")) for key in ("x", "width"))
            assert x >= 0
            assert x + width <= 100.02


@given(st.text(), st.text())
def test_an_element_escapes_all_that_is_no_markup(words, value):
    element = ET.fromstring(tag("p", words, tag("b", words), class_=value))
    assert element.get("class") == plain_text(value)
    assert "".join(element.itertext()) == plain_text(words) * 2


def test_markup_is_not_escaped_again():
    assert join(Markup("<b>"), "<b>") == "<b>&lt;b&gt;"


# -- the command -------------------------------------------------------------------------------------------------------


def journalled(state_dir, name, *, boot=None, cut=None):
    events = getattr(shutdown_records, name)()[:cut]
    if boot:
        events[0] = msgspec.structs.replace(events[0], boot_id=boot)
    assert isinstance(events[0], ShutdownStarted)
    journal = JournalFiles(state_dir).create(events[0].id)
    for event in events:
        journal.append(to_line(event))
    return events[0].id


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)


def test_the_newest_is_reported_unless_one_is_named(tmp_path):
    older = journalled(tmp_path, "cancelled")
    (tmp_path / "shutdowns" / f"{older}.jsonl").touch()
    newer = journalled(tmp_path, "dozen")
    assert f"Shutdown {newer} of node worker-3: Completed" in run("--state-dir", tmp_path).output
    assert f"Shutdown {older} of node worker-3: Cancelled" in run(older, "--state-dir", tmp_path).output
    assert run("--list", "--state-dir", tmp_path).output == f"{newer}\n{older}\n"


def test_each_form_is_printed(tmp_path):
    journalled(tmp_path, "dozen")
    assert json.loads(run("-o", "json", "--state-dir", tmp_path).output)["kind"] == "NodeShutdown"
    page = run("-o", "html", "--state-dir", tmp_path).output
    assert page == render_html(of("dozen"))


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(LastcallError, match="no shutdown was journalled there yet") as error:
        run("--state-dir", tmp_path / "none")
    assert error.value.exit_code == 1
    assert run("--list", "--state-dir", tmp_path).output == ""


def test_an_unknown_id_is_answered_with_the_known_ones(tmp_path):
    known = journalled(tmp_path, "dozen")
    for wrong in ("nope", "../../etc/passwd"):
        with pytest.raises(InvalidInput, match=f"not in .*; known are {known}") as error:
            run(wrong, "--state-dir", tmp_path)
        assert error.value.exit_code == 2


def test_the_kubelets_directory_is_refused(tmp_path):
    (tmp_path / "cpu_manager_state").touch()
    with pytest.raises(RefusedForSafety):
        run("--state-dir", tmp_path)


def test_a_damaged_journal_is_told_as_far_as_it_is_whole(tmp_path):
    name = journalled(tmp_path, "dozen")
    path = tmp_path / "shutdowns" / f"{name}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:20], b"\0\0garbage\n", *lines[21:]]))
    told = run("--state-dir", tmp_path)
    assert f"{name}: line 21 of {len(lines)} cannot be read" in told.stderr
    assert "of node worker-3: Interrupted" in told.stdout
    path.write_bytes(b"garbage\n")
    with pytest.raises(LastcallError, match="a journal begins with the event Started"):
        run("--state-dir", tmp_path)


def test_what_broke_off_is_interrupted_only_if_that_boot_is_over(tmp_path):
    journalled(tmp_path, "cancelled", boot="another", cut=3)
    assert ": Interrupted" in run("--state-dir", tmp_path).output
    journalled(tmp_path, "dozen", boot=boot_id(), cut=10)
    assert ": Running" in run("--state-dir", tmp_path).output
