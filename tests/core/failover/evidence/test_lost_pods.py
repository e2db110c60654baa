"""The pods that a node has lost: which are followed, since when, and what counts as the replacement of each."""

import msgspec
import pytest
from msgspec.structs import replace

from lastcall.failover.evidence.lost_pods import MOST, ROOM, LostPod, lost_pod, merge_lost, newly_lost, room_beside
from lastcall.failover.evidence.replacement_match import match_replacements
from lastcall.model.observed import FailoverPod

T1, T2, T3 = (f"2026-11-21T12:00:0{second}Z" for second in (1, 2, 3))
READY = [{"type": "Ready", "status": "True"}]
WEB = LostPod(namespace="shop", name="web-1", uid="u1", kind="ReplicaSet", owner="rs", since=T2, labels={"app": "web"})
DB = LostPod(namespace="shop", name="db-0", uid="u1", kind="StatefulSet", owner="sts", since=T2)
GRACE = {"deletionTimestamp": "2026-11-21T12:00:33Z", "deletionGracePeriodSeconds": 30}


def pod(name="web-2", uid="u2", made=T3, *, kind="ReplicaSet", owner="rs", node="n2", conditions=READY, **more):
    owners = [{"kind": kind, "name": "o", "uid": owner, "controller": True}] if kind else []
    metadata = {"name": name, "namespace": "shop", "uid": uid, "creationTimestamp": made, "ownerReferences": owners}
    phase = more.pop("phase", "Running")
    found = {"metadata": {**metadata, **more}, "spec": {"nodeName": node}}
    return msgspec.convert({**found, "status": {"phase": phase, "conditions": conditions}}, FailoverPod)


def db(uid="u2", **more):
    return pod("db-0", uid, kind="StatefulSet", owner="sts", **more)


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        ({}, T2),
        ({"made": T3}, T3),
        ({**GRACE}, T3),
        ({**GRACE, "deletionGracePeriodSeconds": 0}, "2026-11-21T12:00:33Z"),
        ({**GRACE, "deletionGracePeriodSeconds": 99_999_999_999}, T2),
        ({**GRACE, "deletionGracePeriodSeconds": 40_000_000_000}, T2),
        ({**GRACE, "deletionGracePeriodSeconds": 2**63 - 1}, T2),
    ],
)
def test_since_when_a_replacement_may_be_made(changes, since):
    """Since its deletion was asked for; before that, since it was made, or the API server was seen to write later."""
    found = lost_pod(pod(**{"made": T1, **changes}), seen=T2)
    assert found.since == since
    assert (found.kind, found.owner, found.key) == ("ReplicaSet", "rs", "shop/web-2")


def test_what_takes_a_pods_place_may_be_in_another_zone():
    place = {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
    assert lost_pod(pod(labels={"app": "web", **place}), seen=T2).labels == {"app": "web"}


@pytest.mark.parametrize(
    "changes", [{"kind": ""}, {"kind": "DaemonSet"}, {"kind": "Node"}, {"phase": "Succeeded"}, {"phase": "Failed"}]
)
def test_pods_in_whose_place_nothing_comes_are_not_followed(changes):
    assert lost_pod(pod(**changes), seen=T2) is None


def taken(lost, *found, before=None):
    return match_replacements(lost, found, node="n1", before=before or {})


@pytest.mark.parametrize(
    ("lost", "found", "is_it"),
    [
        (WEB, pod(), True),
        (WEB, pod(made=T2), True),
        (WEB, pod(made=T1), False),
        (WEB, pod(conditions=[]), False),
        (WEB, pod(owner="other"), False),
        (WEB, pod(node="n1"), False),
        (WEB, pod(node=""), False),
        (WEB, pod(**GRACE), False),
        (WEB, pod(uid="u1"), False),
        (WEB, pod(namespace="other"), False),
        (DB, db(), True),
        (DB, db(uid="u1"), False),
        (DB, db(conditions=[]), False),
        (DB, pod("db-1", kind="StatefulSet", owner="sts"), False),
        (DB, db(namespace="other"), False),
    ],
)
def test_what_counts_as_a_replacement(lost, found, is_it):
    assert bool(taken([lost], found)) is is_it


def test_one_pod_takes_the_place_of_one_alone():
    other = replace(WEB, name="web-0", uid="u0")
    assert len(taken([WEB, other], pod())) == 1
    assert taken([WEB, other], pod(), pod(uid="u3")).keys() == {"u0", "u1"}


@pytest.mark.parametrize("turned", [False, True])
def test_as_many_are_replaced_as_can_be(turned):
    """The older of the two pods can take one place alone."""
    late = replace(WEB, uid="u0", since=T3)
    lost, found = [WEB, late], [pod(uid="old", made=T2), pod(uid="new", made=T3)]
    if turned:
        lost.reverse()
        found.reverse()
    assert taken(lost, *found) == {"u1": "old", "u0": "new"}


def test_who_has_taken_a_place_keeps_it():
    other = replace(WEB, uid="u0")
    assert taken([WEB, other], pod(), before={"u1": "u2"}) == {"u1": "u2"}
    assert taken([WEB, other], before={"u1": "u2"}) == {"u1": "u2"}


def test_no_more_are_named_than_an_annotation_has_room_for():
    many = [replace(WEB, uid=str(number)) for number in range(MOST + 1)]
    assert merge_lost(many[:1], many) == tuple(many[:MOST])
    large = [replace(one, labels={"l": "x" * (ROOM // 4)}) for one in many[:5]]
    kept = merge_lost(large, [replace(WEB, uid="small")])
    assert [one.uid for one in kept] == ["0", "1", "2", "small"]
    assert len(msgspec.json.encode(kept)) <= ROOM


@pytest.mark.parametrize(
    ("others", "room"),
    [(0, ROOM), (192 * 1024, ROOM), (192 * 1024 + 1, ROOM - 1), (224 * 1024, 0), (255 * 1024, -31 * 1024)],
)
def test_on_a_node_that_is_full_of_annotations_none_is_named(others, room):
    ours = {"lastcall.dev/failover": "x" * 9999, "lastcall.dev/fenced": "x" * 9999}
    beside = room_beside({**ours, "k": "x" * (others - 1)} if others else ours)
    assert beside == room
    assert merge_lost((), [WEB], room=beside) == ((WEB,) if room > 0 else ())


@pytest.mark.parametrize(
    ("known", "found", "uids"),
    [
        ([], [(WEB, T1)], ["u1"]),
        ([WEB], [(WEB, T1)], []),
        ([WEB], [(replace(WEB, uid="u2"), T2)], []),
        ([WEB], [(replace(WEB, uid="u2"), T1)], ["u2"]),
        ([WEB], [(replace(WEB, uid="u2"), "")], ["u2"]),
        ([WEB], [(replace(WEB, uid="u2", owner="other"), T3)], ["u2"]),
        ([WEB], [(WEB, T1), (replace(WEB, uid="u2"), T3)], ["u2"]),
        ([WEB], [(replace(WEB, uid="u2"), T3), (replace(WEB, uid="u3"), T3)], ["u3"]),
        ([DB], [(replace(DB, uid="u2"), T3)], []),
        ([DB], [(replace(DB, uid="u2", name="db-1"), T3)], ["u2"]),
    ],
)
def test_a_pod_that_is_made_anew_on_the_lost_node_is_not_lost_beside_the_one_before(known, found, uids):
    assert [one.uid for one in newly_lost(known, found)] == uids
