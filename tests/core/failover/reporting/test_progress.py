"""What the controller's metrics count of its decisions, as tables: time in each step, and what has decided a verdict."""

from dataclasses import replace

import pytest
from support.failover.cases import AWAKE, BACK, DEAD, ENDING, NOW, PROVED, SUSPECT, SWITCHED, marked, node

from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.evidence.proofs import ProofKind
from lastcall.failover.reporting.controller_events import LeadershipEnded, NodeSettled, RemovalsRepeated, StepDecided
from lastcall.failover.reporting.progress import Progress, ProgressDelta, Ruling, list_rulings
from lastcall.failover.reporting.stages import Stage

SAID = {"held_until": NOW + 9, "gone": frozenset({"u1"})}
GOES_ON = replace(SUSPECT, node=marked(**SWITCHED))
EMPTY = {"pods": (), "attachments": ()}


def dead(case, *kinds, boot="a"):
    return replace(case, verdict=replace(DEAD, boot_id=boot, kinds=frozenset(kinds)))


def decided(case, name="n1"):
    step = decide(case, NOW)
    return StepDecided(node=name, uid="u", step=step, mark=case.mark, case=case)


def ruled(boot, *kinds, word=False):
    return Ruling(boot, frozenset(kinds), word)


FENCED = dead(PROVED, ProofKind.FENCE)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SUSPECT, []),
        (GOES_ON, []),
        (FENCED, [ruled("a", ProofKind.FENCE)]),
        (dead(GOES_ON, ProofKind.PERSON, ProofKind.WATCHDOG), [ruled("a", ProofKind.PERSON, ProofKind.WATCHDOG)]),
        (dead(SUSPECT, ProofKind.WATCHDOG), [ruled("a", ProofKind.WATCHDOG)]),
        (dead(replace(SUSPECT, **EMPTY), ProofKind.PERSON), [ruled("a", ProofKind.PERSON)]),
        (replace(SUSPECT, **SAID), [ruled("a", ProofKind.LAST_WORD, word=True)]),
        (replace(SUSPECT, **SAID, pods=(ENDING,)), [ruled("a", ProofKind.LAST_WORD, word=True)]),
        (replace(SUSPECT, **SAID, heard=AWAKE), []),
        (dead(replace(GOES_ON, **SAID), ProofKind.FENCE), [ruled("a", ProofKind.FENCE)]),
        (dead(replace(SUSPECT, leader="other"), ProofKind.FENCE), []),
        (dead(replace(SUSPECT, node=node(text="{")), ProofKind.FENCE), []),
        (replace(BACK, node=marked(boot="b")), [ruled("a", ProofKind.NEW_BOOT)]),
        (replace(BACK, node=marked(boot="b", **SWITCHED)), [ruled("a", ProofKind.NEW_BOOT)]),
        (BACK, [ruled("a")]),
        (dead(BACK, ProofKind.WATCHDOG, boot="b"), [ruled("a"), ruled("b", ProofKind.WATCHDOG)]),
    ],
)
def test_what_a_decision_rests_on(case, expected):
    assert list(list_rulings(case, decide(case, NOW))) == expected


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ((FENCED, FENCED), [ProofKind.FENCE]),
        ((FENCED, dead(PROVED, ProofKind.FENCE, ProofKind.PERSON)), [ProofKind.FENCE]),
        ((dead(PROVED, ProofKind.PERSON, ProofKind.FENCE),), [ProofKind.FENCE, ProofKind.PERSON]),
        ((FENCED, BACK), [ProofKind.FENCE]),
        ((FENCED, BACK, replace(BACK, node=marked(boot="b", ready="True"))), [ProofKind.FENCE]),
        ((BACK, replace(BACK, node=marked(boot="b", ready="True"))), []),
        ((GOES_ON, replace(BACK, node=marked(boot="b"))), [ProofKind.NEW_BOOT]),
        (
            (replace(SUSPECT, **SAID), replace(SUSPECT, **SAID, pods=(ENDING,)), FENCED),
            [ProofKind.LAST_WORD, ProofKind.FENCE],
        ),
        ((FENCED, dead(SUSPECT, ProofKind.WATCHDOG, boot="b")), [ProofKind.FENCE, ProofKind.WATCHDOG]),
    ],
)
def test_each_boot_counts_once_by_what_was_there_when_it_was_judged_first(cases, expected):
    progress = Progress()
    assert [kind for case in cases for kind in progress.handle_event(decided(case), NOW).kinds] == expected


def test_the_same_boot_id_on_another_node_counts_for_itself():
    progress = Progress()
    assert progress.handle_event(decided(FENCED), NOW).kinds == progress.handle_event(decided(FENCED, "n2"), NOW).kinds


WHOLE = (
    (replace(SUSPECT, heard=NOW - 30), 0.0, ()),
    (replace(SUSPECT, heard=NOW - 30, devices=()), 3.0, ()),
    (replace(SUSPECT, heard=NOW - 30), 20.0, ((Stage.SUSPECT, 50.0),)),
    (GOES_ON, 20.5, ()),
    (replace(FENCED, node=marked(**SWITCHED)), 30.0, ((Stage.PROVE, 10.0),)),
    (FENCED, 30.25, ((Stage.TAINT, 0.25),)),
    (replace(FENCED, pods=(ENDING,)), 31.0, ()),
    (replace(FENCED, pods=()), 33.0, ((Stage.FORCE_DELETE, 2.75),)),
    (replace(FENCED, **EMPTY, replacements={"shop/db-0": False}), 40.0, ((Stage.VERIFY, 7.0),)),
    (replace(FENCED, **EMPTY, replacements={"shop/db-0": True}), 45.0, ((Stage.REPLACEMENT, 5.0),)),
    (replace(BACK, heard=NOW + 59), 60.0, ()),
    (replace(SUSPECT, heard=NOW + 100), 100.0, ((Stage.BACK, 55.0),)),
)


def test_a_step_lasts_until_another_begins_and_waiting_is_part_of_it():
    progress = Progress()
    for case, now, expected in WHOLE:
        assert progress.handle_event(decided(case), NOW + now).spent == expected, now
    assert progress.handle_event(NodeSettled(node="n1"), NOW + 101) == ProgressDelta()


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SUSPECT, ((Stage.SUSPECT, 40.0),)),
        (dead(replace(SUSPECT, heard=NOW - 25), ProofKind.PERSON), ((Stage.SUSPECT, 25.0),)),
        (replace(SUSPECT, heard=None, observed=NOW - 45), ((Stage.SUSPECT, 40.0),)),
        (replace(SUSPECT, heard=NOW - 30), ()),
        (replace(SUSPECT, **EMPTY), ()),
        (GOES_ON, ()),
        (FENCED, ()),
        (BACK, ()),
    ],
)
def test_who_is_suspected_was_suspect_since_his_last_sign_of_life(case, expected):
    assert Progress().handle_event(decided(case), NOW).spent == expected


def test_each_node_has_its_own_time_and_those_in_a_step_are_counted():
    progress = Progress()
    progress.handle_event(decided(SUSPECT, "n1"), NOW + 1)
    progress.handle_event(decided(SUSPECT, "n2"), NOW + 2)
    assert progress.nodes_by_stage == dict.fromkeys(Stage, 0) | {Stage.PROVE: 2}
    assert progress.handle_event(decided(FENCED, "n2"), NOW + 5).spent == ((Stage.PROVE, 3.0),)
    assert progress.nodes_by_stage == dict.fromkeys(Stage, 0) | {Stage.PROVE: 1, Stage.FORCE_DELETE: 1}


def test_a_node_that_is_well_again_has_ended_its_step():
    progress = Progress()
    progress.handle_event(decided(SUSPECT), NOW + 1)
    assert progress.handle_event(NodeSettled(node="n1"), NOW + 8) == ProgressDelta(((Stage.PROVE, 7.0),))
    assert progress.nodes_by_stage == dict.fromkeys(Stage, 0)
    assert progress.handle_event(decided(GOES_ON), NOW + 500) == ProgressDelta()
    assert progress.handle_event(decided(FENCED), NOW + 501).spent == ((Stage.PROVE, 1.0),)


def test_what_is_given_up_has_no_duration():
    progress = Progress()
    progress.handle_event(decided(SUSPECT), NOW + 1)
    assert progress.handle_event(LeadershipEnded(), NOW + 8) == ProgressDelta()
    assert progress.nodes_by_stage == dict.fromkeys(Stage, 0)
    assert progress.handle_event(decided(FENCED), NOW + 500).spent == ()


@pytest.mark.parametrize(
    "happening",
    [
        NodeSettled(node="n1"),
        RemovalsRepeated(node="n1", times=3),
    ],
)
def test_what_adds_nothing(happening):
    progress = Progress()
    assert progress.handle_event(happening, NOW + 1) == ProgressDelta()
    assert progress.nodes_by_stage == dict.fromkeys(Stage, 0)
