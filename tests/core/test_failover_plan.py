"""Plans for snapshots: each controller's round, by upstream's rules and by lastcall's."""

import pytest
from support.clusters import (
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
    unique,
    volume,
)

from lastcall.model.volumes import attachment_name

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


@pytest.mark.parametrize("word", ["Disabled", "disabled", "false"])
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


@pytest.mark.parametrize(
    "stays",
    [{"tolerates": [exists()]}, {"annotations": {"lastcall.dev/failover": "Disabled"}}],
    ids=["tolerates", "spared"],
)
def test_who_stays_keeps_the_volume_by_lastcalls_rules(stays):
    """Upstream goes by what the kubelet last said of the containers, which is not sure (``IsPodTerminated``)."""
    still = pod("a", "n1", terminating=True, claim="c", states=("waiting",), **stays)
    disk = [volume("v", "c"), attachment("va", "v", "n1")]
    assert detached(out("n1"), still, *disk) == {}
    assert detached(out("n1"), still, *disk, upstream=True) == {"va": "out-of-service"}
    over = pod("a", "n1", terminating=True, claim="c", phase="Succeeded", states=(), **stays)
    assert detached(out("n1"), over, *disk) == {"va": "out-of-service"}
    going = pod("a", "n1", terminating=True, claim="c", states=("waiting",))
    assert detached(out("n1"), going, *disk) == {"va": "out-of-service"}
    waits = detached(node("n1", "Unknown"), still, *disk, detach_timeout_elapsed=True)
    assert waits == {"va": "timeout"}


def test_every_taint_of_that_key_has_to_be_tolerated():
    gone = node("n1", "Unknown", taint(OUT, "NoExecute"), taint(OUT, "NoSchedule"))
    assert removed(gone, pod("a", "n1", terminating=True, tolerates=[exists(OUT, "NoExecute")])) == {
        "a": "out-of-service"
    }


# -- attach-detach: reconciler.go --------------------------------------------------------------------------------------


def attached(where, *pods, in_use=True, name="v"):
    """A volume at n1, and its claim."""
    where["status"]["volumesAttached"] = [{"name": unique(name)}]
    where["status"]["volumesInUse"] = [unique(name)] if in_use else []
    return [where, *pods, volume(name, "data-db-0"), attachment("va", name, "n1")]


@BOTH
def test_out_of_service_detaches_at_once_what_no_pod_wants(upstream):
    assert detached(*attached(out("n1")), upstream=upstream) == {"va": "out-of-service"}
    assert detached(*attached(out("n1"), in_use=False), upstream=upstream) == {"va": "out-of-service"}
    assert detached(*attached(node("n1", "Unknown")), upstream=upstream) == {}


@BOTH
@pytest.mark.parametrize(
    ("user", "goes"),
    [
        ({}, False),
        ({"terminating": True}, False),
        ({"terminating": True, "states": ["running", "terminated"]}, False),
        ({"terminating": True, "states": ["waiting", "terminated"]}, True),
        ({"terminating": True, "states": []}, True),
        ({"states": ["terminated"]}, False),
        ({"phase": "Failed"}, True),
        ({"phase": "Succeeded"}, True),
    ],
)
def test_a_pod_that_wants_the_volume_holds_it(upstream, user, goes):
    """IsPodTerminated, and DetermineVolumeAction: what Pod GC does in the same round is not seen."""
    objects = attached(out("n1"), pod("db-0", "n1", claim="data-db-0", **user))
    assert detached(*objects, upstream=upstream) == ({"va": "out-of-service"} if goes else {})


@BOTH
def test_pods_of_other_nodes_claims_and_namespaces_do_not_hold_it(upstream):
    others = [
        pod("a", "n2", claim="data-db-0"),
        pod("b", "n1", claim="data-db-1"),
        pod("c", "n1", claim="data-db-0", namespace="elsewhere"),
        pod("d", claim="data-db-0"),
    ]
    assert detached(node("n2"), *attached(out("n1"), *others), upstream=upstream) == {"va": "out-of-service"}


@BOTH
def test_claims_of_ephemeral_volumes_hold_theirs(upstream):
    user = pod("db", "n1")
    user["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    objects = [out("n1"), user, volume("v", "db-scratch"), attachment("va", "v", "n1")]
    assert detached(*objects, upstream=upstream) == {}


def test_the_volume_of_a_claim_that_is_gone_is_not_wanted():
    user = pod("db-0", "n1", claim="data-db-0")
    old, new = volume("old", "data-db-0", phase="Released"), volume("new", "data-db-0")
    objects = [out("n1"), user, old, new, attachment("va-old", "old", "n1"), attachment("va-new", "new", "n1")]
    assert detached(*objects) == {"va-old": "out-of-service"}


def test_only_upstream_detaches_by_force_from_a_node_that_is_ready():
    objects = attached(out("n1", "True"))
    assert detached(*objects, upstream=True) == {"va": "out-of-service"}
    assert detached(*objects) == {}


@BOTH
def test_the_timeout_is_for_nodes_that_are_not_ready_and_can_be_disabled(upstream):
    sick, rules = attached(node("n1", "Unknown")), {"upstream": upstream, "detach_timeout_elapsed": True}
    assert detached(*sick, **rules) == {"va": "timeout"}
    assert detached(*sick, force_on_timeout=False, **rules) == {}
    assert detached(*attached(node("n1")), **rules) == {}
    assert detached(*attached(out("n1")), **rules) == {"va": "timeout"}
    assert detached(*attached(out("n1")), force_on_timeout=False, **rules) == {"va": "out-of-service"}


def test_the_volumes_of_a_missing_node_go_by_timeout_upstream_alone():
    objects = [pod("db-0", "n1", claim="data-db-0"), volume("v", "data-db-0"), attachment("va", "v", "n1")]
    assert detached(*objects, upstream=True) == {}
    assert detached(*objects, upstream=True, detach_timeout_elapsed=True) == {"va": "timeout"}
    assert detached(*objects, detach_timeout_elapsed=True) == {}


def test_upstream_counts_by_timeout_also_what_was_unmounted():
    """RecordForcedDetachMetric asks for the timeout, not for the mount."""
    objects = attached(node("n1"), in_use=False)
    assert detached(*objects, upstream=True, detach_timeout_elapsed=True) == {"va": "timeout"}
    assert detached(*objects, detach_timeout_elapsed=True) == {}


@BOTH
def test_volumes_of_drivers_that_have_moved_to_csi_are_known_by_their_own_names(upstream):
    """processVolumeAttachments translates them."""
    moved = volume("v", "data-db-0")
    moved["spec"]["awsElasticBlockStore"] = moved["spec"].pop("csi")
    objects = [out("n1"), moved, attachment("va", "v", "n1")]
    assert detached(*objects, upstream=upstream) == {"va": "out-of-service"}
    assert detached(*objects, pod("db-0", "n1", claim="data-db-0"), upstream=upstream) == {}


@BOTH
def test_a_volume_counts_as_mounted_until_its_node_has_shown_that_it_is_not(upstream):
    """actual_state_of_world.go: AddVolumeNode assumes it of volumes that the node does not report."""
    objects = [node("n1"), volume("v"), attachment("va", "v", "n1")]
    assert detached(*objects, upstream=upstream, detach_timeout_elapsed=True) == {}


@BOTH
def test_an_attachment_of_an_unknown_volume_is_left_alone_unless_its_node_reports_it(upstream):
    """processVolumeAttachments passes over it; populateActualStateOfWorld takes what the node reports."""
    name = attachment_name("disk.example.com", "handle-v", "n1")
    attachments = [attachment("va", "v", "n1"), attachment(name, "v", "n1")]
    assert detached(out("n1"), *attachments, upstream=upstream) == {}
    assert detached(out("n1", attached=[unique("v"), "kubernetes.io/other/x"]), *attachments, upstream=upstream) == {
        name: "out-of-service"
    }


def test_an_unknown_volume_may_be_that_of_a_claim_that_is_not_explained():
    """A state without its PersistentVolumes; to upstream such a claim means nothing."""
    name = attachment_name("disk.example.com", "handle-v", "n1")
    gone, own = out("n1", attached=[unique("v")]), attachment(name, "v", "n1")
    user = pod("a", "n1", claim="c")
    assert detached(gone, own, user) == {}
    assert detached(gone, own, user, upstream=True) == {name: "out-of-service"}
    for other in (pod("a", "n2", claim="c"), pod("a", "n1"), pod("a", "n1", claim="c", phase="Failed")):
        assert detached(gone, own, other, node("n2")) == {name: "out-of-service"}
    assert detached(gone, own, user, volume("w", "c")) == {name: "out-of-service"}
    known = attachment("va-w", "w", "n1")
    assert detached(gone, known, user, volume("w")) == {"va-w": "out-of-service"}


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
    assert kept(out("n1"), lease("n1", -90), tolerant) == {"a": said.replace("12s ago", "1m30s later")}


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
