"""What the agent does when its node is back, in virtual time, as the kubelet's identity at the lab's API server."""

from support.agents import shutdown_records
from support.agents.face_cluster import in_cluster

from lastcall.adapters.kube.resources import EVENTS, PODS, REPLICA_SETS
from lastcall.graceful.cluster.after_boot import LOOK_SECONDS, RETRY_SECONDS
from lastcall.graceful.cluster.leftovers import JOB_TRACKING
from lastcall.model.shutdown import MachineReturned
from lastcall.model.shutdown_fold import fold_events


def returned(cluster):
    """A shutdown that began now, and its machine is back."""
    events = shutdown_records.dozen()
    wall = cluster.clock.wall() - 60
    first = type(events[0])(**{name: getattr(events[0], name) for name in events[0].__struct_fields__} | {"wall": wall})
    return fold_events([first, *events[1:], MachineReturned(at=1.0, boot_id="b2", wall=cluster.clock.wall())])


async def make_leftover(cluster, name, owner, **status):
    await cluster.make_pod(name, owner=owner)
    body = {"status": {"phase": "Failed", "reason": "Terminated", **status}}
    await cluster.admin.patch(PODS, name, body, namespace="default", subresource="status")


async def make_replica_set(cluster, made):
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "it"}, "spec": {"replicas": 2, "selector": labels, "template": template}}
    await cluster.admin.create(REPLICA_SETS, body, namespace="default")
    await count_replicas(cluster, made)


async def count_replicas(cluster, made):
    status = {"status": {"replicas": made, "observedGeneration": 1}}
    await cluster.admin.patch(REPLICA_SETS, "it", status, namespace="default", subresource="status")


async def names(cluster):
    return {one["metadata"]["name"] for one in (await cluster.admin.list(PODS, namespace="default")).items}


async def events(cluster):
    return [(one["reason"], one["message"]) for one in (await cluster.admin.list(EVENTS, namespace="default")).items]


@in_cluster
async def test_leftovers_are_deleted_when_they_are_replaced_and_bare_pods_stay(cluster):
    await make_replica_set(cluster, made=1)
    for name, owner in (("web", "ReplicaSet"), ("bare", None), ("db", "StatefulSet")):
        await make_leftover(cluster, name, owner)
    await cluster.face.clean_up(returned(cluster))
    await cluster.clock.sleep(3 * LOOK_SECONDS)
    assert await names(cluster) == {"web", "bare", "db"}
    await count_replicas(cluster, 2)
    await cluster.clock.sleep(LOOK_SECONDS + 1)
    assert await names(cluster) == {"bare", "db"}


@in_cluster
async def test_a_jobs_pod_is_deleted_once_it_is_counted(cluster):
    await make_leftover(cluster, "batch", "Job")
    held = {"metadata": {"finalizers": [JOB_TRACKING]}}
    await cluster.admin.patch(PODS, "batch", held, namespace="default")
    await cluster.face.clean_up(returned(cluster))
    await cluster.clock.sleep(3 * LOOK_SECONDS)
    assert "deletionTimestamp" not in (await cluster.pod("batch"))["metadata"]
    await cluster.admin.patch(PODS, "batch", {"metadata": {"finalizers": None}}, namespace="default")
    await cluster.clock.sleep(LOOK_SECONDS + 1)
    assert await names(cluster) == set()


@in_cluster
async def test_what_the_server_missed_is_done_when_it_is_back(cluster):
    await cluster.face.begin_shutdown(100)
    await cluster.face.close()
    await make_replica_set(cluster, made=2)
    await make_leftover(cluster, "web", "ReplicaSet")
    cluster.down = True
    face = cluster.new_face("b2")
    await face.clean_up(returned(cluster))
    await cluster.clock.sleep(60)
    cluster.down = False
    await cluster.clock.sleep(RETRY_SECONDS + LOOK_SECONDS)
    assert "unschedulable" not in (await cluster.node())["spec"]
    assert await names(cluster) == set()
    assert "MachineReturned" in [reason for reason, _ in await events(cluster)]
    await face.close()


@in_cluster
async def test_one_event_tells_of_the_return_however_often_the_agent_starts(cluster):
    last = returned(cluster)
    for _ in range(2):
        face = cluster.new_face("b2")
        await face.clean_up(last)
        await cluster.clock.sleep(60)
        await face.close()
    assert len([target for _, method, target in cluster.asked if method == "POST" and "events" in target]) == 2
    [(reason, message)] = await events(cluster)
    assert reason == "MachineReturned"
    assert "(poweroff)" in message
    assert message.endswith(": 11/12 pods ended, 2 of them cut short")


@in_cluster
async def test_the_shutdown_and_its_cancellation_are_told_in_the_kubelets_words(cluster):
    await cluster.face.begin_shutdown(100)
    await cluster.clock.sleep(30)
    await cluster.face.mark_ready()
    assert await events(cluster) == [
        ("Shutdown", "Shutdown manager detected shutdown event"),
        ("Shutdown", "Shutdown manager detected shutdown cancellation"),
    ]


@in_cluster
async def test_a_shutdown_of_this_boot_leaves_no_leftovers_to_delete(cluster):
    await make_replica_set(cluster, made=2)
    await make_leftover(cluster, "web", "ReplicaSet")
    await cluster.face.clean_up(fold_events(shutdown_records.dozen()))
    await cluster.clock.sleep(60)
    assert await names(cluster) == {"web"}
