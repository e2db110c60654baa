"""Plans for snapshots: which volumes are detached by force, as reconciler.go of attach-detach and lastcall's caution say."""

import pytest
from support.failover.snapshots import attachment, detached, exists, node, out, pod, unique, volume

from lastcall.model.volumes import attachment_name

BOTH = pytest.mark.parametrize("upstream", [False, True], ids=["lastcall", "upstream"])


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
@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("user", [{"phase": "Succeeded"}, {"phase": "Failed"}, {"terminating": True, "states": []}])
def test_no_node_keeps_the_volumes_of_terminated_pods(upstream, user, value):
    """addNodeToDswp reads one annotation alone in 1.36, not that of older versions; IsPodTerminated decides by itself."""
    gone = out("n1")
    gone["metadata"]["annotations"] = {
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "volumes.kubernetes.io/keep-terminated-pod-volumes": value,
    }
    objects = attached(gone, pod("db-0", "n1", claim="data-db-0", **user))
    assert detached(*objects, upstream=upstream) == {"va": "out-of-service"}


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
