"""The table of a shutdown beside a kubelet, line by line, with the kubelet as a program of its own: with lastcall, and
with the kubelet's own shutdown manager where the difference matters.

Kubelet and agent are programs, beside a real systemd, logind and containerd, a CSI driver, and the lab's API server with
RBAC and the Node authorizer. One night is played; each test judges one line of it.
"""

import asyncio

import pytest
from support.beside.story import condition_of, marks, on_node, play_night, ready_addresses
from support.beside.workloads import NODE, OTHER
from support.host import service_manager
from support.runtimes import containerd_world

from lastcall.model.shutdown import PhaseEnd, PodOutcome, ShutdownOutcome
from lastcall_lab.private_logind import PrivateLogind

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("containerd-beside")]

NOT_READY = ("False", "KubeletNotReady", "node is shutting down")
DELETED = ("web", "db", "raw", "job")
KEPT = ("bare", "plain", "critical", "static")


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    if reason := containerd_world.why_not() or service_manager.why_not() or PrivateLogind.why_not():
        pytest.skip(reason)
    return asyncio.run(play_night(tmp_path_factory.mktemp("beside")))


def wrote(night, pod, what, span, *, node=NODE):
    """When pods of that name, or with a controller of that name, wrote it during a shutdown, on a node."""
    return night.node.workloads.times(pod, what, node=node, since=span.began, until=span.released)


def pods(night, name, span):
    """Versions of the pods whose names begin so, of those that were on the node, during a shutdown and before the boot."""
    found = night.history.of("pods", name, since=span.began, until=span.released)
    return [version for version in found if version.obj["spec"].get("nodeName") == NODE]


def before(night, name):
    """The pods of that name on the node when the shutdown began, by uid."""
    last = {v.obj["metadata"]["uid"]: v for v in night.history.of("pods", name, until=night.beside.began)}
    return {uid: v.obj for uid, v in last.items() if not v.gone and v.obj["spec"].get("nodeName") == NODE}


def attachments(night, claim):
    """Versions of the VolumeAttachments of a claim's volume since the shutdown began."""
    found = night.history.of("volumeattachments", since=night.beside.began)
    return [v for v in found if v.obj["spec"]["source"]["persistentVolumeName"] == night.volumes[claim]]


def node_versions(night, span):
    return [v for v in night.history.of("nodes", NODE, since=span.began, until=span.released) if v.name == NODE]


def is_attached(attachment):
    return attachment.get("status", {}).get("attached", False)


class TestKubelet:
    """The lab's kubelet does what a kubelet was seen doing."""

    def test_it_restarts_what_others_have_stopped(self, night):
        for pod in ("plain", "critical", "static"):
            assert night.node.workloads.times(pod, "start", since=night.disturbed)[0] < night.beside.began

    def test_it_makes_a_mirror_pod_anew_and_ends_no_container_for_it(self, night):
        [uid] = before(night, "static")
        assert uid != night.mirror
        [first] = {v.obj["metadata"]["uid"] for v in night.history.of("pods", "static", until=night.disturbed)}
        assert first == night.mirror
        starts = night.node.workloads.times("static", "start", until=night.beside.began)
        assert len(starts) == 2, "at first, and when its container had been ended"

    def test_it_writes_its_own_readiness_over_that_of_others(self, night):
        seen = night.history.of("nodes", NODE, since=night.disturbed, until=night.beside.began)
        reasons = [condition_of(v.obj, "Ready").get("reason") for v in seen]
        assert reasons.index("Disturbed") < len(reasons) - 1 - reasons[::-1].index("KubeletReady")
        assert reasons[-1] == "KubeletReady"

    def test_it_has_the_identity_of_its_node_alone(self, night):
        assert f'nodes "{OTHER}" is forbidden: User "system:node:{NODE}"' in night.refused


class TestBeside:
    """With lastcall beside it."""

    def test_the_node_is_not_ready_at_once_and_cordoned(self, night):
        first, *_ = node_versions(night, night.beside)
        ready = condition_of(first.obj, "Ready")
        assert (ready["status"], ready["reason"], ready["message"]) == NOT_READY
        assert first.at < min(wrote(night, "(db|plain|job)", "exit", night.beside)), "before the first of its pods ends"
        last = node_versions(night, night.beside)[-1].obj
        assert last["spec"]["unschedulable"]
        assert condition_of(last, "GracefulNodeShutdownInProgress")["status"] == "True"
        assert condition_of(last, "DrainInProgress")["status"] == "True"

    def test_nobody_says_that_the_node_is_ready_until_the_boot(self, night):
        """But for the kubelet that somebody starts, until it is stopped again and the agent has corrected it."""
        seen = night.history.of("nodes", NODE, since=night.beside.began, until=night.boot)[1:]
        ready = [v.at for v in seen if v.name == NODE and condition_of(v.obj, "Ready")["status"] != "False"]
        assert all(night.kubelet_started_again < at < night.corrected for at in ready)

    def test_the_lease_is_renewed_while_the_kubelet_is_stopped(self, night):
        assert night.history.of("leases", NODE, since=night.kubelet_stopped, until=night.kubelet_started_again)

    def test_pods_leave_their_service_before_they_get_sigterm(self, night):
        slices = night.history.of("endpointslices", "web", since=night.beside.began)
        out = next(v.at for v in slices if not ready_addresses(v.obj, NODE))
        terms = wrote(night, "web", "TERM", night.beside)
        assert len(terms) == 2
        assert out < min(terms)

    def test_a_static_pod_leaves_its_service_before_it_gets_sigterm(self, night):
        slices = night.history.of("endpointslices", "static", until=night.beside.released)
        assert [v for v in slices if v.at < night.beside.began and ready_addresses(v.obj, NODE)]
        out = next(v.at for v in slices if v.at > night.beside.began and not ready_addresses(v.obj, NODE))
        [term] = wrote(night, "static", "TERM", night.beside)
        assert out < term

    def test_critical_pods_end_in_the_critical_phase(self, night):
        critical = [wrote(night, pod, "TERM", night.beside) for pod in ("critical", "static")]
        others = [
            at for pod in (*DELETED, "plain", "bare", "bare-sidecar") for at in wrote(night, pod, "exit", night.beside)
        ]
        assert len(others) == 8, "two of web, two containers of bare"
        assert [len(terms) for terms in critical] == [1, 1]
        assert min(at for terms in critical for at in terms) >= max(others)
        assert [phase.end for phase in night.record.phases] == [PhaseEnd.DONE] * 2

    def test_a_sidecar_ends_after_its_app(self, night):
        [app] = wrote(night, "bare", "exit", night.beside)
        [term] = wrote(night, "bare-sidecar", "TERM", night.beside)
        assert term >= app

    def test_every_pod_ends_by_itself(self, night):
        assert {pod.outcome for pod in night.record.pods} == {PodOutcome.GRACEFUL}
        assert night.record.outcome is ShutdownOutcome.COMPLETED

    def test_pods_of_controllers_are_deleted_and_replaced_elsewhere_before_the_release(self, night):
        for name in DELETED:
            gone = [v for v in pods(night, name, night.beside) if v.gone]
            assert {v.obj["metadata"]["uid"] for v in gone} == {*before(night, name)}, name
        assert len(wrote(night, "web", "start", night.beside, node=OTHER)) == 2
        assert wrote(night, "db", "start", night.beside, node=OTHER), "the volume, too, is there"

    def test_two_pods_of_a_stateful_set_never_live_at_once(self, night):
        [ended] = wrote(night, "db", "exit", night.beside)
        assert wrote(night, "db", "start", night.beside, node=OTHER)[0] > ended
        made = min(
            v.at
            for v in night.history.of("pods", "db", since=night.beside.began)
            if v.obj["metadata"]["uid"] not in before(night, "db")
        )
        assert made > ended

    def test_the_volume_is_unmounted_and_detached_before_another_node_has_it(self, night):
        assert len([path for path in night.mounts_before if "/volumeDevices/" not in path]) == 2, "staged and published"
        assert night.mounts == []
        seen = attachments(night, "data-db-0")
        detached = next(v.at for v in seen if v.gone and v.obj["spec"]["nodeName"] == NODE)
        attached = next(v.at for v in seen if v.obj["spec"]["nodeName"] == OTHER and is_attached(v.obj))
        [ended] = wrote(night, "db", "exit", night.beside)
        assert ended < detached < attached < night.beside.released
        assert not node_versions(night, night.beside)[-1].obj["status"].get("volumesInUse")

    def test_a_block_device_is_unmapped_and_closed_before_it_is_detached(self, night):
        mapped = [path for path in night.mounts_before if "/volumeDevices/" in path]
        assert len(mapped) == 2, "published, and the kubelet's own"
        assert night.written.startswith(b"written\n"), "the pod has had it as a device"
        assert night.loops == []
        detached = next(v.at for v in attachments(night, "raw-raw-0") if v.gone and v.obj["spec"]["nodeName"] == NODE)
        [ended] = wrote(night, "raw", "exit", night.beside)
        assert ended < detached < night.beside.released

    def test_the_job_counts_no_failure(self, night):
        [job] = night.history.current("jobs", "job")
        assert not job["status"].get("failed")
        assert condition_of(job, "Failed") == {}
        deleted = [v.obj for v in pods(night, "job", night.beside) if v.obj["metadata"].get("deletionTimestamp")]
        first, *_, last = deleted
        assert condition_of(first, "DisruptionTarget").get("status") == "True", "before its DELETE"
        assert condition_of(last, "DisruptionTarget")["reason"] == "TerminationByKubelet"
        [container] = last["status"]["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == 3, "by its exit code it has failed"

    def test_other_pods_keep_their_objects_and_are_not_ready(self, night):
        for name in KEPT:
            [kept] = before(night, name)
            seen = pods(night, name, night.beside)
            assert {v.obj["metadata"]["uid"] for v in seen} == {kept}
            assert not any(v.gone or v.obj["metadata"].get("deletionTimestamp") for v in seen)
            assert seen[-1].obj["status"]["phase"] == "Running", "a terminal phase would be final"
            assert condition_of(seen[-1].obj, "Ready")["status"] == "False"
            assert seen[0].at < min(wrote(night, f"{name}", "exit", night.beside))

    def test_a_kubelet_that_somebody_starts_is_stopped_again_and_reported(self, night):
        assert night.kubelet_started_again < min(wrote(night, "critical", "TERM", night.beside))
        assert [note.text for note in night.record.notes if "was started during the shutdown" in note.text]

    def test_a_late_static_pod_waits_for_the_boot(self, night):
        assert wrote(night, "tardy", "start", night.beside) == []
        assert night.node.workloads.times("tardy", "start", since=night.boot)

    def test_a_late_pod_waits_for_the_boot(self, night):
        assert wrote(night, "late", "start", night.beside) == []
        assert {v.obj["status"]["phase"] for v in pods(night, "late", night.beside)} == {"Pending"}
        assert night.node.workloads.times("late", "start", since=night.boot)


class TestAfterBoot:
    """The next boot."""

    def test_pods_that_kept_their_objects_restart_in_place(self, night):
        for name in KEPT:
            [uid] = before(night, name)
            now = night.history.of("pods", name, until=night.cancelled.began)[-1]
            assert now.obj["metadata"]["uid"] == uid
            assert night.node.workloads.times(name, "start", since=night.boot)[0] < night.settled
            assert all(one["restartCount"] for one in now.obj["status"]["containerStatuses"])

    def test_no_pod_is_ready_before_it_runs_again(self, night):
        for name in KEPT:
            ready = [
                v.obj["status"]["containerStatuses"]
                for v in night.history.of("pods", name, since=night.boot, until=night.settled + 1)
                if condition_of(v.obj, "Ready")["status"] == "True"
            ]
            assert all(one["restartCount"] for found in ready for one in found)

    def test_the_node_is_as_before(self, night):
        node = [v for v in night.history.of("nodes", NODE, until=night.settled) if v.name == NODE][-1].obj
        assert not node["spec"].get("unschedulable")
        assert condition_of(node, "Ready")["status"] == "True"
        assert condition_of(node, "GracefulNodeShutdownInProgress") == condition_of(node, "DrainInProgress") == {}
        assert marks(node) == []

    def test_what_was_deleted_stays_elsewhere(self, night):
        for name in ("web", "db"):
            there = [v.obj for v in night.history.of("pods", name, since=night.boot, until=night.settled)]
            assert on_node(there) == []

    def test_what_a_kubelet_had_rejected_is_deleted(self, night):
        [*_, last] = night.history.of("pods", "corpse")
        assert last.gone
        assert night.boot < last.at < night.cancelled.began

    def test_the_shutdown_record_is_complete(self, night):
        status = night.history.of("nodeshutdowns", NODE, until=night.settled)[-1].obj["status"]
        assert status["outcome"] == "Completed"
        assert status["returnedTime"]


class TestCancelled:
    """A shutdown that does not happen."""

    def test_pods_of_later_phases_are_untouched(self, night):
        assert wrote(night, "plain", "TERM", night.cancelled)
        assert wrote(night, "critical", "TERM", night.cancelled) == []
        assert night.cancelled_record.outcome is ShutdownOutcome.CANCELLED

    def test_the_kubelet_is_back_and_restarts_what_has_ended(self, night):
        assert wrote(night, "bare", "start", night.cancelled)
        last = node_versions(night, night.cancelled)[-1].obj
        assert condition_of(last, "Ready")["status"] == "True"
        assert not last["spec"].get("unschedulable")
        assert marks(last) == []


class TestWithoutLastcall:
    """The kubelet's own graceful shutdown, to compare."""

    def test_pods_get_sigterm_while_they_are_in_their_service(self, night):
        slices = night.history.of("endpointslices", "web", since=night.alone.began)
        [out, *_] = [v.at for v in slices if not ready_addresses(v.obj, NODE)]
        assert out > max(wrote(night, "web", "TERM", night.alone))

    def test_what_has_ended_stays_as_a_corpse(self, night):
        left = {v.obj["metadata"]["name"]: v.obj for v in pods(night, "", night.alone) if not v.gone}
        phases = {name: pod["status"]["phase"] for name, pod in left.items()}
        assert phases["bare"] == "Succeeded", "it was interrupted, and never runs again"
        assert [phase for name, phase in phases.items() if name.startswith("web")] == ["Succeeded"] * 2

    def test_a_late_pod_is_rejected(self, night):
        last = pods(night, "too-late", night.alone)[-1].obj["status"]
        message = "Pod was rejected: Pod was rejected as the node is shutting down."
        assert (last["phase"], last["reason"], last["message"]) == ("Failed", "NodeShutdown", message)

    def test_the_node_is_not_ready_and_not_cordoned(self, night):
        last = node_versions(night, night.alone)[-1].obj
        ready = condition_of(last, "Ready")
        assert (ready["status"], ready["reason"], ready["message"]) == NOT_READY
        assert not last["spec"].get("unschedulable")

    def test_critical_pods_and_sidecars_come_last_here_too(self, night):
        [critical] = wrote(night, "critical", "TERM", night.alone)
        assert critical >= max(at for pod in ("web", "plain", "bare") for at in wrote(night, pod, "exit", night.alone))
