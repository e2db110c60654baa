"""What the controller's metrics count of its decisions, as tables: time in each step, and what has decided a verdict."""

from dataclasses import replace

import pytest
from support.failover_cases import AWAKE, BACK, DEAD, ENDING, NOW, PROVED, SUSPECT, SWITCHED, marked, node

from lastcall.failover.deciding.course import decide
from lastcall.failover.knowing.proofs import Kind
from lastcall.failover.telling.happenings import Decided, Repeated, Rested, Stopped
from lastcall.failover.telling.progress import Measured, Progress, Ruling, rulings
from lastcall.failover.telling.stages import Stage

SAID = {"held_until": NOW + 9, "gone": frozenset({"u1"})}
GOES_ON = replace(SUSPECT, node=marked(**SWITCHED))
EMPTY = {"pods": (), "attachments": ()}


def dead(case, *kinds, boot="a"):
    return replace(case, verdict=replace(DEAD, boot_id=boot, kinds=frozenset(kinds)))


def decided(case, name="n1"):
    step = decide(case, NOW)
    return Decided(node=name, uid="u", step=step, mark=case.mark, case=case)


def ruled(boot, *kinds, word=False):
    return Ruling(boot, frozenset(kinds), word)


FENCED = dead(PROVED, Kind.FENCE)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SUSPECT, []),
        (GOES_ON, []),
        (FENCED, [ruled("a", Kind.FENCE)]),
        (dead(GOES_ON, Kind.PERSON, Kind.WATCHDOG), [ruled("a", Kind.PERSON, Kind.WATCHDOG)]),
        (dead(SUSPECT, Kind.WATCHDOG), [ruled("a", Kind.WATCHDOG)]),
        (dead(replace(SUSPECT, **EMPTY), Kind.PERSON), [ruled("a", Kind.PERSON)]),
        (replace(SUSPECT, **SAID), [ruled("a", Kind.LAST_WORD, word=True)]),
        (replace(SUSPECT, **SAID, pods=(ENDING,)), [ruled("a", Kind.LAST_WORD, word=True)]),
        (replace(SUSPECT, **SAID, heard=AWAKE), []),
        (dead(replace(GOES_ON, **SAID), Kind.FENCE), [ruled("a", Kind.FENCE)]),
        (dead(replace(SUSPECT, leader="other"), Kind.FENCE), []),
        (dead(replace(SUSPECT, node=node(text="{")), Kind.FENCE), []),
        (replace(BACK, node=marked(boot="b")), [ruled("a", Kind.NEW_BOOT)]),
        (replace(BACK, node=marked(boot="b", **SWITCHED)), [ruled("a", Kind.NEW_BOOT)]),
        (BACK, [ruled("a")]),
        (dead(BACK, Kind.WATCHDOG, boot="b"), [ruled("a"), ruled("b", Kind.WATCHDOG)]),
    ],
)
def test_what_a_decision_rests_on(case, expected):
    assert list(rulings(case, decide(case, NOW))) == expected


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ((FENCED, FENCED), [Kind.FENCE]),
        ((FENCED, dead(PROVED, Kind.FENCE, Kind.PERSON)), [Kind.FENCE]),
        ((dead(PROVED, Kind.PERSON, Kind.FENCE),), [Kind.FENCE, Kind.PERSON]),
        ((FENCED, BACK), [Kind.FENCE]),
        ((FENCED, BACK, replace(BACK, node=marked(boot="b", ready="True"))), [Kind.FENCE]),
        ((BACK, replace(BACK, node=marked(boot="b", ready="True"))), []),
        ((GOES_ON, replace(BACK, node=marked(boot="b"))), [Kind.NEW_BOOT]),
        ((replace(SUSPECT, **SAID), replace(SUSPECT, **SAID, pods=(ENDING,)), FENCED), [Kind.LAST_WORD, Kind.FENCE]),
        ((FENCED, dead(SUSPECT, Kind.WATCHDOG, boot="b")), [Kind.FENCE, Kind.WATCHDOG]),
    ],
)
def test_each_boot_counts_once_by_what_was_there_when_it_was_judged_first(cases, expected):
    progress = Progress()
    assert [kind for case in cases for kind in progress.hear(decided(case), NOW).kinds] == expected


def test_the_same_boot_id_on_another_node_counts_for_itself():
    progress = Progress()
    assert progress.hear(decided(FENCED), NOW).kinds == progress.hear(decided(FENCED, "n2"), NOW).kinds


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
        assert progress.hear(decided(case), NOW + now).spent == expected, now
    assert progress.hear(Rested(node="n1"), NOW + 101) == Measured()


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (SUSPECT, ((Stage.SUSPECT, 40.0),)),
        (dead(replace(SUSPECT, heard=NOW - 25), Kind.PERSON), ((Stage.SUSPECT, 25.0),)),
        (replace(SUSPECT, heard=None, observed=NOW - 45), ((Stage.SUSPECT, 40.0),)),
        (replace(SUSPECT, heard=NOW - 30), ()),
        (replace(SUSPECT, **EMPTY), ()),
        (GOES_ON, ()),
        (FENCED, ()),
        (BACK, ()),
    ],
)
def test_who_is_suspected_was_suspect_since_his_last_sign_of_life(case, expected):
    assert Progress().hear(decided(case), NOW).spent == expected


def test_each_node_has_its_own_time_and_those_in_a_step_are_counted():
    progress = Progress()
    progress.hear(decided(SUSPECT, "n1"), NOW + 1)
    progress.hear(decided(SUSPECT, "n2"), NOW + 2)
    assert progress.nodes == dict.fromkeys(Stage, 0) | {Stage.PROVE: 2}
    assert progress.hear(decided(FENCED, "n2"), NOW + 5).spent == ((Stage.PROVE, 3.0),)
    assert progress.nodes == dict.fromkeys(Stage, 0) | {Stage.PROVE: 1, Stage.FORCE_DELETE: 1}


def test_a_node_that_is_well_again_has_ended_its_step():
    progress = Progress()
    progress.hear(decided(SUSPECT), NOW + 1)
    assert progress.hear(Rested(node="n1"), NOW + 8) == Measured(((Stage.PROVE, 7.0),))
    assert progress.nodes == dict.fromkeys(Stage, 0)
    assert progress.hear(decided(GOES_ON), NOW + 500) == Measured()
    assert progress.hear(decided(FENCED), NOW + 501).spent == ((Stage.PROVE, 1.0),)


def test_what_is_given_up_has_no_duration():
    progress = Progress()
    progress.hear(decided(SUSPECT), NOW + 1)
    assert progress.hear(Stopped(), NOW + 8) == Measured()
    assert progress.nodes == dict.fromkeys(Stage, 0)
    assert progress.hear(decided(FENCED), NOW + 500).spent == ()


@pytest.mark.parametrize(
    "happening",
    [
        Rested(node="n1"),
        Repeated(node="n1", times=3),
    ],
)
def test_what_adds_nothing(happening):
    progress = Progress()
    assert progress.hear(happening, NOW + 1) == Measured()
    assert progress.nodes == dict.fromkeys(Stage, 0)
