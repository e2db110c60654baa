"""The parts of the failover controller, each for itself: its own clock, alarms, what was sighted, what is left."""

from datetime import UTC, datetime

import msgspec
import pytest

from lastcall.failover.decisions import case_pods
from lastcall.failover.evidence.clock_jumps import ClockJumps
from lastcall.failover.evidence.facts import LeaseSeen, NodeSeen, PowerSeen
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.timer_queue import TimerQueue
from lastcall.failover.reporting import audit
from lastcall.failover.reporting.controller_events import CallReported
from lastcall.model.observed import FailoverPod, LiveNode, WatchedLease, WatchedNode
from lastcall.model.power import PowerState


def node(revision, boot="b1", ready="True", beat="1", taints=(), type_=WatchedNode, **metadata):
    said = {
        "metadata": {"name": "n", "resourceVersion": str(revision), **metadata},
        "spec": {"taints": list(taints)},
        "status": {
            "nodeInfo": {"bootID": boot, "systemUUID": "u"},
            "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": beat}],
        },
    }
    return msgspec.convert(said, type_)


def lease(revision, renewed, lasts=None):
    spec = {"renewTime": renewed, "leaseDurationSeconds": lasts}
    said = {"metadata": {"name": "n", "resourceVersion": str(revision)}, "spec": spec}
    return msgspec.convert(said, WatchedLease)


OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


# -- its own clock -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("boottime", "wall", "jumped"),
    [(1.0, 1.0, False), (1.5, 1.4, False), (1.0, 60.0, True), (1.0, -60.0, True), (30.0, 30.0, True)],
)
def test_a_clock_that_was_set_and_a_process_that_stood_still(boottime, wall, jumped):
    clock = ClockJumps()
    assert not clock.detect_jump(100.0, 1000.0)
    assert clock.detect_jump(100.0 + boottime, 1000.0 + wall) is jumped
    assert clock.stepped == (100.0 + boottime if jumped else None)


# -- alarms ------------------------------------------------------------------------------------------------------------


def test_an_alarm_goes_once_at_its_first_moment():
    alarms = TimerQueue()
    alarms.schedule("a", 5.0)
    alarms.schedule("b", 3.0)
    alarms.schedule("a", 9.0)
    alarms.schedule("b", 2.0)
    assert alarms.next_due == 2.0
    assert alarms.pop_due(4.0) == ["b"]
    assert alarms.pop_due(5.0) == ["a"]
    assert alarms.pop_due(100.0) == []
    alarms.schedule("a", 101.0)
    assert alarms.pop_due(101.0) == ["a"]


# -- sightings ---------------------------------------------------------------------------------------------------------


def test_what_is_there_at_the_first_look_is_no_sign_of_life():
    seen = NodeObservations("n", 100.0)
    seen.observe_node(node(1), 100.0)
    seen.observe_lease(lease(1, "r1"), 100.0, first=True)
    assert seen.heard is None
    assert seen.quiet_since == 100.0
    assert seen.boot.since == 100.0
    assert not [one for one in seen.all_facts() if isinstance(one, LeaseSeen)]


def test_what_a_kubelet_writes_is_one_and_what_others_write_is_none():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1), 1.0)
    seen.observe_node(node(2, taints=[OUT]), 2.0)
    assert seen.heard is None
    seen.observe_node(node(3, ready="Unknown", beat="1"), 3.0)
    assert seen.heard is None
    seen.observe_node(node(4, ready="False", beat="2"), 4.0)
    assert seen.heard == 4.0
    seen.observe_lease(lease(1, "r1"), 5.0, first=True)
    seen.observe_lease(lease(2, "r1"), 6.0)
    assert seen.heard == 4.0
    seen.observe_lease(lease(3, "r2"), 7.0)
    assert seen.heard == 7.0


def test_two_renewals_are_due_in_half_of_what_a_lease_lasts():
    seen = NodeObservations("n", 0.0)
    assert seen.fresh == 20.0
    seen.observe_lease(lease(1, "r1", lasts=40), 1.0)
    assert seen.fresh == 20.0
    seen.observe_lease(lease(2, "r1", lasts=12), 2.0)
    assert seen.fresh == 6.0
    seen.observe_lease(lease(1, "r0", lasts=100), 3.0)
    assert seen.fresh == 6.0
    seen.observe_lease(lease(3, "r2", lasts=1), 4.0)
    assert seen.fresh == 5.0
    seen.observe_lease(lease(4, "r3"), 5.0)
    assert seen.fresh == 20.0


def test_a_kubelets_last_report_is_kept_beside_what_was_written_in_its_place():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1), 1.0)
    seen.observe_node(node(2, beat="2"), 2.0)
    seen.observe_node(node(3, ready="Unknown", beat="2"), 3.0)
    assert {(one.ready, one.at) for one in seen.all_facts() if isinstance(one, NodeSeen)} == {
        ("True", 2.0),
        ("Unknown", 3.0),
    }


def test_what_is_older_than_what_was_seen_says_nothing():
    """A watch that is behind a live read would else bring an old boot back."""
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1), 1.0)
    seen.observe_node(node(5, boot="b2"), 2.0)
    seen.observe_node(node(3, beat="3"), 3.0)
    assert seen.boot.id == "b2"
    assert seen.heard == 2.0
    seen.observe_lease(lease(9, "r9"), 4.0)
    seen.observe_lease(lease(8, "r8"), 5.0)
    assert seen.heard == 4.0


def test_a_live_read_that_a_watch_has_overtaken_says_nothing():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(5), 1.0)
    asked = seen.known_revisions
    seen.observe_node(node(7, boot="b2"), 2.0)
    seen.observe_node(node(6, beat="2"), 3.0, since=asked[0])
    assert (seen.boot.id, seen.observed) == ("b2", 0.0)


def test_a_live_read_that_is_older_than_what_was_known_begins_anew():
    """Of an etcd that was restored: the Node shows a boot that is over, and what proved that is of another history."""
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(90, boot="b1"), 1.0)
    seen.observe_node(node(91, boot="b2"), 2.0)
    seen.observe_lease(lease(92, "r9"), 2.0)
    seen.add_fact(PowerSeen(boot_id="b1", source="bmc", power=PowerState.OFF, asked=1.5, answered=1.5))
    seen.observe_node(node(40, boot="b1"), 60.0, since=seen.known_revisions[0])
    assert (seen.observed, seen.heard, seen.quiet_since) == (60.0, None, 60.0)
    assert (seen.boot.id, seen.boot.since) == ("b1", 60.0)
    assert {type(one) for one in seen.all_facts()} == {NodeSeen}
    seen.observe_lease(lease(41, "r4"), 60.0, since=92)
    assert seen.heard is None, "it is as old as the Node"
    seen.observe_node(node(43, boot="b2", beat="9"), 61.0)
    assert (seen.boot.id, seen.heard) == ("b2", 61.0)


@pytest.mark.parametrize("what", ["node", "lease"])
def test_signs_of_life_count_again_after_history_went_back(what):
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(90), 1.0)
    seen.observe_lease(lease(91, "2026-11-22T10:00:00.000000Z"), 2.0)
    old = "2026-11-22T09:00:00.000000Z"
    if what == "node":
        seen.observe_node(node(40, beat="0"), 50.0, since=90)
        seen.observe_lease(lease(41, old), 50.0, since=91)
    else:
        seen.observe_lease(lease(41, old), 50.0, since=91)
        seen.observe_node(node(40, beat="0"), 50.0, since=90)
    assert seen.observed == 50.0
    seen.observe_lease(lease(45, "2026-11-22T10:00:40.000000Z"), 55.0)
    assert seen.heard == 55.0


def test_a_renewal_that_is_later_though_its_revision_is_lower_is_noticed_by_the_watch():
    seen = NodeObservations("n", 0.0)
    seen.observe_lease(lease(91, "2026-11-22T10:00:00.000000Z"), 2.0)
    seen.observe_lease(lease(90, "2026-11-22T09:59:50.000000Z"), 3.0)
    assert seen.observed == 0.0, "the watch was late"
    seen.observe_lease(lease(41, "2026-11-22T10:00:40.000000Z"), 42.0)
    assert (seen.observed, seen.heard) == (42.0, None)
    seen.observe_lease(lease(43, "2026-11-22T10:00:50.000000Z"), 52.0)
    assert seen.heard == 52.0


def test_another_boot_is_known_from_when_it_was_seen():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1), 1.0)
    seen.observe_node(node(2, boot="b2"), 50.0)
    assert (seen.boot.id, seen.boot.since) == ("b2", 50.0)
    assert {one.boot_id for one in seen.all_facts()} == {"b1", "b2"}
    seen.forget_facts()
    assert {one.boot_id for one in seen.all_facts()} == {"b2"}


def test_since_when_it_is_back_and_tainted_without_a_break():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1, taints=[OUT]), 1.0)
    seen.observe_node(node(2, taints=[OUT], beat="2"), 2.0)
    assert seen.tainted == 1.0
    assert seen.back == ("b1", 1.0)
    seen.observe_node(node(3, ready="False", beat="3"), 3.0)
    assert seen.tainted is None
    assert seen.back is None
    seen.observe_node(node(4, taints=[OUT], beat="4"), 4.0)
    assert seen.tainted == 4.0
    assert seen.back == ("b1", 4.0)


def test_answers_are_not_kept_without_end_but_the_first_ones_are():
    seen = NodeObservations("n", 0.0)
    seen.observe_node(node(1), 0.0)
    for number in range(100):
        seen.add_fact(
            PowerSeen(boot_id="b1", source="f", power=PowerState.OFF, asked=float(number), answered=float(number))
        )
    asked = [one.asked for one in seen.all_facts() if isinstance(one, PowerSeen)]
    assert len(asked) <= 16
    assert asked[0] == 0.0
    assert asked[-1] == 99.0


# -- what is left ------------------------------------------------------------------------------------------------------


def pod(*tolerations, **metadata):
    said = {
        "metadata": {"name": "p", "namespace": "d", "uid": "u", **metadata},
        "spec": {
            "nodeName": "n",
            "tolerations": list(tolerations),
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "ephemeral": {}}],
        },
    }
    return msgspec.convert(said, FailoverPod)


ALL = {"operator": "Exists"}
LATE = {**OUT, "timeAdded": "2026-01-01T00:01:30Z"}


@pytest.mark.parametrize(
    ("tolerations", "taints", "stays", "patient"),
    [
        ([], [], False, False),
        ([ALL], [], True, False),
        ([ALL], [OUT], True, False),
        ([{**ALL, "effect": "NoSchedule"}], [OUT], False, False),
        ([{**ALL, "tolerationSeconds": 60}], [OUT], True, False),
        ([{**ALL, "tolerationSeconds": 60}], [{**OUT, "timeAdded": "2026-01-01T00:00:00Z"}], False, False),
        ([{**ALL, "tolerationSeconds": 60}], [{**OUT, "timeAdded": "2026-01-01T00:01:00Z"}], False, False),
        ([{**ALL, "tolerationSeconds": 60}], [{**OUT, "timeAdded": "2026-01-01T00:01:30Z"}], True, True),
        ([{**ALL, "tolerationSeconds": 60}], [], False, True),
        ([{**ALL, "tolerationSeconds": 0}], [], False, False),
        ([{**ALL, "tolerationSeconds": 60}], [LATE, {**LATE, "effect": "NoSchedule"}], True, True),
        (
            [{**ALL, "effect": "NoExecute", "tolerationSeconds": 60}],
            [LATE, {**LATE, "effect": "NoSchedule"}],
            False,
            False,
        ),
    ],
)
def test_which_pods_are_to_stay(tolerations, taints, stays, patient):
    wall = datetime(2026, 1, 1, 0, 2, tzinfo=UTC).timestamp()
    found = case_pods.case_pod(pod(*tolerations), node(1, taints=taints, type_=LiveNode), {}, {}, wall)
    assert (found.tolerates, found.patient) == (stays, patient)


@pytest.mark.parametrize(
    ("word", "spared"),
    [("Disabled", True), ("disabled", True), ("no", True), ("", True), ("Enabled", False), (None, False)],
)
def test_a_word_that_nobody_knows_keeps_a_pod_from_being_forced(word, spared):
    annotations = {} if word is None else {"lastcall.dev/failover": word}
    found = case_pods.case_pod(pod(annotations=annotations), node(1, type_=LiveNode), {}, {}, 0.0)
    assert found.disabled is spared


def test_what_a_pod_says_of_itself_and_its_volumes():
    annotations = {"lastcall.dev/failover": "Disabled", "kubernetes.io/config.mirror": "x"}
    found = case_pods.case_pod(
        pod(annotations=annotations), node(1, type_=LiveNode), {("d", "c"): "pv1", ("d", "p-e"): "pv2"}, {}, 0.0
    )
    assert (found.disabled, found.mirror, found.volumes) == (True, True, ("pv1", "pv2"))


# -- the audit ---------------------------------------------------------------------------------------------------------


def test_a_line_says_what_was_done_by_whom_and_why():
    acted = CallReported(
        verb="off", node="n", boot_id="b", policy="p", why="w", evidence=("e",), began=10.0, ended=12.5, fencer="f"
    )
    line = audit.audit_entry(acted, by="me", wall=1000.0, now=13.0)
    assert line == {
        "audit": "off",
        "by": "me",
        "began": 997.0,
        "node": "n",
        "bootID": "b",
        "policy": "p",
        "outcome": "done",
        "why": "w",
        "evidence": ["e"],
        "seconds": 2.5,
        "fencer": "f",
    }
