"""Which pods are deleted at a shutdown, and what is written to them."""

import pytest
from msgspec.structs import replace
from support.agents.virtual_parts import pod

from lastcall import names
from lastcall.graceful.cluster import pod_changes
from lastcall.graceful.cluster.pod_changes import ObjectFate
from lastcall.model.pods import EmptyDir, EphemeralSource, HostPath, OwnerReference, PersistentClaimSource, Volume


def owned(kind, *, controller=True):
    one = pod("web")
    owner = OwnerReference(kind=kind, name="owner", uid="u", controller=controller)
    return replace(one, metadata=replace(one.metadata, owner_references=(owner,)))


@pytest.mark.parametrize(
    ("one", "fate"),
    [
        (owned("ReplicaSet"), ObjectFate.DELETED),
        (owned("StatefulSet"), ObjectFate.DELETED),
        (owned("Job"), ObjectFate.DELETED),
        (owned("CustomWorkload"), ObjectFate.DELETED),
        (owned("DaemonSet"), ObjectFate.KEPT),
        (owned("Node"), ObjectFate.KEPT),
        (owned("ReplicaSet", controller=False), ObjectFate.KEPT),
        (pod("bare"), ObjectFate.KEPT),
    ],
    ids=["ReplicaSet", "StatefulSet", "Job", "custom", "DaemonSet", "mirror", "owner without control", "bare"],
)
def test_pods_are_deleted_whose_controller_replaces_them_elsewhere(one, fate):
    assert pod_changes.object_fate(one) is fate


@pytest.mark.parametrize(("kind", "needed"), [("Job", True), ("ReplicaSet", False), ("DaemonSet", False)])
def test_a_jobs_pod_is_a_disruption_target_before_its_deletion(kind, needed):
    assert pod_changes.needs_disruption_target(owned(kind)) is needed


@pytest.mark.parametrize(("grace", "seconds"), [(0.0, 1), (0.3, 1), (1.0, 1), (1.2, 2), (30.0, 30)])
def test_a_deletion_never_removes_the_object_of_a_pod_that_runs(grace, seconds):
    assert pod_changes.deletion_grace(grace) == seconds


def test_a_pod_that_keeps_its_object_gets_no_terminal_phase():
    status = pod_changes.not_ready_patch(0.0)["status"]
    assert list(status) == ["conditions"]
    assert {one["type"]: one["status"] for one in status["conditions"]} == {
        names.READY: "False",
        names.CONTAINERS_READY: "False",
    }


def test_the_last_status_is_the_kubelets_at_a_shutdown():
    one = pod("web", sidecars=("proxy",), containers=("main", "lost"))
    status = pod_changes.final_patch(one, {"main": 0, "proxy": 143, "lost": None}, 60.0)["status"]
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed",
        "Terminated",
        "Pod was terminated in response to imminent node shutdown.",
    )
    target = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    [main] = status["containerStatuses"]
    assert (main["name"], main["state"]["terminated"]["exitCode"], main["state"]["running"]) == ("main", 0, None)
    assert main["state"]["terminated"]["finishedAt"] == "1970-01-01T00:01:00Z"
    [proxy] = status["initContainerStatuses"]
    assert (proxy["name"], proxy["state"]["terminated"]["reason"]) == ("proxy", "Error")


@pytest.mark.parametrize(
    ("path", "serves"),
    [
        ("/var/lib/kubelet/plugins/ebs.csi.aws.com", True),
        ("/var/lib/kubelet/plugins/", True),
        ("/var/lib/kubelet/plugins_registry", True),
        ("/data/kubelet/plugins_registry/", True),
        ("/var/lib/kubelet", False),
        ("/var/lib/kubelet/device-plugins", False),
        ("/opt/cni/bin", False),
    ],
)
def test_a_pod_with_a_kubelets_directory_of_plugins_runs_a_driver(path, serves):
    one = pod("driver")
    volumes = (Volume(name="tmp", empty_dir=EmptyDir()), Volume(name="socket", host_path=HostPath(path=path)))
    assert pod_changes.serves_volumes(replace(one, spec=replace(one.spec, volumes=volumes))) is serves


def test_volumes_behind_claims_are_attachable():
    volumes = (
        Volume(name="data", persistent_volume_claim=PersistentClaimSource(claim_name="data-0")),
        Volume(name="scratch", ephemeral=EphemeralSource()),
        Volume(name="tmp", empty_dir=EmptyDir()),
    )
    one = pod("db")
    assert pod_changes.attachable_volumes(replace(one, spec=replace(one.spec, volumes=volumes))) == ("data", "scratch")
