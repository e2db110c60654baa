"""The mark on a Node and the taint beside it: what is kept of others, and what is not forgotten."""

import json

import pytest
from msgspec.structs import replace

from lastcall.failover.evidence.lost_pods import LostPod
from lastcall.failover.evidence.out_of_service_taint import OURS, add_taint, remove_taint
from lastcall.failover.evidence.owner_mark import (
    OwnerMark,
    UnreadableMark,
    encode_mark,
    merge_marks,
    new_mark,
    parse_mark,
)
from lastcall.model.tolerations import Taint

MARK = OwnerMark(boot_id="a", policy="p", began="2026-11-21T12:00:00Z", by="me")
AT = {"namespace": "shop", "since": "2026-11-21T12:00:00Z"}
DB = LostPod(name="db-0", uid="u1", kind="StatefulSet", owner="o1", labels={"app": "db"}, **AT)
WEB = LostPod(name="web-1", uid="u2", kind="ReplicaSet", owner="o2", **AT)
TEAM = Taint(key="team", value="a", effect="NoExecute")
BY_HAND = Taint(key=OURS.key, value="nodeshutdown", effect="NoSchedule")
ANOTHER_VALUE = Taint(key=OURS.key, value="broken", effect="NoExecute")


def test_the_annotation_as_it_is_written():
    assert new_mark(boot_id="a", policy="p", by="me", wall=1_795_262_400.9) == MARK
    assert json.loads(encode_mark(replace(MARK, fencer="bmc", switched_off=True))) == {
        "bootID": "a",
        "policy": "p",
        "began": "2026-11-21T12:00:00Z",
        "by": "me",
        "fencer": "bmc",
        "switchedOff": True,
        "tainted": False,
        "poweredOn": False,
        "lost": [],
    }
    assert parse_mark(encode_mark(MARK)) == MARK
    assert parse_mark('{"bootID":"a","policy":"p","began":"2026-11-21T12:00:00Z","by":"me"}') == MARK, (
        "of an earlier version"
    )


def test_the_pods_that_a_node_has_lost_stand_there_with_all_that_following_them_needs():
    mark = replace(MARK, lost=(DB, WEB))
    assert json.loads(encode_mark(mark))["lost"][0] == {
        "namespace": "shop",
        "name": "db-0",
        "uid": "u1",
        "kind": "StatefulSet",
        "owner": "o1",
        "since": "2026-11-21T12:00:00Z",
        "labels": {"app": "db"},
    }
    assert parse_mark(encode_mark(mark)) == mark


def test_who_writes_anew_forgets_no_pod_that_another_has_named():
    there = replace(MARK, by="former", lost=(DB,))
    assert merge_marks(encode_mark(there), MARK, me="me", leader="me") == replace(MARK, lost=(DB,))
    wanted = replace(MARK, lost=(WEB, replace(DB, since="2026-11-21T13:00:00Z")))
    assert merge_marks(encode_mark(there), wanted, me="me", leader="me") == replace(MARK, lost=(DB, WEB))


def test_a_later_versions_fields_are_passed_over():
    assert parse_mark('{"bootID":"a","policy":"p","began":"2026-11-21T12:00:00Z","by":"me","more":1}') == MARK


DEEP = '{"x":' + "[" * 5000 + "]" * 5000 + "}"


@pytest.mark.parametrize(
    "text", [DEEP, "{", "[]", '"x"', '{"bootID":"a"}', '{"bootID":"a","policy":"p","began":"b","by":""}']
)
def test_what_cannot_be_read_is_nobodys(text):
    assert isinstance(parse_mark(text), UnreadableMark)
    assert isinstance(merge_marks(text, MARK, me="me", leader="me"), UnreadableMark)


def test_no_annotation_is_no_mark():
    assert parse_mark("") is None
    assert merge_marks("", MARK, me="me", leader="me") == MARK


def test_what_another_has_begun_is_not_forgotten():
    there = replace(MARK, by="former", began="earlier", fencer="bmc", switched_off=True, tainted=True, powered_on=True)
    assert merge_marks(encode_mark(there), MARK, me="me", leader="me") == replace(there, by="me", tainted=False)
    wanted = replace(MARK, fencer="pdu", tainted=True)
    assert merge_marks(encode_mark(there), wanted, me="me", leader="me") == replace(there, by="me", fencer="pdu")


def test_a_mark_of_another_boot_makes_way():
    there = replace(MARK, boot_id="old", switched_off=True)
    assert merge_marks(encode_mark(there), MARK, me="me", leader="me") == MARK


def test_the_mark_of_who_leads_stays():
    there = replace(MARK, by="other")
    assert merge_marks(encode_mark(there), MARK, me="me", leader="other") == UnreadableMark(
        why="is held by other, which leads"
    )
    assert merge_marks(encode_mark(there), MARK, me="me", leader="me") == MARK
    assert merge_marks(encode_mark(there), MARK, me="me", leader="") == MARK


@pytest.mark.parametrize(
    ("there", "after"),
    [
        ((), (OURS,)),
        ((TEAM, BY_HAND), (TEAM, BY_HAND, OURS)),
        ((OURS, TEAM), (OURS, TEAM)),
        ((ANOTHER_VALUE,), (ANOTHER_VALUE,)),
    ],
)
def test_our_taint_is_added_to_the_others(there, after):
    assert add_taint(there, OURS) == after


def test_our_taint_is_taken_from_the_others():
    assert remove_taint((TEAM, OURS, BY_HAND), by_hand=False) == (TEAM, BY_HAND)
    assert remove_taint((TEAM, OURS, BY_HAND), by_hand=True) == (TEAM,)
    assert remove_taint((TEAM,), by_hand=False) == (TEAM,)
