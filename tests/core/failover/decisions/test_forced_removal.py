"""What comes next once a boot is over, and when the machine is back, as tables: one fact is changed at a time."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from support.failover.cases import (
    AWAKE,
    BACK,
    BMC,
    BY_HAND,
    DB,
    ENDING,
    MARK,
    NOW,
    OFF_ORDERED,
    POLICY,
    PROVED,
    REFUSED,
    STUCK,
    UNKNOWN,
    VA,
    check,
    marked,
)

from lastcall.failover.decisions.case import FencerCall
from lastcall.failover.decisions.steps import Detach, ForceDelete, Mark, SwitchOn, TaintNode, Unmark, Untaint, Wait
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.model.fence_policy import FailoverMode


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        (
            {"node": marked(BY_HAND)},
            TaintNode,
            {"mark": changed(MARK, tainted=True), "boot_id": "a", "says": "a reason"},
        ),
        ({"node": marked(OURS)}, ForceDelete, {"pods": (DB,)}),
        ({}, ForceDelete, {"pods": (DB,), "boot_id": "a"}),
        ({"policy": replace(POLICY, mode=FailoverMode.TAINT_ONLY)}, Wait, {"says": "only taints"}),
        ({"pods": (ENDING,)}, ForceDelete, {"pods": (ENDING,), "boot_id": "a"}),
        ({"pods": (DB, replace(ENDING, uid="u2"))}, ForceDelete, {"pods": (DB, replace(ENDING, uid="u2"))}),
        ({"pods": (replace(DB, refused=REFUSED), replace(ENDING, uid="u2"))}, ForceDelete, {}),
        ({"pods": (replace(DB, refused=REFUSED),)}, Wait, {"until": NOW + 7, "says": "too many requests"}),
        ({"pods": (replace(DB, refused=replace(REFUSED, again=NOW)),)}, ForceDelete, {}),
        ({"pods": (replace(STUCK, finished=False),)}, ForceDelete, {}),
        ({"pods": (replace(STUCK, finalizers=()),)}, ForceDelete, {}),
        ({"pods": (STUCK,)}, Wait, {"says": "shop/db-0 is kept by its finalizers example.com/x"}),
        ({"pods": ()}, Wait, {"says": "attached: va-1"}),
        ({"pods": (), "policy": replace(POLICY, detach=True)}, Detach, {"attachments": (VA,), "boot_id": "a"}),
        ({"pods": (STUCK,), "policy": replace(POLICY, detach=True)}, Detach, {"attachments": (VA,)}),
        (
            {"pods": (replace(ENDING, refused=REFUSED),), "policy": replace(POLICY, detach=True)},
            Wait,
            {"until": NOW + 7},
        ),
        (
            {"pods": (), "policy": replace(POLICY, detach=True), "attachments": (replace(VA, refused=REFUSED),)},
            Wait,
            {"until": NOW + 7, "says": "va-1 is refused: too many requests"},
        ),
        (
            {
                "pods": (),
                "policy": replace(POLICY, detach=True),
                "attachments": (replace(VA, deleting=True, finalizers=("attacher/x",)),),
            },
            Wait,
            {"says": "va-1 is kept by its finalizers attacher/x"},
        ),
        ({"pods": (replace(DB, disabled=True),), "policy": replace(POLICY, detach=True)}, Wait, {"says": "awaited"}),
        ({"heard": AWAKE}, Untaint, {}),
        ({"policy": None}, Wait, {"says": "nothing more is done"}),
        ({"node": marked(tainted=True)}, Wait, {"says": "somebody has taken"}),
        ({"node": marked(OURS, tainted=True, powered_on=True)}, Wait, {"says": "its next boot"}),
        ({"node": marked(OURS, tainted=True, by="former")}, Mark, {}),
    ],
)
def test_a_marked_node_whose_boot_is_over(changes, kind, more):
    check(replace(PROVED, **changes), kind, **more)


ON = replace(POLICY, power_on=True)
EMPTY = replace(PROVED, pods=(), attachments=(), policy=ON, verdict=UNKNOWN, devices=(OFF_ORDERED,))
TWICE = replace(BMC, offs=(*OFF_ORDERED.offs, FencerCall(began=NOW - 2, ended=NOW - 1)))
POWERED = marked(OURS, tainted=True, switched_off=True, fencer="bmc", powered_on=True)
PATIENT = replace(DB, tolerates=True, patient=True)
FAILED = FencerCall(began=NOW - 4, ended=NOW - 4, error="no answer")


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        ({"policy": POLICY}, Wait, {"says": "awaited"}),
        ({"node": marked(OURS, tainted=True)}, Wait, {"says": "awaited"}),
        ({}, Mark, {"says": "switched on again"}),
        ({"pods": (PATIENT,)}, Wait, {"says": "failed over but for shop/db-0, while that tolerates the taint"}),
        ({"pods": (PATIENT,), "policy": POLICY}, Wait, {"says": "failed over but for shop/db-0"}),
        ({"pods": (replace(PATIENT, patient=False),)}, Mark, {"says": "switched on again"}),
        ({"pods": (replace(PATIENT, disabled=True),)}, Mark, {"says": "switched on again"}),
        ({"pods": (replace(PATIENT, mirror=True),)}, Mark, {"says": "switched on again"}),
        ({"node": POWERED, "pods": (PATIENT,)}, SwitchOn, {}),
        ({"node": POWERED}, SwitchOn, {"fencer": "bmc", "within": 30.0}),
        ({"node": POWERED, "pods": (STUCK,)}, SwitchOn, {}),
        ({"node": POWERED, "attachments": (VA,)}, Wait, {"says": "its next boot"}),
        ({"node": POWERED, "devices": (replace(OFF_ORDERED, ons=(FAILED,)),)}, Wait, {"until": NOW + 6}),
        (
            {"node": POWERED, "devices": (replace(OFF_ORDERED, ons=(replace(FAILED, ended=NOW - 10),)),)},
            SwitchOn,
            {},
        ),
        ({"node": POWERED, "devices": (replace(OFF_ORDERED, ons=(FAILED, FAILED)),)}, Wait, {"says": "no answer"}),
        ({"node": POWERED, "devices": (replace(OFF_ORDERED, ons=(replace(FAILED, error=""),)),)}, Wait, {}),
        ({"devices": (TWICE,)}, Wait, {"until": NOW + 29, "says": "when no order lasts"}),
        ({"devices": (BMC,), "observed": NOW - 10}, Wait, {"until": NOW + 20}),
        ({"devices": (BMC,), "leads_since": NOW - 10}, Wait, {"until": NOW + 20}),
        ({"leads_since": NOW - 10}, Wait, {"until": NOW + 20, "says": "when no order lasts"}),
        ({"devices": ()}, Wait, {"says": "cannot switch it on"}),
        (
            {"policy": POLICY, "replacements": {"shop/db-0": False, "shop/web": True}},
            Wait,
            {"says": "elsewhere: shop/db-0;"},
        ),
    ],
)
def test_a_node_from_which_nothing_is_left_to_force(changes, kind, more):
    check(replace(EMPTY, **changes), kind, **more)


COMING = {"node": marked(OURS, boot="b", ready="False", tainted=True), "pods": (), "attachments": ()}
"""It speaks, but is not Ready, and nothing of its last boot is left."""


@pytest.mark.parametrize(
    ("changes", "kind", "more"),
    [
        ({}, Untaint, {"mark": MARK, "by_hand": False}),
        ({"node": marked(boot="b", ready="True")}, Unmark, {"says": "back and Ready"}),
        ({"node": marked(OURS, boot="b", ready="True")}, Unmark, {}),
        ({"node": marked(BY_HAND, boot="b", ready="True"), "policy": replace(POLICY, remove_by_hand=True)}, Untaint, {"by_hand": True}),
        (COMING, Untaint, {"mark": MARK, "by_hand": False, "says": "nothing of its last boot"}),
        ({**COMING, "pods": (DB,)}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "pods": (ENDING,)}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "pods": (STUCK,)}, Untaint, {}),
        ({**COMING, "pods": (replace(DB, tolerates=True),), "attachments": (VA,)}, Untaint, {}),
        ({**COMING, "attachments": (VA,)}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "heard": NOW - 30}, Wait, {"until": NOW + 10}),
        ({**COMING, "policy": replace(POLICY, remove_by_hand=True)}, Untaint, {"by_hand": False}),
        ({**COMING, "node": marked(OURS, boot="b", ready="Unknown", tainted=True)}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "node": marked(OURS, boot="b", ready="False")}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "node": marked(BY_HAND, boot="b", ready="False", tainted=True)}, Wait, {"says": "not Ready yet"}),
        ({**COMING, "node": marked(boot="b", ready="False")}, Wait, {"says": "not Ready yet"}),
        ({"back_since": None}, Wait, {"says": "not Ready yet"}),
        ({"pods": (ENDING,)}, Wait, {"until": NOW + 55, "says": "ends shop/db-0"}),
        ({"pods": (ENDING,), "back_since": NOW - 60}, Untaint, {}),
        ({"pods": (STUCK,)}, Untaint, {}),
        ({"policy": None}, Untaint, {}),
        ({"heard": NOW - 30}, Wait, {"until": NOW + 10}),
        ({"heard": None, "observed": NOW - 5}, Wait, {"until": NOW + 35}),
        ({"heard": NOW - 60}, Mark, {"mark": changed(MARK, boot_id="b", tainted=True)}),
        ({"heard": NOW - 60, "node": marked(boot="b", tainted=True)}, Mark, {"mark": changed(MARK, boot_id="b")}),
        ({"heard": NOW - 60, "policy": None}, Wait, {"says": "goes when it is back"}),
        ({"node": marked(OURS, boot="", tainted=True)}, Wait, {"says": "not Ready yet"}),
    ],
)  # fmt: skip
def test_a_marked_node_whose_machine_has_booted_again(changes, kind, more):
    check(replace(BACK, **changes), kind, **more)
