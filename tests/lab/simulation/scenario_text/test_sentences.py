"""Events and expectations as sentences, both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall_lab.simulation.scenario import Expectation, Goal, ScenarioEvent, Verb
from lastcall_lab.simulation.scenario_text.sentence_forms import GAPS
from lastcall_lab.simulation.scenario_text.sentences import (
    EVENTS,
    EXPECTATIONS,
    event_sentence,
    expectation_sentence,
    parse_event,
    parse_expectation,
)

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
small_words = {"for", "with", "one", "off", "out", "by", "and", "after", "of", "within", "then"}
labels = st.tuples(names, names).filter(lambda pair: not small_words & set(pair)).map(" ".join)
selectors = st.one_of(
    names.filter(lambda one: one not in small_words), labels, st.sampled_from(["all nodes", "half of the nodes"])
)
durations = st.integers(0, 10**7).map(lambda milliseconds: milliseconds / 1000)

VALUES = {
    "nodes": st.lists(selectors, min_size=1, max_size=4).map(tuple),
    "lasts": durations,
    "up_to": durations,
    "by": st.integers(-(10**7), 10**7).map(lambda milliseconds: milliseconds / 1000),
    "part": st.one_of(st.integers(0, 100).map(lambda percent: percent / 100), st.floats(0, 1)),
    "number": st.integers(1, 10**6).map(float),
    "other": names,
    "on_timeout": st.sampled_from(["stop", "delete", "force"]),
    "right": st.sampled_from(["create pods/eviction", "watch pods", "update leases"]),
    "surge": st.booleans(),
    "subject": st.one_of(st.just(""), names),
}


@st.composite
def spoken(draw, forms):
    """The meaning and the fields of something that one of the forms says, with what may be left out or not."""
    form = draw(st.sampled_from(forms))
    fields = {}
    for optional, part in form._split_parts():
        gaps = [gap for gap in GAPS if "{" + gap + "}" in part]
        if not optional or draw(st.booleans()):
            fields |= {form.gaps.get(gap, gap): draw(VALUES[gap]) for gap in gaps}
    return form.means, fields


@given(spoken(EVENTS), durations)
def test_every_event_reads_back_as_itself(said, at):
    verb, fields = said
    event = ScenarioEvent(at=at, verb=verb, **fields)
    assert parse_event(event_sentence(event), at) == event


@given(spoken(EXPECTATIONS))
def test_every_expectation_reads_back_as_itself(said):
    goal, fields = said
    expectation = Expectation(goal=goal, **fields)
    assert parse_expectation(expectation_sentence(expectation)) == expectation


def test_every_verb_and_every_goal_can_be_said():
    assert {form.means for form in EVENTS} == set(Verb)
    assert {form.means for form in EXPECTATIONS} == set(Goal)


@pytest.mark.parametrize(
    ("sentence", "event"),
    [
        ("reboot node-1 for 45s", ScenarioEvent(at=1, verb=Verb.REBOOT, nodes=("node-1",), lasts=45)),
        ("shut down node-2", ScenarioEvent(at=1, verb=Verb.SHUT_DOWN, nodes=("node-2",))),
        ("cancel the shutdown of node-1", ScenarioEvent(at=1, verb=Verb.CANCEL, nodes=("node-1",))),
        ("cut the power of rack b for 10m", ScenarioEvent(at=1, verb=Verb.POWER_CUT, nodes=("rack b",), lasts=600)),
        (
            "cut node-3 off from the control plane for 2m",
            ScenarioEvent(at=1, verb=Verb.PARTITION, nodes=("node-3",), lasts=120),
        ),
        ("reclaim node-1 with 2m notice", ScenarioEvent(at=1, verb=Verb.SPOT, nodes=("node-1",), lasts=120)),
        (
            "reboot all nodes one after the other, 2 at a time",
            ScenarioEvent(at=1, verb=Verb.ROLL, nodes=("all nodes",), amount=2),
        ),
        ("drain node-1, node-2 and rack b", ScenarioEvent(at=1, verb=Verb.DRAIN, nodes=("node-1", "node-2", "rack b"))),
        ("drain node-1 with lastcall", ScenarioEvent(at=1, verb=Verb.LASTCALL_DRAIN, nodes=("node-1",))),
        (
            "drain node-1 and rack b with lastcall within 5m, then delete",
            ScenarioEvent(at=1, verb=Verb.LASTCALL_DRAIN, nodes=("node-1", "rack b"), amount=300, on_timeout="delete"),
        ),
        (
            "drain node-1 with lastcall, with surge",
            ScenarioEvent(at=1, verb=Verb.LASTCALL_DRAIN, nodes=("node-1",), surge=True),
        ),
        (
            "take the right to create pods/eviction from the drains for 5s",
            ScenarioEvent(at=1, verb=Verb.TAKE_RIGHT, right="create pods/eviction", lasts=5),
        ),
        ("kill the drains after 30 steps for 5s", ScenarioEvent(at=1, verb=Verb.KILL_DRAIN, amount=30, lasts=5)),
        ("uncordon node-1", ScenarioEvent(at=1, verb=Verb.UNCORDON, nodes=("node-1",))),
        ("stop the API server for 2m", ScenarioEvent(at=1, verb=Verb.API_DOWN, lasts=120)),
        ("refuse 20% of requests for 1m", ScenarioEvent(at=1, verb=Verb.API_ERRORS, amount=0.2, lasts=60)),
        ("delay watches by up to 3s for 2m", ScenarioEvent(at=1, verb=Verb.WATCH_LATE, amount=3, lasts=120)),
        (
            "kill the agent of node-1 after 37 steps",
            ScenarioEvent(at=1, verb=Verb.KILL_AGENT, nodes=("node-1",), amount=37),
        ),
        (
            "kill the agent of node-1 after 1 step",
            ScenarioEvent(at=1, verb=Verb.KILL_AGENT, nodes=("node-1",), amount=1),
        ),
        ("step the clock of node-2 by -30s", ScenarioEvent(at=1, verb=Verb.CLOCK_STEP, nodes=("node-2",), amount=-30)),
    ],
)
def test_events(sentence, event):
    assert parse_event(sentence, 1) == event
    assert event_sentence(event) == sentence


@pytest.mark.parametrize(
    ("sentence", "expectation"),
    [
        ("web loses no request", Expectation(goal=Goal.REQUESTS_LOST, subject="web")),
        ("web loses at most 20 requests", Expectation(goal=Goal.REQUESTS_LOST, subject="web", limit=20)),
        ("web loses at most 1 request", Expectation(goal=Goal.REQUESTS_LOST, subject="web", limit=1)),
        ("db is down for at most 30s", Expectation(goal=Goal.DOWN_FOR, subject="db", limit=30)),
        ("db is never down", Expectation(goal=Goal.DOWN_FOR, subject="db")),
        ("db loses no write", Expectation(goal=Goal.WRITES_LOST, subject="db")),
        ("every workload runs at the end", Expectation(goal=Goal.RUNS)),
        ("db is stuck at the end", Expectation(goal=Goal.STUCK, subject="db")),
        ("every pod of web ends before the power goes", Expectation(goal=Goal.ENDED_IN_TIME, subject="web")),
        ("every pod of web ends by itself", Expectation(goal=Goal.ENDED_BY_ITSELF, subject="web")),
        ("every pod ends by itself", Expectation(goal=Goal.ENDED_BY_ITSELF)),
        ("every pod ends before the power goes", Expectation(goal=Goal.ENDED_IN_TIME)),
    ],
)
def test_expectations(sentence, expectation):
    assert parse_expectation(sentence) == expectation
    assert expectation_sentence(expectation) == sentence


def test_spaces_and_a_full_stop_do_not_matter():
    assert parse_event("  reboot   node-1 for 45s. ", 1) == parse_event("reboot node-1 for 45s", 1)


@pytest.mark.parametrize(
    ("sentence", "near"),
    [
        ("rebot node-1", "reboot NODES[ for DURATION]"),
        ("cut power of node-1", "cut the power of NODES[ for DURATION]"),
        ("kill agent of node-1", "kill the agent of NODES[ after NUMBER steps][ for DURATION]"),
        ("node-1 shut down", "shut down NODES[ for DURATION]"),
        ("", "drain NODES[ for DURATION]"),
    ],
)
def test_what_is_not_understood_is_answered_by_what_is_most_like_it(sentence, near):
    with pytest.raises(ValueError, match="is not understood") as error:
        parse_event(sentence, 1)
    assert f'"{near}"' in str(error.value) or not sentence


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("refuse 200% of requests", "200% is more than 100%"),
        ("stop the API server for 2x", 'unknown unit "x"'),
    ],
)
def test_what_makes_no_sense_is_told(sentence, rule):
    with pytest.raises(ValueError, match=rule):
        parse_event(sentence, 1)
