"""The agent's writes when the API server is away, when a webhook refuses them, and when the shutdown is cancelled."""

import asyncio

import pytest
from support.agents.face_cluster import in_cluster
from support.lab.scripted_webhooks import Hooks, hook

from lastcall import names
from lastcall.adapters.kube.resources import LEASES, NODES, PODS, VALIDATING_WEBHOOKS
from lastcall.errors import ApiNotPermitted, NotConnected, NotFound, RequestRefused, TooManyRequests, Unavailable
from lastcall.graceful.cluster.node_announcement import RENEW_SECONDS
from lastcall.graceful.cluster.pod_departure import RETRY_SECONDS
from lastcall.graceful.cluster.server_contact import RECOVERY_SECONDS

POD_DELETES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}]


async def configure(cluster, hooks, **rest):
    cluster.server.webhooks.caller = hooks
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [hook("guard", rules=POD_DELETES, **rest)],
    }
    await cluster.admin.create(VALIDATING_WEBHOOKS, body)


def deletions(cluster):
    return [target.rpartition("/")[2] for _, method, target in cluster.asked if method == "DELETE"]


# -- the server is away ------------------------------------------------------------------------------------------------


@in_cluster
async def test_a_server_that_is_back_gets_what_it_lacks_for_begun_pods_alone(cluster):
    first, later = await cluster.make_pod("first"), await cluster.make_pod("later")
    cluster.down = True
    await cluster.face.begin_shutdown(100)
    await cluster.face.begin_pod(first, 5.0, 1.0)
    await cluster.face.report_pod_ended(first, {"main": 0})
    await cluster.clock.sleep(30)
    assert cluster.asked == []
    cluster.down = False
    await cluster.clock.sleep(3)
    with pytest.raises(NotFound):
        await cluster.pod("first")
    assert deletions(cluster) == ["first", "first"]
    assert "deletionTimestamp" not in (await cluster.pod("later"))["metadata"]
    assert (await cluster.conditions())["DrainInProgress"] == ("True", "NodeShutdown")
    await cluster.face.begin_pod(later, 5.0, cluster.clock.boottime())
    await cluster.clock.sleep(1)
    assert "deletionTimestamp" in (await cluster.pod("later"))["metadata"]


@in_cluster
async def test_a_jobs_pod_is_a_disruption_target_before_its_late_deletion(cluster):
    live = await cluster.make_pod("batch", owner="Job", restartPolicy="Never")
    cluster.down = True
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.face.report_pod_ended(live, {"main": 143})
    await cluster.clock.sleep(10)
    cluster.down = False
    await cluster.clock.sleep(3)
    asked = [(method, target.partition("batch")[2]) for _, method, target in cluster.asked if "batch" in target]
    assert asked == [("PATCH", "/status"), ("DELETE", ""), ("PATCH", "/status"), ("DELETE", "")]


@pytest.mark.parametrize("answer", [NotFound('pod "web" not found'), ApiNotPermitted("not yet ready")])
def test_what_a_returning_server_refuses_is_asked_again(answer):
    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("web")
        cluster.down, cluster.refuse = True, answer
        await cluster.face.begin_shutdown(100)
        await cluster.face.begin_pod(live, 5.0, 1.0)
        await cluster.clock.sleep(10)
        cluster.down = False
        await cluster.clock.sleep(5)
        cluster.refuse = None
        await cluster.clock.sleep(2)
        assert "deletionTimestamp" in (await cluster.pod("web"))["metadata"]
        assert not [note for note in cluster.face.take_notes() if "without its deletion" in note]

    scene()


@in_cluster
async def test_a_server_that_still_refuses_after_its_return_is_believed(cluster):
    live = await cluster.make_pod("web")
    cluster.down, cluster.refuse = True, ApiNotPermitted("no")
    await cluster.face.begin_shutdown(100)
    await cluster.face.begin_pod(live, 5.0, 1.0)
    await cluster.clock.sleep(10)
    cluster.down = False
    await cluster.clock.sleep(2 * RECOVERY_SECONDS)
    assert cluster.face.take_notes()[-1] == "default/web is ended without its deletion, which is refused: no"


@in_cluster
async def test_the_report_says_that_the_server_was_away_and_when_it_is_back(cluster):
    cluster.down = True
    await cluster.face.begin_shutdown(100)
    await cluster.clock.sleep(20)
    assert cluster.face.take_notes() == [
        "the API server is not informed of the shutdown, trying again: connection refused"
    ]
    cluster.down = False
    await cluster.clock.sleep(2)
    assert cluster.face.take_notes() == ["the API server answers again after 20s: what it lacks is written now"]


# -- webhooks ----------------------------------------------------------------------------------------------------------


@in_cluster
async def test_a_webhook_that_refuses_a_deletion_is_named_and_the_pod_ends_as_a_bare_one(cluster):
    live = await cluster.make_pod("web")
    await configure(cluster, Hooks(guard={"allowed": False, "status": {"message": "not today"}}))
    begun = cluster.clock.boottime()
    await cluster.face.begin_pod(live, 30.0, begun + 2)
    assert cluster.clock.boottime() == begun
    await cluster.clock.sleep(0.1)
    await cluster.face.report_pod_ended(live, {"main": 0})
    await cluster.face.report_finished()
    [note] = cluster.face.take_notes()
    assert "default/web is ended without its deletion, because of webhook guard.example.com" in note
    assert "not today" in note
    obj = await cluster.pod("web")
    assert "deletionTimestamp" not in obj["metadata"]
    assert obj["status"]["phase"] == "Running"
    ready = next(one for one in obj["status"]["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "False"


@in_cluster
async def test_a_webhook_that_delays_a_deletion_holds_up_nothing_and_is_named_when_it_fails(cluster):
    live = await cluster.make_pod("web")
    await cluster.make_slice(live)

    async def hang(request):
        await cluster.clock.sleep(10)
        raise TimeoutError("context deadline exceeded")

    await configure(cluster, Hooks(guard=hang))
    cluster.face.expect_pods({"default"})
    await cluster.clock.sleep(0.1)
    begun = cluster.clock.boottime()
    await cluster.face.begin_pod(live, 30.0, begun + 2)
    assert cluster.clock.boottime() < begun + 2
    await cluster.face.report_pod_ended(live, {"main": 0})
    assert cluster.clock.boottime() < begun + 2
    await cluster.clock.sleep(15)
    assert any("webhook guard.example.com" in note for note in cluster.face.take_notes())


# -- cancelled ---------------------------------------------------------------------------------------------------------


@in_cluster
async def test_a_cancel_lists_what_is_handed_over_to_the_kubelet(cluster):
    lives = [await cluster.make_pod(name) for name in ("b", "a", "ended")]
    logs, later = await cluster.make_pod("logs", owner="DaemonSet"), await cluster.make_pod("later")
    await cluster.face.begin_shutdown(100)
    for live in (*lives, logs):
        await cluster.face.begin_pod(live, 30.0, 0.0)
    await cluster.clock.sleep(1)
    await cluster.face.report_pod_ended(lives[2], {"main": 0})
    await cluster.clock.sleep(1)
    await cluster.face.mark_ready()
    assert cluster.face.take_notes() == [
        "handed over to the kubelet, because their deletion had begun: default/a, default/b"
    ]
    assert "deletionTimestamp" in (await cluster.pod("a"))["metadata"]
    assert "deletionTimestamp" not in (await cluster.pod(later.pod.metadata.name))["metadata"]


@in_cluster
async def test_an_agent_that_starts_after_the_cancel_lists_them_too_and_once(cluster):
    live, _ = await cluster.make_pod("web"), await cluster.make_pod("later")
    await cluster.face.begin_shutdown(100)
    await cluster.face.begin_pod(live, 30.0, 0.0)
    await cluster.clock.sleep(1)
    await cluster.face.close()
    face = cluster.new_face()
    for _ in range(2):
        await face.mark_ready()
    assert face.take_notes() == ["handed over to the kubelet, because their deletion had begun: default/web"]
    await face.close()


@pytest.mark.parametrize("refused", [False, True])
def test_a_pod_that_ends_after_the_cancel_is_the_kubelets(refused):
    """The kubelet may run it again by then: a DELETE with grace period 0 would permit a second copy."""

    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("db-0", owner="StatefulSet")
        cluster.refuse = RequestRefused("not now") if refused else None
        await cluster.face.begin_shutdown(100)
        await cluster.face.begin_pod(live, 30.0, 0.0)
        await cluster.clock.sleep(1)
        await cluster.face.mark_ready()
        cluster.refuse, before = None, deletions(cluster)
        assert await cluster.face.report_pod_ended(live, {"main": 0}) is False
        await cluster.clock.sleep(10)
        assert deletions(cluster) == before
        assert (await cluster.pod("db-0"))["status"]["phase"] == "Running"
        assert cluster.volumes.calls == []

    scene()


@pytest.mark.parametrize(
    ("owner", "refuse", "may_be_left"),
    [
        (None, None, True),
        ("ReplicaSet", None, False),
        ("ReplicaSet", TooManyRequests("wait", code=429), True),
        ("ReplicaSet", NotConnected("connection refused"), True),
        ("ReplicaSet", Unavailable("the connection broke"), False),
    ],
    ids=["it keeps its object", "deleted", "not accepted", "not sent", "not known"],
)
def test_a_pod_may_be_left_alone_unless_the_server_has_its_deletion_or_may_have(owner, refuse, may_be_left):
    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("web", owner=owner, labels={"app": "web"})
        await cluster.make_slice(live)
        cluster.refuse = refuse
        await cluster.face.begin_shutdown(100)
        cluster.face.expect_pods({"default"})
        assert await cluster.face.begin_pod(live, 30.0, 2.0) is may_be_left

    scene()


@pytest.mark.parametrize("later", [TooManyRequests("wait", code=429), NotConnected("connection refused")])
def test_a_later_attempt_does_not_tell_whether_the_server_has_an_earlier_deletion(later):
    @in_cluster
    async def scene(cluster):
        live = await cluster.make_pod("web", owner="ReplicaSet", labels={"app": "web"})
        await cluster.make_slice(live)
        cluster.refuse = Unavailable("the connection broke")
        await cluster.face.begin_shutdown(100)
        cluster.face.expect_pods({"default"})
        assert await cluster.face.begin_pod(live, 30.0, 2.0) is False
        cluster.refuse = later
        await cluster.clock.sleep(RETRY_SECONDS + 0.5)
        assert await cluster.face.begin_pod(live, 30.0, 4.0) is False

    scene()


@in_cluster
async def test_nothing_is_written_to_pods_after_a_cancel(cluster):
    live = await cluster.make_pod("web")
    await cluster.face.begin_shutdown(100)
    cluster.slow = 5.0
    await cluster.face.begin_pod(live, 30.0, 0.0)
    ending = asyncio.ensure_future(cluster.face.mark_ready())
    await ending
    asked = len(cluster.asked)
    await cluster.clock.sleep(60)
    assert len(cluster.asked) == asked


# -- the Node while the shutdown lasts ---------------------------------------------------------------------------------


@in_cluster
async def test_conditions_that_a_kubelet_rewrites_are_written_again_and_its_own_are_left(cluster):
    await cluster.face.begin_shutdown(100)
    own = {"type": "GracefulNodeShutdownInProgress", "status": "False", "reason": "KubeletReady", "message": ""}
    await cluster.admin.patch(NODES, "n1", {"status": {"conditions": [own]}}, subresource="status")
    await cluster.clock.sleep(RENEW_SECONDS + 1)
    assert (await cluster.conditions())["GracefulNodeShutdownInProgress"] == ("True", "NodeShutdown")
    node = await cluster.node()
    true = [
        {**one, "status": "True", "reason": "KubeletShutdown"} if one["type"] == own["type"] else one
        for one in node["status"]["conditions"]
    ]
    await cluster.admin.patch(NODES, "n1", {"status": {"conditions": true}}, subresource="status")
    await cluster.clock.sleep(RENEW_SECONDS + 1)
    assert (await cluster.conditions())[own["type"]] == ("True", "KubeletShutdown")
    await cluster.face.mark_ready()
    assert (await cluster.conditions())[own["type"]] == ("True", "KubeletShutdown")
    assert "DrainInProgress" not in await cluster.conditions()


@in_cluster
async def test_what_a_kubelet_writes_that_somebody_starts_is_corrected_when_it_is_stopped_again(cluster):
    async def readiness():
        pods = [await cluster.pod(live.pod.metadata.name) for live in (kept, later)]
        found = [*(pod["status"]["conditions"] for pod in pods), (await cluster.node())["status"]["conditions"]]
        return [next(one["status"] for one in conditions if one["type"] == names.READY) for conditions in found]

    kept, later = await cluster.make_pod("kept", owner=None), await cluster.make_pod("later", owner=None)
    await cluster.face.begin_shutdown(100)
    await cluster.face.begin_pod(kept, 30.0, 50)
    await cluster.clock.sleep(1)
    assert await readiness() == ["False", "True", "False"]
    status = {"status": {"conditions": [{"type": names.READY, "status": "True", "reason": "KubeletReady"}]}}
    await cluster.admin.patch(NODES, "n1", status, subresource="status")
    await cluster.admin.patch(PODS, "kept", status, namespace="default", subresource="status")
    cluster.kubelet.stopped_again.set()
    await cluster.clock.sleep(1)
    assert await readiness() == ["False", "True", "False"]


@in_cluster
async def test_the_lease_is_renewed_until_the_deadline_and_not_after_it(cluster):
    async def renewed():
        lease = await cluster.admin.get(LEASES, "n1", namespace="kube-node-lease")
        return lease["spec"].get("renewTime", "")

    await cluster.face.begin_shutdown(35)
    await cluster.clock.sleep(31)
    last = await renewed()
    assert last
    await cluster.clock.sleep(60)
    after = await renewed()
    assert after >= last
    await cluster.clock.sleep(60)
    assert await renewed() == after


@in_cluster
async def test_a_crash_leaves_a_mark_by_which_another_run_undoes_everything(cluster):
    await cluster.begin_shutdown()
    await cluster.face.close()
    assert (await cluster.node())["spec"]["unschedulable"] is True
    face = cluster.new_face()
    await face.mark_ready()
    node = await cluster.node()
    assert "unschedulable" not in node["spec"]
    assert names.NODE_SHUTDOWN_MARK not in node["metadata"].get("annotations", {})
    assert list(await cluster.conditions()) == [names.READY]
    await face.close()


@in_cluster
async def test_what_is_cancelled_while_the_lease_is_renewed_asks_for_nothing_more(cluster):
    await cluster.begin_shutdown()
    cluster.slow = 3.0
    await cluster.clock.sleep(RENEW_SECONDS + 1)
    *_, (began, _, target) = asked = [*cluster.asked]
    assert target.endswith("/leases/n1"), "its renewal is under way"
    await cluster.face.close()
    assert cluster.asked == asked
    assert cluster.clock.boottime() < began + cluster.slow
