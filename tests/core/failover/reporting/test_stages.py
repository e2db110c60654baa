"""Which step of its failover a node is in, as a table: one fact is changed at a time."""

from dataclasses import replace

import pytest
from support.failover.cases import (
    AWAKE,
    BACK,
    BMC,
    BY_HAND,
    DB,
    DEAD,
    ENDING,
    NOW,
    OTHER,
    POLICY,
    PROVED,
    REFUSED,
    SUSPECT,
    SWITCHED,
    VA,
    marked,
    node,
)

from lastcall.failover.decisions.decision_table import decide
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.failover.reporting.stages import Stage, stage_of
from lastcall.model.fence_policy import FailoverMode

OBSERVES, TAINTS = (replace(POLICY, mode=mode) for mode in (FailoverMode.OBSERVE, FailoverMode.TAINT_ONLY))
EMPTY = {"pods": (), "attachments": ()}
SAID = {"held_until": NOW + 9, "gone": frozenset({"u1"})}
GOES_ON = {"node": marked(**SWITCHED)}


def during(case):
    return stage_of(case, decide(case, NOW), NOW)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"heard": NOW - 39}, Stage.SUSPECT),
        ({"heard": NOW - 20}, Stage.SUSPECT),
        ({"heard": NOW - 19}, None),
        ({"heard": AWAKE, "node": node(ready="False")}, None),
        ({"heard": None, "observed": NOW - 39}, Stage.SUSPECT),
        ({"heard": None, "observed": NOW}, Stage.SUSPECT),
        ({}, Stage.PROVE),
        ({"devices": ()}, Stage.PROVE),
        ({"storm": LimitAnswer(allowed=False, why="no")}, Stage.PROVE),
        ({"held_until": NOW + 9}, Stage.PROVE),
        ({"policy": OBSERVES}, Stage.PROVE),
        ({"verdict": DEAD}, Stage.PROVE),
        ({"verdict": DEAD, "heard": NOW - 30}, Stage.PROVE),
        (SAID, Stage.DELETE),
        (SAID | {"pods": (ENDING,)}, Stage.FORCE_DELETE),
        (EMPTY, None),
        (EMPTY | {"verdict": DEAD}, None),
        ({"policy": None}, None),
        ({"node": None}, None),
        ({"node": node(boot="")}, None),
        ({"node": node(text="{")}, None),
        ({"leader": "other"}, None),
    ],
)
def test_before_anything_is_begun(changes, expected):
    assert during(replace(SUSPECT, **changes)) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"node": marked()}, Stage.PROVE),
        (GOES_ON, Stage.PROVE),
        (GOES_ON | {"devices": (replace(BMC, judgement=OTHER),)}, Stage.PROVE),
        (GOES_ON | {"held_until": NOW + 9}, Stage.PROVE),
        (GOES_ON | SAID, Stage.DELETE),
        (GOES_ON | {"heard": AWAKE}, Stage.BACK),
        ({"node": marked(), "heard": AWAKE}, Stage.BACK),
        ({"node": marked(), "policy": None}, None),
        (GOES_ON | {"policy": OBSERVES}, None),
        ({"node": marked(by="another")}, Stage.PROVE),
        ({"node": marked(OURS, tainted=True), "heard": AWAKE}, Stage.BACK),
    ],
)
def test_marked_and_not_proved(changes, expected):
    assert during(replace(SUSPECT, **changes)) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (GOES_ON, Stage.TAINT),
        ({}, Stage.FORCE_DELETE),
        ({"pods": (ENDING,)}, Stage.FORCE_DELETE),
        ({"pods": (ENDING,), "policy": TAINTS}, Stage.VERIFY),
        ({"pods": (replace(ENDING, refused=REFUSED),)}, Stage.VERIFY),
        ({"pods": ()}, Stage.VERIFY),
        ({"pods": (), "policy": replace(POLICY, detach=True)}, Stage.DETACH),
        (
            {"pods": (), "policy": replace(POLICY, detach=True), "attachments": (replace(VA, deleting=True),)},
            Stage.VERIFY,
        ),
        (EMPTY, Stage.BACK),
        (EMPTY | {"replacements": {"shop/db-0": False, "shop/web": True}}, Stage.REPLACEMENT),
        (EMPTY | {"replacements": {"shop/db-0": True}}, Stage.BACK),
        ({"node": marked(tainted=True)}, Stage.BACK),
        ({"node": marked(OURS, tainted=True, powered_on=True)}, Stage.BACK),
        ({"policy": None}, None),
        ({"policy": OBSERVES}, None),
    ],
)
def test_proved(changes, expected):
    assert during(replace(PROVED, **changes)) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Stage.BACK),
        ({"pods": (ENDING,)}, Stage.BACK),
        ({"node": marked(boot="b", ready="True")}, Stage.BACK),
        ({"node": marked(BY_HAND, boot="b", ready="True")}, Stage.BACK),
        ({"node": marked(OURS, boot="b", tainted=True), "back_since": None}, Stage.BACK),
        ({"heard": NOW - 30}, Stage.SUSPECT),
        ({"heard": NOW - 60}, Stage.PROVE),
        ({"heard": NOW - 60, "pods": (replace(DB, tolerates=True),), "attachments": ()}, Stage.BACK),
        ({"heard": NOW - 60, "policy": None}, Stage.BACK),
    ],
)
def test_booted_again(changes, expected):
    assert during(replace(BACK, **changes)) is expected
