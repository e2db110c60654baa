"""Plans for snapshots: each controller's round, by upstream's rules and by lastcall's."""

import pytest
from support.failover.snapshots import (
    OUT,
    UNREACHABLE,
    ago,
    attachment,
    detached,
    evicted,
    exists,
    kept,
    lease,
    node,
    out,
    planned,
    pod,
    removed,
    taint,
    volume,
)

BOTH = pytest.mark.parametrize("upstream", [False, True], ids=["lastcall", "upstream"])


# -- Pod GC: gc_controller.go ------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("effect", ["NoExecute", "NoSchedule", "PreferNoSchedule", ""])
def test_out_of_service_counts_by_its_key_on_a_node_that_is_not_ready(upstream, effect):
    """gcTerminating."""
    gone = node("n1", "Unknown", taint(OUT, effect, value="whatever"))
    assert removed(gone, pod("a", "n1", terminating=True), pod("b", "n1"), upstream=upstream) == {"a": "out-of-service"}


@BOTH
@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_a_node_without_ready_true_is_not_ready(upstream, ready):
    """nodeutil.IsNodeReady."""
    assert removed(out("n1", ready), pod("a", "n1", terminating=True), upstream=upstream) == {"a": "out-of-service"}


@BOTH
def test_a_node_that_is_ready_keeps_its_terminating_pods(upstream):
    going = pod("a", "n1", terminating=True)
    assert removed(out("n1", "True"), going, upstream=upstream) == {}
    assert removed(node("n1", "False"), going, upstream=upstream) == {}


def test_upstream_removes_orphans_whatever_they_are_when_the_quarantine_is_over():
    """gcOrphaned."""
    pods = [pod("a", "gone"), pod("b", "gone", phase="Succeeded"), pod("c", "gone", terminating=True), pod("d", "n1")]
    everything = dict.fromkeys("abc", "orphaned")
    assert removed(node("n1"), *pods, upstream=True, quarantine_elapsed=True) == everything
    assert removed(node("n1"), *pods, upstream=True) == {}


def test_lastcall_does_not_take_a_deleted_node_for_a_dead_machine():
    assert removed(pod("a", "gone"), pod("b", "gone", terminating=True), quarantine_elapsed=True) == {}
    said = "node gone is missing, and a deleted Node is not a dead machine"
    assert kept(pod("a", "gone"), quarantine_elapsed=True) == {"a": said}


@BOTH
def test_who_never_had_a_node_goes_when_he_is_deleted(upstream):
    """gcUnscheduledTerminating."""
    pods = [pod("a", terminating=True, phase="Pending"), pod("b", phase="Pending")]
    assert removed(node("n1"), *pods, upstream=upstream) == {"a": "unscheduled"}


@BOTH
def test_finished_pods_above_the_threshold_go(upstream):
    """gcTerminated, whatever the state of their nodes."""
    pods = [
        pod("old", "n1", phase="Succeeded", age=900),
        pod("older", "n1", phase="Failed", age=1000),
        pod("evicted", "n1", phase="Failed", reason="Evicted", age=10),
        pod("young", "n1", phase="Succeeded", age=100),
        pod("running", "n1", age=9999),
    ]
    rules = {"upstream": upstream}
    assert removed(node("n1"), *pods, finished=2, **rules) == {"evicted": "terminated", "older": "terminated"}
    assert removed(node("n1"), *pods, finished=4, **rules) == {}
    assert removed(node("n1"), *pods, finished=0, **rules) == {}
    assert removed(node("n1"), *pods, finished=-1, **rules) == {}
    assert removed(node("n1"), *pods, **rules) == {}


def test_the_first_rule_that_comes_to_a_pod_names_the_reason():
    """gc: terminated, terminating, orphaned, unscheduled."""
    pods = [
        pod("a", "n1", phase="Failed", age=9, terminating=True),
        pod("b", "n1", phase="Failed", age=8, terminating=True),
        pod("c", "gone", phase="Failed", age=7),
        pod("d", "gone", phase="Failed", age=6),
    ]
    said = {"a": "terminated", "b": "out-of-service", "c": "orphaned", "d": "orphaned"}
    assert removed(out("n1"), *pods, upstream=True, finished=3, quarantine_elapsed=True) == said
    assert removed(out("n1"), *pods, upstream=True, finished=1, quarantine_elapsed=True)["c"] == "terminated"


# -- lastcall's caution ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signs", "forced"),
    [
        ([], True),
        ([lease("n1", 51)], True),
        ([lease("n1", 50)], True),
        ([lease("n1", 49)], False),
        ([lease("n1", -30)], False),
        ([lease("n2", 1)], True),
        ([lease("n1", 1, namespace="kube-system")], True),
    ],
)
def test_nothing_is_forced_from_a_node_that_was_heard_of(signs, forced):
    objects = [out("n1"), pod("a", "n1", terminating=True), volume("v"), attachment("va", "v", "n1"), *signs]
    expected = ({"a": "out-of-service"}, {"va": "out-of-service"}) if forced else ({}, {})
    assert (removed(*objects), detached(*objects)) == expected
    assert removed(*objects, upstream=True) == {"a": "out-of-service"}
    assert detached(*objects, upstream=True) == {"va": "out-of-service"}


def test_the_heartbeat_of_the_condition_is_a_sign_too_and_the_newest_sign_counts():
    going = pod("a", "n1", terminating=True)
    assert removed(out("n1", "False", heard=20), going, lease("n1", 300)) == {}
    assert removed(out("n1", "False", heard=300), going, lease("n1", 20)) == {}
    assert removed(out("n1", "False", heard=300), going, lease("n1", 200)) == {"a": "out-of-service"}


def test_a_pod_that_tolerates_out_of_service_stays():
    gone = out("n1")
    objects = [
        gone,
        pod("all", "n1", terminating=True, tolerates=[exists()]),
        pod("it", "n1", terminating=True, tolerates=[exists(OUT, "NoExecute")]),
        pod("other", "n1", terminating=True, tolerates=[exists(UNREACHABLE)]),
        pod("else", "n1", terminating=True, tolerates=[exists(OUT, "NoSchedule")]),
    ]
    assert removed(*objects) == {"else": "out-of-service", "other": "out-of-service"}
    assert sorted(removed(*objects, upstream=True)) == ["all", "else", "it", "other"]
    assert kept(*objects)["all"] == "node n1 is out of service, which the pod tolerates"


def test_a_toleration_with_a_time_holds_until_the_time_is_over():
    going = pod("a", "n1", terminating=True, tolerates=[exists(OUT, seconds=60)])
    for since, forced in [({"timeAdded": ago(59)}, False), ({"timeAdded": ago(60)}, True), ({}, False)]:
        assert bool(removed(node("n1", "Unknown", taint(OUT, **since)), going)) is forced


@pytest.mark.parametrize("word", ["Disabled", "disabled", "false", ""])
def test_a_pod_that_may_not_be_forced_stays(word):
    """As the controller leaves it; Kubernetes does not know the annotation."""
    spared = pod("a", "n1", terminating=True, annotations={"lastcall.dev/failover": word})
    assert removed(out("n1"), spared) == {}
    assert evicted(out("n1"), spared).keys() == {"a"}
    assert removed(out("n1"), spared, upstream=True) == {"a": "out-of-service"}
    enabled = pod("a", "n1", terminating=True, annotations={"lastcall.dev/failover": "Enabled"})
    assert removed(out("n1"), enabled) == {"a": "out-of-service"}


def test_why_a_pod_that_may_not_be_forced_is_kept():
    spared = pod("a", "n1", terminating=True, tolerates=[exists()], annotations={"lastcall.dev/failover": "Disabled"})
    said = "node n1 is out of service, but the pod may not be forced, by its annotation lastcall.dev/failover"
    assert kept(out("n1"), spared) == {"a": said}


def test_every_taint_of_that_key_has_to_be_tolerated():
    gone = node("n1", "Unknown", taint(OUT, "NoExecute"), taint(OUT, "NoSchedule"))
    assert removed(gone, pod("a", "n1", terminating=True, tolerates=[exists(OUT, "NoExecute")])) == {
        "a": "out-of-service"
    }


# -- taint eviction: taint_eviction.go ---------------------------------------------------------------------------------


@BOTH
def test_pods_leave_at_once_or_when_their_time_is_over_also_from_healthy_nodes(upstream):
    objects = [
        node("n1", "True", taint("maintenance"), taint("hint", "NoSchedule")),
        pod("none", "n1"),
        pod("limited", "n1", tolerates=[exists("maintenance", seconds=300)]),
        pod("ever", "n1", tolerates=[exists("maintenance")]),
        pod("past", "n1", tolerates=[exists("maintenance", seconds=-5)]),
        pod("done", "n1", phase="Succeeded"),
        pod("going", "n1", terminating=True),
        pod("elsewhere", "n2"),
        pod("nowhere"),
    ]
    assert evicted(*objects, upstream=upstream) == {"none": 0, "limited": 300, "past": 0, "done": 0, "going": 0}


@BOTH
def test_the_first_match_for_each_taint_and_the_least_of_the_seconds(upstream):
    """GetMatchingTolerations, getMinTolerationTime."""
    objects = [
        node("n1", "True", taint("a"), taint("b")),
        pod("least", "n1", tolerates=[exists("a", seconds=300), exists("b", seconds=60)]),
        pod("first", "n1", tolerates=[exists("a", seconds=300), exists("a", seconds=5), exists("b")]),
        pod("half", "n1", tolerates=[exists("a", seconds=300)]),
    ]
    assert evicted(*objects, upstream=upstream) == {"least": 60, "first": 300, "half": 0}


def test_the_time_runs_since_the_taint_was_made_but_upstream_starts_anew():
    objects = [
        node("n1", "Unknown", taint(UNREACHABLE, timeAdded=ago(100)), taint("b")),
        pod("a", "n1", tolerates=[exists(UNREACHABLE, seconds=300), exists("b", seconds=250)]),
        pod("b", "n1", tolerates=[exists(UNREACHABLE, seconds=90), exists("b", seconds=250)]),
        pod("c", "n1", tolerates=[exists(UNREACHABLE, seconds=400), exists("b", seconds=250)]),
    ]
    assert evicted(*objects) == {"a": 200, "b": 0, "c": 250}
    assert evicted(*objects, upstream=True) == {"a": 250, "b": 90, "c": 250}


def test_a_taint_from_the_future_gives_no_time():
    objects = [
        node("n1", "Unknown", taint("a", timeAdded=ago(-50))),
        pod("a", "n1", tolerates=[exists("a", seconds=9)]),
    ]
    assert evicted(*objects) == {"a": 9}


def test_comparisons_count_where_they_are_enabled():
    tolerant = {"key": "load", "operator": "Lt", "value": "80", "effect": "NoExecute"}
    objects = [node("n1", "True", taint("load", value="70")), pod("a", "n1", tolerates=[tolerant])]
    assert evicted(*objects) == {"a": 0}
    assert evicted(*objects, comparisons=True) == {}


# -- who is left alone -------------------------------------------------------------------------------------------------


@BOTH
def test_who_is_kept(upstream):
    ever = {"tolerates": [exists()]}
    objects = [
        node("healthy", "True", taint("a")),
        node("sick", "False"),
        node("tainted", "Unknown", taint(UNREACHABLE)),
        out("ready", "True"),
        pod("healthy-1", "healthy", **ever),
        pod("sick-1", "sick"),
        pod("sick-2", "sick", terminating=True),
        pod("tainted-1", "tainted", **ever),
        pod("tainted-2", "tainted"),
        pod("ready-1", "ready", terminating=True, **ever),
        pod("missing-1", "gone"),
        pod("pending-1"),
    ]
    said = kept(*objects, upstream=upstream)
    missing = (
        "and a deleted Node is not a dead machine" if not upstream else "but not for longer than the quarantine of 40s"
    )
    confirm = "its kubelet has to confirm the end"
    assert said == {
        "missing-1": f"node gone is missing, {missing}",
        "ready-1": f"it is terminating, and node ready is out of service, but Ready: {confirm}",
        "sick-1": "node sick is not Ready, but not out of service, and has no NoExecute taint",
        "sick-2": f"it is terminating, and node sick is not Ready, but not out of service: {confirm}",
        "tainted-1": "it tolerates the NoExecute taints of node tainted for ever",
    }


def test_why_nothing_is_forced_although_the_node_is_out_of_service():
    tolerant = pod("a", "n1", terminating=True, tolerates=[exists()])
    said = "node n1 is not Ready, but was heard of 12s ago"
    assert kept(out("n1"), lease("n1", 12), tolerant) == {"a": said}
    assert kept(out("n1"), lease("n1", -50), tolerant) == {"a": said.replace("12s ago", "50s later")}
    assert kept(out("n1"), lease("n1", -51), tolerant) == {"a": said.replace("12s ago", "51s later (is --now right?)")}


def test_a_pod_can_be_removed_and_evicted_in_one_round_but_is_not_kept_then():
    plan = planned(out("n1"), pod("a", "n1", terminating=True))
    assert [len(plan[name]) for name in ("forceDelete", "evict", "keep")] == [1, 1, 0]


def test_lists_are_sorted_and_their_fields_are_a_contract():
    objects = [
        out("n1"),
        *(pod(name, "n1", terminating=True, namespace=ns) for name, ns in [("b", "y"), ("a", "y"), ("z", "x")]),
        *(pod(name, "n1", namespace=ns, tolerates=[exists()]) for name, ns in [("d", "y"), ("c", "y"), ("w", "x")]),
        *(volume(name) for name in "vw"),
        attachment("va-2", "v", "n1"),
        attachment("va-1", "w", "n1"),
    ]
    plan = planned(*objects)
    assert list(plan) == ["forceDelete", "forceDetach", "evict", "keep"]
    assert [(one["namespace"], one["name"]) for one in plan["forceDelete"]] == [("x", "z"), ("y", "a"), ("y", "b")]
    assert [(one["namespace"], one["name"]) for one in plan["evict"]] == [("x", "z"), ("y", "a"), ("y", "b")]
    assert [(one["namespace"], one["name"]) for one in plan["keep"]] == [("x", "w"), ("y", "c"), ("y", "d")]
    assert plan["forceDetach"][0] == {"volumeAttachment": "va-1", "node": "n1", "reason": "out-of-service"}
    assert plan["forceDelete"][0] == {"namespace": "x", "name": "z", "reason": "out-of-service"}
    assert plan["evict"][0] == {"namespace": "x", "name": "z", "at": "2026-11-21T12:00:00Z"}
    assert list(plan["keep"][0]) == ["namespace", "name", "why"]
