"""What ``lastcall failover explain`` says of nodes of which nothing has to be done, and of what is not at issue yet."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed
from support.failover.cases import DEAD, ENDING, MARK, NOW, POLICY, PROVED, SUSPECT, node, verdict
from support.failover.explain_command import CLUSTER, OTHERS, WITH_UID, document, machine, policy
from support.failover.snapshots import lease, taint

from lastcall.failover.decisions import decision_table
from lastcall.failover.decisions.steps import Wait
from lastcall.failover.evidence.assessment import BootState
from lastcall.failover.evidence.owner_mark import encode_mark
from lastcall.failover.reporting.explanation import explain_node
from lastcall.model.fence_policy import FailoverMode

REST = CLUSTER[2:]
OUT = "node.kubernetes.io/out-of-service"
COMMAND = "lastcall failover acknowledge n1 --boot-id b-1"


@pytest.mark.parametrize("target", ["n1", "shop/db-0"])
@pytest.mark.parametrize(("mode", "observes"), [("Enforce", ""), ("Observe", ", and only observes")])
def test_of_a_node_that_is_well_no_failover_is_promised(target, mode, observes):
    found = document(target, *REST, machine("n1", "True"), lease("n1", 3), policy(mode=mode))
    assert found["next"] == "nothing has to be failed over"
    why = "node n1 is well: it is Ready, and was heard of 3s ago"
    assert found["inTheWay"] == [{"why": why, "until": None}]
    assert (found["proofs"], found["left"], found["latest"]) == ([], "", None)
    assert found["known"][-2:] == ["its condition Ready is True", f"policy workers holds for it{observes}"]


def test_of_a_node_that_is_well_it_is_told_that_nobody_would_switch_it_off():
    found = document("n1", *REST, machine("n1", "True"), lease("n1", 3), policy(fencers=[]))
    assert "its policy names no fencer" in found["known"]


ALIVE = replace(SUSPECT, heard=NOW - 3, node=node(ready="True"), verdict=verdict(BootState.ALIVE))


@pytest.mark.parametrize(
    "change",
    [
        {"node": node(ready="False")},
        {"node": node(MARK, ready="True")},
        {"node": node(None, *PROVED.node.taints, ready="True")},
        {"verdict": verdict(BootState.UNKNOWN)},
        {"heard": NOW - 60},
        {"held_until": NOW + 30},
        {"gone": frozenset({"u1"})},
        {"policy": None},
    ],
)
def test_who_is_not_well(change):
    assert "is well" in explain_node(ALIVE, NOW).hurdles[0].why
    assert "is well" not in str(explain_node(replace(ALIVE, **change), NOW))


def test_a_node_that_is_not_suspected_yet_is_not_said_to_be():
    found = document("n1", *REST, machine("n1", "False"), lease("n1", 5), policy(mode="Observe"))
    assert [one["why"] for one in found["inTheWay"]] == [
        "node n1 was heard of 5s ago; it is suspected after a silence of 40s",
        "after that: policy workers only observes",
    ]
    found = document("n1", *REST, machine("n1", "False"), lease("n1", 5), policy(fencers=[]))
    assert found["inTheWay"][1]["why"].startswith("after that: node n1 is silent, its policy names no fencer")


def test_a_policy_that_only_observes_is_named_once():
    case = replace(SUSPECT, verdict=DEAD, policy=replace(POLICY, mode=FailoverMode.OBSERVE), heard=NOW - 10)
    assert [one.why for one in explain_node(case, NOW).hurdles] == [
        "node n1 is over: a reason. It would be failed over now, but policy p only observes"
    ]


@pytest.mark.parametrize("boot", [SUSPECT.verdict, DEAD])
def test_a_node_on_which_nothing_has_to_go(boot):
    case = replace(SUSPECT, pods=(), attachments=(), verdict=boot, devices=())
    found = explain_node(case, NOW)
    assert found.next == "nothing has to be failed over"
    assert [one.why for one in found.hurdles] == [decision_table.decide(case, NOW).why]


def test_what_is_waited_for_when_all_has_gone_is_told_but_not_twice():
    over = replace(PROVED, pods=(), attachments=())
    assert isinstance(decision_table.decide(over, NOW), Wait)
    found = explain_node(replace(over, replacements={"shop/db-0": False, "shop/web-1": True}), NOW)
    assert found.next == "it is failed over; its return is waited for"
    assert [one.why for one in found.hurdles] == ["node n1 has not booted again; not Ready yet elsewhere: shop/db-0"]
    told = explain_node(replace(over, policy=replace(POLICY, power_on=True), leads_since=NOW - 1), NOW)
    assert "switched on again when no order lasts" in told.hurdles[0].why
    patient = replace(ENDING, tolerates=True, patient=True)
    assert explain_node(replace(over, pods=(patient,)), NOW).next == "nothing is done yet"


def test_a_mark_that_cannot_be_read_is_in_the_way_also_where_nothing_is_left():
    found = document(
        "n1", machine("n1", annotations={"lastcall.dev/failover": "{"}), lease("n1", 90), *OTHERS, policy()
    )
    assert found["next"] == "nothing is done yet"


def silent(ready="Unknown", *taints, boot="b-1", **more):
    node = machine("n1", ready, *taints, boot=boot)
    return document("n1", node, lease("n1", 90), *OTHERS, WITH_UID, policy(**more))


def test_nobody_is_said_to_be_asked_for_off_where_the_policy_names_no_fencer():
    assert silent()["proofs"][-1]["why"].startswith("OFF twice from a fence device or a cloud, a new boot id")
    why = f"a new boot id, or a person's acknowledgement, by {COMMAND}"
    assert silent(fencers=[])["proofs"] == [{"why": why, "until": None}]


def test_the_command_is_told_where_it_would_be_accepted_and_once():
    assert "failover acknowledge" not in str(silent("True", fencers=[]))
    by_hand = taint(OUT, value="mine")
    assert str(silent("Unknown", by_hand, fencers=[])).count(COMMAND) == 1
    assert "--boot-id" not in str(silent("Unknown", by_hand, boot="", fencers=[]))
    mark = changed(MARK, boot_id="b-1")
    marked = machine("n1", annotations={"lastcall.dev/failover": encode_mark(mark)})
    assert COMMAND in str(document("n1", marked, lease("n1", 90), *OTHERS, WITH_UID, policy(fencers=[])))
