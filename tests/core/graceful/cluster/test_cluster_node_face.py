"""The agent's writes to its Node and pods, in virtual time, as the kubelet's identity at the lab's API server."""

import asyncio

import pytest
from msgspec.structs import replace
from support.agents.face_cluster import in_cluster
from support.kube.api_servers import Wire

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.aio import cancel_and_wait
from lastcall.errors import NotFound
from lastcall.graceful.cluster.cluster_node_face import AFTER_SIGTERM_SECONDS, LAST_SECONDS, STOP_SECONDS
from lastcall.graceful.cluster.node_announcement import RENEW_SECONDS
from lastcall.graceful.cluster.traffic_wait import ANSWER_SECONDS
from lastcall.ports.node import PrioritySource
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.control_plane.identities import kubelet_identity


@in_cluster
async def test_the_node_is_announced_and_everything_is_undone_after_a_cancel(cluster):
    await cluster.begin_shutdown()
    assert await cluster.conditions() == {
        names.READY: ("False", "KubeletNotReady"),
        "GracefulNodeShutdownInProgress": ("True", "NodeShutdown"),
        "DrainInProgress": ("True", "NodeShutdown"),
    }
    assert (await cluster.node())["spec"]["unschedulable"] is True
    await cluster.face.mark_ready()
    node = await cluster.node()
    assert "unschedulable" not in node["spec"]
    assert names.NODE_SHUTDOWN_MARK not in node["metadata"].get("annotations", {})
    assert list(await cluster.conditions()) == [names.READY]
    assert cluster.kubelet.whens("back")


@in_cluster
async def test_a_cordon_of_somebody_else_stays(cluster):
    await cluster.admin.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await cluster.face.begin_shutdown(100)
    await cluster.face.mark_ready()
    assert (await cluster.node())["spec"]["unschedulable"] is True


@in_cluster
async def test_the_next_boots_agent_undoes_it(cluster):
    await cluster.face.begin_shutdown(100)
    await cluster.face.close()
    await cluster.face.clean_up(None)
    await cluster.clock.sleep(1)
    assert "unschedulable" not in (await cluster.node())["spec"]
    assert "DrainInProgress" not in await cluster.conditions()


@in_cluster
async def test_a_kubelet_that_writes_ready_is_corrected_and_the_lease_is_renewed(cluster):
    await cluster.face.begin_shutdown(100)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting ready"}
    for _ in range(3):
        await cluster.admin.patch(NODES, "n1", {"status": {"conditions": [ready]}}, subresource="status")
        before = (await cluster.admin.get(LEASES, "n1", namespace="kube-node-lease"))["spec"].get("renewTime", "")
        await cluster.clock.sleep(RENEW_SECONDS + 1)
        assert (await cluster.conditions())[names.READY] == ("False", "KubeletNotReady")
        lease = await cluster.admin.get(LEASES, "n1", namespace="kube-node-lease")
        assert lease["spec"]["renewTime"] > before


@in_cluster
async def test_what_a_kubelet_writes_before_it_is_stopped_is_corrected_at_once(cluster):
    cluster.kubelet.slow = 0.05
    begun = asyncio.ensure_future(cluster.face.begin_shutdown(100))
    await cluster.clock.sleep(0.03)
    assert (await cluster.conditions())[names.READY] == ("False", "KubeletNotReady")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting ready"}
    await cluster.admin.patch(NODES, "n1", {"status": {"conditions": [ready]}}, subresource="status")
    await begun
    await cluster.clock.sleep(0.1)
    assert (await cluster.conditions())[names.READY] == ("False", "KubeletNotReady")


@pytest.mark.parametrize(("ending", "written"), [(0.0, 0.005), (0.01, 0.015), (1.0, 0.012)])
def test_the_node_is_announced_when_the_first_sigterms_are_sent_or_the_kubelet_is_late(ending, written):
    @in_cluster
    async def scene(cluster):
        cluster.kubelet.ending, cluster.kubelet.slow = ending, 2.0
        begun = asyncio.ensure_future(cluster.face.begin_shutdown(100))
        await cluster.clock.sleep(0.1)
        assert cluster.asked[0] == (pytest.approx(written), "PATCH", "/api/v1/nodes/n1/status")
        await begun

    scene()


@in_cluster
async def test_pods_may_end_when_the_kubelet_has_its_signal_and_what_it_writes_then_is_corrected(cluster):
    cluster.kubelet.ending, cluster.kubelet.slow = 0.01, 0.3
    await cluster.face.begin_shutdown(100)
    assert cluster.clock.boottime() == 0.01
    await cluster.clock.sleep(0.2)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting ready"}
    await cluster.admin.patch(NODES, "n1", {"status": {"conditions": [ready]}}, subresource="status")
    await cluster.clock.sleep(0.2)
    assert (await cluster.conditions())[names.READY] == ("False", "KubeletNotReady")


@in_cluster
async def test_a_kubelet_that_is_about_to_end_sees_no_deletion(cluster):
    cluster.kubelet.ending, cluster.kubelet.slow = 0.01, 0.4
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    await cluster.face.begin_shutdown(100)
    cluster.face.expect_pods({"default"})
    withdrawal = asyncio.create_task(cluster.withdraw(0.6))
    await cluster.face.begin_pod(live, 30.0, 5.0)
    [deleted] = [at for at, method, _ in cluster.asked if method == "DELETE"]
    assert deleted == 0.4
    assert cluster.clock.boottime() == pytest.approx(0.7, abs=0.05), "and the pod waits for its withdrawal all the same"
    await cancel_and_wait(withdrawal)


@in_cluster
async def test_a_kubelet_that_does_not_end_holds_up_no_pod_for_long(cluster):
    cluster.kubelet.ending, cluster.kubelet.slow = 0.01, 1000.0
    live, web = await cluster.make_pod("batch"), await cluster.make_pod("web")
    await cluster.make_slice(web)
    await cluster.face.begin_shutdown(2000)
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 10.0)
    assert cluster.clock.boottime() == 0.01, "one of no Service waits for its signal only"
    withdrawal = asyncio.create_task(cluster.withdraw(1.0))
    await cluster.face.begin_pod(web, 30.0, 10.0)
    assert cluster.clock.boottime() == pytest.approx(STOP_SECONDS, abs=0.05), "of a Service: no longer than for traffic"
    await cancel_and_wait(withdrawal)


@in_cluster
async def test_a_cancel_ends_the_stop_of_the_kubelet_before_it_is_started(cluster):
    cluster.kubelet.ending, cluster.kubelet.slow = 0.01, 0.3
    await cluster.face.begin_shutdown(100)
    await cluster.face.mark_ready()
    await cluster.clock.sleep(1)
    assert [what for _, what in cluster.kubelet.told] == ["back"]


@in_cluster
async def test_no_replacement_is_made_before_the_node_is_cordoned(cluster):
    live = await cluster.make_pod("web")
    cluster.slow = 0.1
    await cluster.face.begin_shutdown(100)
    await cluster.face.begin_pod(live, 30.0, 5.0)
    await cluster.clock.sleep(1)
    verbs = [
        method
        for _, method, target in cluster.asked
        if target.startswith(("/api/v1/nodes/n1", "/api/v1/namespaces/default/pods"))
    ]
    assert verbs[:3] == ["PATCH", "PATCH", "DELETE"]


@in_cluster
async def test_a_server_that_does_not_answer_costs_a_quarter_of_a_second_in_all(cluster):
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    cluster.slow = 1000.0
    await cluster.face.begin_shutdown(100)
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, cluster.clock.boottime() + 5)
    assert cluster.clock.boottime() == ANSWER_SECONDS
    begun = cluster.clock.boottime()
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    assert cluster.clock.boottime() - begun <= ANSWER_SECONDS
    assert "default/web" in cluster.face.take_notes()[-1]


@in_cluster
async def test_a_slow_kubelet_uses_up_the_wait_for_the_server(cluster):
    cluster.kubelet.slow, cluster.slow = 1.0, 1000.0
    await cluster.face.begin_shutdown(100)
    assert cluster.clock.boottime() == 1.0


@in_cluster
async def test_a_deployments_pod_is_deleted_at_once_and_its_object_goes_after_its_end(cluster):
    live = await cluster.make_pod("web")
    await cluster.face.begin_pod(live, 12.3, 1.0)
    await cluster.clock.sleep(0.1)
    obj = await cluster.pod("web")
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 13
    assert obj["status"]["phase"] == "Running"
    assert await cluster.face.report_pod_ended(live, {"main": 0}) is False
    await cluster.face.report_finished()
    with pytest.raises(NotFound):
        await cluster.pod("web")


@in_cluster
async def test_the_object_stays_until_the_end_is_reported(cluster):
    live = await cluster.make_pod("web")
    await cluster.face.begin_pod(live, 1.0, 1.0)
    await cluster.clock.sleep(60)
    assert (await cluster.pod("web"))["status"]["phase"] == "Running"


@in_cluster
async def test_a_jobs_pod_is_failed_with_a_disruption_target(cluster):
    live = await cluster.make_pod("batch", owner="Job", restartPolicy="Never")
    await cluster.admin.patch(
        PODS, "batch", {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}}, namespace="default"
    )
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.clock.sleep(0.1)
    verbs = [method for _, method, target in cluster.asked if "/pods/batch" in target]
    assert verbs == ["PATCH", "DELETE"]
    await cluster.face.report_pod_ended(live, {"main": 143})
    await cluster.face.report_finished()
    status = (await cluster.pod("batch"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
    assert ("DisruptionTarget", "True") in [(one["type"], one["status"]) for one in status["conditions"]]
    [main] = status["containerStatuses"]
    assert main["state"]["terminated"]["exitCode"] == 143


@pytest.mark.parametrize("owner", ["DaemonSet", None])
def test_a_pod_that_comes_back_here_is_only_not_ready(owner):
    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("logs", owner=owner)
        await cluster.face.begin_pod(live, 5.0, 1.0)
        await cluster.face.report_pod_ended(live, {"main": 0})
        await cluster.face.report_finished()
        obj = await cluster.pod("logs")
        assert "deletionTimestamp" not in obj["metadata"]
        assert obj["status"]["phase"] == "Running"
        ready = next(one for one in obj["status"]["conditions"] if one["type"] == "Ready")
        assert ready["status"] == "False"

    scene()


@in_cluster
async def test_a_pod_whose_directory_is_not_found_keeps_its_object_if_it_has_a_claim(cluster):
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]
    live = await cluster.make_pod("db", owner="StatefulSet", volumes=claim)
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    assert (await cluster.pod("db"))["status"]["phase"] == "Failed"
    volumes, stays = cluster.face.take_notes()
    assert volumes.startswith("volumes of default/db stay mounted: data: ")
    assert stays == "the object of default/db stays, because its volumes are not known to be unmounted"


@in_cluster
async def test_another_pod_of_the_name_is_left_alone(cluster):
    live = await cluster.make_pod("web-0", owner="StatefulSet")
    await cluster.admin.delete(PODS, "web-0", namespace="default", grace=0)
    await cluster.make_pod("web-0", owner="StatefulSet")
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    obj = await cluster.pod("web-0")
    assert obj["status"]["phase"] == "Running"
    assert "deletionTimestamp" not in obj["metadata"]


@in_cluster
async def test_sigterm_waits_until_the_slices_are_without_the_pod_and_settle(cluster):
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    await cluster.face.begin_shutdown(100)
    cluster.face.expect_pods({"default"})
    begun = cluster.clock.boottime()
    withdrawal = asyncio.create_task(cluster.withdraw(0.4))
    await cluster.face.begin_pod(live, 30.0, begun + 2)
    assert cluster.clock.boottime() - begun == pytest.approx(0.5, abs=0.05)
    await cancel_and_wait(withdrawal)


@in_cluster
async def test_sigterm_of_a_static_pod_waits_for_the_slices_that_name_its_mirror_pod(cluster):
    """The node knows it by another uid."""
    mirror = await cluster.make_pod("dns-n1", owner="Node")
    await cluster.make_slice(mirror)
    metadata = replace(mirror.pod.metadata, uid="hash", annotations={names.CONFIG_SOURCE: "file"})
    live = replace(mirror, pod=replace(mirror.pod, metadata=metadata))
    await cluster.face.begin_shutdown(100)
    cluster.face.expect_pods({"default"})
    begun = cluster.clock.boottime()
    withdrawal = asyncio.create_task(cluster.withdraw(0.4))
    await cluster.face.begin_pod(live, 30.0, begun + 2)
    assert cluster.clock.boottime() - begun == pytest.approx(0.5, abs=0.05)
    assert await cluster.exists("dns-n1")
    await cancel_and_wait(withdrawal)


@in_cluster
async def test_a_static_pod_of_no_service_waits_for_nothing(cluster):
    mirror, other = await cluster.make_pod("etcd-n1", owner="Node"), await cluster.make_pod("dns-n1", owner="Node")
    await cluster.make_slice(other)
    metadata = replace(mirror.pod.metadata, uid="hash", annotations={names.CONFIG_SOURCE: "file"})
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(replace(mirror, pod=replace(mirror.pod, metadata=metadata)), 30.0, 2.0)
    assert cluster.clock.boottime() < 0.1


@in_cluster
async def test_the_wait_for_traffic_is_bounded(cluster):
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 2.0)
    assert cluster.clock.boottime() == pytest.approx(2.0, abs=0.01)


@in_cluster
async def test_a_pod_of_no_service_waits_for_nothing(cluster):
    live, other = await cluster.make_pod("batch"), await cluster.make_pod("web")
    await cluster.make_slice(other)
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 2.0)
    assert cluster.clock.boottime() < 0.1


@pytest.mark.parametrize(
    ("labels", "source", "waits"),
    [
        (None, PrioritySource.WATCH, False),
        ({"app": "web"}, PrioritySource.WATCH, True),
        (None, PrioritySource.RUNTIME, True),
        (None, PrioritySource.DEFAULT, True),
    ],
)
def test_only_a_pod_that_a_service_may_select_waits_for_the_slices(labels, source, waits):
    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("web")
        metadata = replace(live.pod.metadata, labels=labels)
        live = replace(live, pod=replace(live.pod, metadata=metadata), priority_source=source)
        cluster.slow = 0.1
        cluster.face.expect_pods({"default"})
        cluster.reader = Client(Wire(cluster))
        await cluster.face.begin_pod(live, 30.0, 5.0)
        assert cluster.clock.boottime() == (0.1 if waits else 0.0)

    scene()


@in_cluster
async def test_the_requests_of_a_pod_that_waits_for_nothing_follow_its_sigterm(cluster):
    live = await cluster.make_pod("batch")
    live = replace(live, pod=replace(live.pod, metadata=replace(live.pod.metadata, labels=None)))
    live = replace(live, priority_source=PrioritySource.WATCH)
    await cluster.face.begin_pod(live, 30.0, 5.0)
    await cluster.clock.sleep(0.5)
    assert [at for at, _, _ in cluster.asked] == [AFTER_SIGTERM_SECONDS]


@in_cluster
async def test_a_refused_deletion_is_told_and_the_pod_is_ended_as_a_bare_one(cluster):
    live = await cluster.make_pod("elsewhere", nodeName="n2")
    await cluster.face.begin_pod(live, 30.0, 2.0)
    await cluster.clock.sleep(0.1)
    [note] = cluster.face.take_notes()
    assert note.startswith("default/elsewhere is ended without its deletion, which is refused: ")
    assert "n1" in note


@in_cluster
async def test_the_machine_waits_for_writes_while_the_server_answers(cluster):
    lives = [await cluster.make_pod(f"web-{number}") for number in range(40)]
    cluster.slow = 0.1
    for live in lives:
        await cluster.face.begin_pod(live, 30.0, 0.0)
    await cluster.clock.sleep(1)
    begun = cluster.clock.boottime()
    for live in lives:
        await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    assert ANSWER_SECONDS < cluster.clock.boottime() - begun < LAST_SECONDS
    assert not (await cluster.admin.list(PODS, namespace="default")).items


@in_cluster
async def test_without_an_identity_nothing_is_waited_for(cluster):
    live = await cluster.make_pod("web")
    cluster.client = None
    await cluster.begin_shutdown()
    begun = cluster.clock.boottime()
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 5.0)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    assert cluster.clock.boottime() < begun + 0.01
    assert "no identity for the API server is known" in cluster.face.take_notes()[0]


@in_cluster
async def test_the_slices_are_listed_once_and_then_watched(cluster):
    asked, server = [], InProcessTransport(cluster.server)

    class Reader:
        async def request(self, method, target, headers, body, **options):
            asked.append("watch=true" in target)
            return await server.request(method, target, headers, body, **options)

    cluster.reader = Client(Wire(Reader()))
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)
    cluster.face.expect_pods({"default"})
    withdrawal = asyncio.create_task(cluster.withdraw(0.4))
    await cluster.face.begin_pod(live, 30.0, 5.0)
    assert cluster.clock.boottime() == pytest.approx(0.5, abs=0.05)
    assert asked == [False, True]
    await cancel_and_wait(withdrawal)


@in_cluster
async def test_slices_that_may_not_be_read_are_not_waited_for(cluster):
    live = await cluster.make_pod("web")
    cluster.reader = Client(InProcessTransport(cluster.server, kubelet_identity("n1")))
    cluster.face.expect_pods({"default"})
    await cluster.face.begin_pod(live, 30.0, 5.0)
    assert cluster.clock.boottime() < 0.01
