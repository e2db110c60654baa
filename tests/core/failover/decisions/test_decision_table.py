"""What comes next for a node, as tables: one fact is changed at a time."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from support.failover.cases import (
    AWAKE,
    BACK,
    BMC,
    BY_HAND,
    DB,
    DEAD,
    ENDING,
    MARK,
    NOW,
    OFF_ORDERED,
    OTHER,
    POLICY,
    PROVED,
    SUSPECT,
    SWITCHED,
    check,
    marked,
    node,
    said,
    verdict,
)

from lastcall.failover.decisions.decision_table import TABLE, Situation, situation_of
from lastcall.failover.decisions.marking import manual_taint_note
from lastcall.failover.decisions.steps import (
    AskPower,
    AskTarget,
    Delete,
    Done,
    ForceDelete,
    Mark,
    SwitchOff,
    Unmark,
    Untaint,
    Wait,
)
from lastcall.failover.evidence.assessment import BootState
from lastcall.failover.evidence.awaited_proofs import AwaitedProof
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.failover.limits.fence_targets import TargetJudgement, TargetMatch
from lastcall.failover.limits.storms import Limit, LimitAnswer
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.power import PowerState

NO = LimitAnswer(allowed=False, why="too many", again=NOW + 60, limit=Limit.PER_HOUR)


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        ({}, Mark, {"mark": MARK, "says": "suspected"}),
        ({"node": None}, Done, {"says": "a deleted Node is not a dead machine"}),
        ({"leader": "other"}, Wait, {"says": "other leads, not me"}),
        ({"leader": ""}, Wait, {"says": "nobody leads"}),
        ({"node": node(text="{")}, Wait, {"says": "somebody has to take it away"}),
        ({"node": node(text='{"bootID":"","policy":"p","began":"x","by":"y"}')}, Wait, {"says": "names no boot id"}),
        ({"policy": None}, Done, {"says": "no FencePolicy holds"}),
        ({"node": node(boot="")}, Done, {"says": "never reported a boot id"}),
        ({"heard": NOW - 39}, Wait, {"until": NOW + 1, "says": "was heard of 39s ago"}),
        ({"heard": NOW - 39.5}, Wait, {"until": NOW + 0.5, "says": "was heard of 39s ago"}),
        ({"heard": None, "observed": NOW - 39}, Wait, {"until": NOW + 1, "says": "observed for 39s only"}),
        ({"heard": NOW - 60, "observed": NOW - 39}, Wait, {"until": NOW + 1}),
        ({"node": node(ready="True")}, Mark, {}),
        ({"node": node(ready="False"), "heard": AWAKE}, Wait, {"until": NOW + 35}),
        ({"pods": (), "attachments": ()}, Wait, {"says": "nothing on node n1 has to be failed over"}),
        ({"pods": (replace(DB, tolerates=True),)}, Wait, {"says": "has to be failed over"}),
        ({"pods": (replace(DB, patient=True),)}, Mark, {}),
        ({"pods": (replace(DB, mirror=True),)}, Wait, {"says": "has to be failed over"}),
        ({"pods": (replace(DB, disabled=True),)}, Wait, {"says": "has to be failed over"}),
        ({"pods": ()}, Mark, {}),
        ({"held_until": NOW + 9}, Wait, {"until": NOW + 9, "says": "has said itself that it shuts down"}),
        ({"held_until": NOW}, Mark, {}),
        ({"held_until": NOW + 9, "gone": frozenset({"u1"})}, Delete, {"pods": (DB,), "boot_id": "a"}),
        ({"held_until": NOW + 9, "gone": frozenset({"u1"}), "pods": (ENDING,)}, ForceDelete, {"pods": (ENDING,)}),
        (
            {"held_until": NOW + 9, "gone": frozenset({"u1"}), "pods": (replace(DB, patient=True),)},
            Wait,
            {"until": NOW + 9},
        ),
        (
            {"held_until": NOW + 9, "gone": frozenset({"u1"}), "pods": (replace(ENDING, patient=True),)},
            Wait,
            {"until": NOW + 9},
        ),
        ({"held_until": NOW + 9, "gone": frozenset({"u1"}), "heard": AWAKE}, Wait, {"until": NOW + 35}),
        ({"devices": ()}, Wait, {"says": "its policy names no fencer"}),
        ({"devices": (), "node": node(None, BY_HAND)}, Wait, {"says": "lastcall failover acknowledge n1 --boot-id a"}),
        (
            {
                "devices": (),
                "verdict": verdict(BootState.UNKNOWN, AwaitedProof("that its watchdog has reset it", NOW + 5)),
            },
            Wait,
            {"until": NOW + 5, "says": "that its watchdog has reset it"},
        ),
        (
            {"storm": LimitAnswer(allowed=False, why="too many", again=NOW + 60)},
            Wait,
            {"until": NOW + 60, "says": "too many"},
        ),
        ({"policy": replace(POLICY, mode=FailoverMode.OBSERVE)}, Wait, {"says": "policy p only observes"}),
        ({"policy": replace(POLICY, mode=FailoverMode.TAINT_ONLY)}, Mark, {}),
        ({"verdict": DEAD, "devices": (), "heard": NOW - 21}, Mark, {"says": "is over"}),
        ({"verdict": DEAD, "held_until": NOW + 9, "storm": LimitAnswer(allowed=False, why="too many")}, Mark, {}),
        ({"verdict": DEAD, "pods": (), "attachments": ()}, Wait, {"says": "has to be failed over"}),
        ({"verdict": DEAD, "policy": replace(POLICY, mode=FailoverMode.OBSERVE)}, Wait, {"says": "is over"}),
    ],
)
def test_a_node_on_which_nothing_of_ours_is(changes, kind, more):
    check(replace(SUSPECT, **changes), kind, **more)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"node": node(None, OURS)}, True),
        ({"node": node(None, BY_HAND)}, True),
        ({"node": marked(OURS)}, True),
        ({"node": marked(OURS, tainted=True)}, False),
        ({"node": node(None, OURS), "verdict": DEAD}, False),
        ({}, False),
        ({"node": None}, False),
    ],
)
def test_a_taint_that_somebody_has_set_and_that_proves_nothing_is_told_of(changes, told):
    found = manual_taint_note(replace(SUSPECT, **changes))
    assert found.endswith("say it by lastcall failover acknowledge n1 --boot-id a") if told else found == ""


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        ({}, Mark, {"mark": changed(MARK, fencer="bmc", switched_off=True)}),
        ({"node": marked(**SWITCHED)}, SwitchOff, {"fencer": "bmc", "boot_id": "a", "within": 30.0}),
        ({"node": marked(switched_off=True, fencer="old")}, Mark, {"mark": changed(MARK, **SWITCHED)}),
        ({"devices": (replace(BMC, judgement=None),)}, AskTarget, {"fencer": "bmc"}),
        (
            {
                "devices": (
                    replace(
                        BMC,
                        judgement=TargetJudgement(TargetMatch.OTHER, "it is another"),
                    ),
                )
            },
            Unmark,
            {"says": "it is another", "given_back": True},
        ),
        ({"devices": (replace(BMC, trouble="no Secret"),)}, Unmark, {"says": "no Secret", "given_back": True}),
        ({"devices": (replace(BMC, rival="node n2 is it"),)}, Unmark, {"says": "node n2 is it", "given_back": True}),
        ({"devices": (replace(BMC, rival="x"),), "node": marked(**SWITCHED)}, Wait, {"says": "bmc is refused: x"}),
        ({"devices": (replace(BMC, rival="x"),), "node": marked(OURS, tainted=True)}, Wait, {"says": "bmc is refused"}),
        ({"devices": (OFF_ORDERED,), "node": marked(**SWITCHED)}, AskPower, {"fencer": "bmc"}),
        (
            {"devices": (said(OFF_ORDERED, PowerState.OFF, NOW - 0.5),), "node": marked(**SWITCHED)},
            Wait,
            {"until": NOW + 0.5, "says": "OFF once"},
        ),
        ({"held_until": NOW + 9}, Unmark, {"given_back": True}),
        ({"held_until": NOW + 9, "devices": (replace(BMC, judgement=None),)}, AskTarget, {}),
        ({"held_until": NOW + 9, "node": marked(**SWITCHED)}, Wait, {"until": NOW + 9}),
        ({"storm": NO}, Unmark, {"says": "too many", "given_back": True}),
        ({"storm": NO, "node": marked(**SWITCHED)}, Wait, {"until": NOW + 60, "limit": Limit.PER_HOUR}),
        ({"heard": NOW - 30}, Wait, {"until": NOW + 10, "says": "suspected after"}),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED)},
            AskPower,
            {"fencer": "bmc", "says": "told to switch it off before"},
        ),
        ({"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (replace(BMC, judgement=None),)}, AskTarget, {}),
        ({"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (replace(BMC, judged=NOW - 60),)}, AskTarget, {}),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (replace(BMC, judgement=OTHER),)},
            Wait,
            {"until": NOW + 10},
        ),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (replace(BMC, trouble="none"),)},
            Wait,
            {"until": NOW + 10},
        ),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (said(BMC, PowerState.ON, NOW),)},
            Wait,
            {"until": NOW + 10},
        ),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (said(BMC, PowerState.OFF, NOW),)},
            Wait,
            {"until": NOW + 1},
        ),
        (
            {"heard": NOW - 30, "node": marked(**SWITCHED), "devices": (said(BMC, PowerState.OFF, NOW - 1),)},
            AskPower,
            {},
        ),
        ({"heard": AWAKE}, Unmark, {"says": "alive again"}),
        ({"heard": NOW - 20}, Wait, {"until": NOW + 20}),
        ({"heard": None, "observed": AWAKE}, Wait, {"until": NOW + 35, "says": "observed for 5s only"}),
        ({"heard": AWAKE, "node": marked(**SWITCHED), "devices": (OFF_ORDERED,)}, Wait, {"until": NOW + 58}),
        ({"heard": AWAKE, "node": marked(**SWITCHED)}, Unmark, {}),
        ({"heard": AWAKE, "node": marked(**SWITCHED), "leads_since": NOW - 10}, Wait, {"until": NOW + 50}),
        (
            {"heard": AWAKE, "node": marked(OURS, tainted=True)},
            Untaint,
            {"mark": MARK, "by_hand": False, "says": "is alive, with the boot that was taken to be over"},
        ),
        ({"heard": AWAKE, "node": marked(OURS)}, Unmark, {}),
        ({"policy": None}, Unmark, {"says": "no FencePolicy holds any more"}),
        ({"policy": None, "node": marked(**SWITCHED)}, Wait, {"says": "nothing more is done"}),
        (
            {"policy": replace(POLICY, mode=FailoverMode.OBSERVE), "node": marked(OURS, tainted=True)},
            Wait,
            {"says": "only observes"},
        ),
        ({"node": marked(by="former")}, Mark, {"mark": MARK, "says": "former does not lead any more"}),
        ({"node": marked(by="other"), "leader": "other"}, Wait, {"says": "other leads"}),
        ({"pods": (), "attachments": ()}, Unmark, {"says": "nothing is left"}),
        ({"pods": (), "attachments": (), "node": marked(**SWITCHED)}, Wait, {"says": "awaited"}),
        ({"pods": (), "attachments": (), "node": marked(OURS, tainted=True)}, Wait, {"says": "awaited"}),
        ({"node": marked(tainted=True)}, Wait, {"says": "somebody has taken lastcall's taint"}),
        ({"node": marked(OURS, tainted=True, powered_on=True)}, Wait, {"says": "its next boot is awaited"}),
        ({"gone": frozenset({"u1"}), "pods": (ENDING,)}, ForceDelete, {"pods": (ENDING,)}),
    ],
)
def test_a_marked_node_whose_boot_is_not_proved_to_be_over(changes, kind, more):
    check(replace(SUSPECT, **{"node": node(MARK), **changes}), kind, **more)


def test_a_wait_ends_when_a_proof_comes_about_by_time():
    awaits = verdict(
        BootState.ALIVE, AwaitedProof("that no other sign of life follows", NOW + 3), AwaitedProof("OFF twice", None)
    )
    check(replace(SUSPECT, heard=NOW - 17, verdict=awaits), Wait, until=NOW + 3)


def test_every_situation_has_a_last_rule_that_always_answers():
    assert set(TABLE) == set(Situation)
    cases = (SUSPECT, PROVED, BACK, replace(SUSPECT, node=None), replace(SUSPECT, node=node(MARK)))
    assert {situation_of(case) for case in cases} == set(Situation)
