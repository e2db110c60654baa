"""Clients that remove pods, each with the calls, waits and limits that its documentation or code has, before a guarded pod.

The pod goes when its application is ready, and stays until then. ``docs/how-to/guard.md`` has a row for each of them, and says
what to do where a client does not come back. The sources: ``kubectl/pkg/drain``, ``cluster-autoscaler
core/scaledown/actuation/drain.go``, ``karpenter terminator/eviction.go``, ``cluster-api core/reconcilers/machine/drain``, ``kured
cmd/kured``, ``descheduler pkg/descheduler/evictions``, ``k8s.io/kubernetes/pkg/controller/tainteviction``.
"""

import re
from pathlib import Path

import pytest
from support.guard.guarded_cluster import SHOP, play_on_guarded_cluster

from lastcall.adapters.kube.resources import NAMESPACES, NODES, STATEFUL_SETS

PAGE = Path(__file__).parents[4] / "docs/how-to/guard.md"
NODE_CONTROLLER = "system:serviceaccount:kube-system:node-controller"
ACCOUNT = "system:serviceaccount:kube-system:"
OK = (200, 201)


async def retried(cluster, seconds, ask, *, pauses):
    """Asks until it is done or ``seconds`` are over; whether it was done. ``pauses`` are those between two tries."""
    end = cluster.clock.boottime() + seconds
    for pause in pauses:
        code, said = await ask()
        if code in OK or code == 404:
            return True
        assert (code, said["reason"]) == (429, "TooManyRequests"), said
        assert said["message"].startswith('admission webhook "'), said
        if cluster.clock.boottime() + pause > end:
            return False
        await cluster.clock.sleep(pause)
    return False


def always(pause):
    while True:
        yield pause


def growing(first, last):
    """An exponential backoff."""
    while True:
        yield first
        first = min(2 * first, last)


# -- who drains nodes --------------------------------------------------------------------------------------------------


async def kubectl_drain(cluster):
    """Every 5 s, for ever; it reads the pod again each time."""
    assert await retried(cluster, 1e6, lambda: cluster.evict("ann"), pauses=always(5.0))


async def kubectl_drain_disable_eviction(cluster):
    """The first error ends the command; a person calls it again."""
    assert (await cluster.remove("ann"))[0] == 429
    await cluster.clock.sleep(60)
    assert (await cluster.remove("ann"))[0] in OK


async def kubectl_delete_force(cluster):
    """``--force --grace-period=0``: one DELETE; a person calls it again."""
    assert (await cluster.remove("ann", gracePeriodSeconds=0))[0] == 429
    await cluster.clock.sleep(60)
    assert (await cluster.remove("ann", gracePeriodSeconds=0))[0] in OK


async def cluster_autoscaler(cluster, user=f"{ACCOUNT}cluster-autoscaler"):
    """Every 10 s for ``--max-pod-eviction-time`` of two minutes; then the node's removal fails."""
    evict = lambda: cluster.evict(user, gracePeriodSeconds=600)  # noqa: E731 - three words
    assert await retried(cluster, 120, evict, pauses=always(10.0))


async def cluster_autoscaler_with_a_slow_application(cluster):
    """It fails after two minutes, waits ``--scale-down-delay-after-failure`` of three, and finds the pod ready."""
    cluster.database.seconds = 200.0
    evict = lambda: cluster.evict(f"{ACCOUNT}cluster-autoscaler", gracePeriodSeconds=600)  # noqa: E731 - as above
    assert not await retried(cluster, 120, evict, pauses=always(10.0))
    await cluster.clock.sleep(180)
    assert await retried(cluster, 120, evict, pauses=always(10.0))


async def karpenter(cluster):
    """Its eviction queue asks after 100 ms, up to 10 s later each time; 404 and 409 count as done."""
    user = f"{ACCOUNT}karpenter"
    assert await retried(cluster, 1e6, lambda: cluster.evict(user), pauses=growing(0.1, 10.0))


async def cluster_api(cluster):
    """Each reconciliation asks once, and the next one comes after 20 s."""
    user = "system:serviceaccount:capi-system:capi-manager"
    assert await retried(cluster, 1e6, lambda: cluster.evict(user), pauses=always(20.0))


async def kured(cluster):
    """With kubectl's library from 1.35 on it does not wait between two tries: client-go's five requests a second limit it."""
    user = f"{ACCOUNT}kured"
    assert await retried(cluster, 1e6, lambda: cluster.evict(user), pauses=always(0.2))
    assert cluster.asked < 5 * 60


async def descheduler(cluster):
    """One try in each ``--descheduling-interval``; an error is logged."""
    user = f"{ACCOUNT}descheduler"
    assert await retried(cluster, 1e6, lambda: cluster.evict(user), pauses=always(300.0))


async def eviction_of_v1beta1(cluster):
    """An old client, such as kubectl before 1.22."""
    ask = lambda: cluster.evict("old", version="policy/v1beta1")  # noqa: E731 - three words
    assert await retried(cluster, 1e6, ask, pauses=always(5.0))


# -- parts of the control plane ----------------------------------------------------------------------------------------


async def preemption(cluster):
    """The scheduler marks its victim and deletes it; if that fails, the pod that wants the place tries again in its backoff."""
    await mark(cluster, "PreemptionByScheduler", "system:kube-scheduler")
    delete = lambda: cluster.remove("system:kube-scheduler")  # noqa: E731 - three words
    assert await retried(cluster, 1e6, delete, pauses=growing(1.0, 10.0))


async def garbage_collector(cluster):
    """A person deletes the StatefulSet; its pods follow."""
    await cluster.client.delete(STATEFUL_SETS, "db", namespace=SHOP, propagation="Background")


async def garbage_collector_in_the_foreground(cluster):
    """The same with ``--cascade=foreground``: the owner stays until its pods are gone."""
    await cluster.client.delete(STATEFUL_SETS, "db", namespace=SHOP, propagation="Foreground")


async def namespace_deletion(cluster):
    """The namespace controller deletes the collection of its pods."""
    await cluster.client.delete(NAMESPACES, SHOP)


async def scale_in(cluster):
    """The StatefulSet's controller asks in its backoff."""
    await cluster.client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 2}}, namespace=SHOP)


async def scale_to_zero(cluster):
    """Nothing of the application is to stay."""
    await cluster.client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 0}}, namespace=SHOP)


async def rollout(cluster):
    """The same controller, one pod after the other."""
    labels = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}
    await cluster.client.patch(STATEFUL_SETS, "db", labels, namespace=SHOP)


async def mark(cluster, reason, user):
    """The condition DisruptionTarget, which these clients write before the DELETE."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "it goes"}
    path = f"/api/v1/namespaces/{SHOP}/pods/db-0/status"
    patch = {"status": {"conditions": [condition]}}
    code, said = await cluster.ask(user, "PATCH", path, patch, "application/strategic-merge-patch+json")
    assert code == 200, said


READY = ("ready", "releaser")
"""The application was ready: the client asked then, or the guard went on for a controller in its backoff."""

CLIENTS = {
    "`kubectl drain`": (kubectl_drain, "db-0", READY),
    "`kubectl drain --disable-eviction`": (kubectl_drain_disable_eviction, "db-0", READY),
    "`kubectl delete --force --grace-period=0`": (kubectl_delete_force, "db-0", READY),
    "cluster-autoscaler": (cluster_autoscaler, "db-0", READY),
    "cluster-autoscaler, more than two minutes": (cluster_autoscaler_with_a_slow_application, "db-0", READY),
    "Karpenter": (karpenter, "db-0", READY),
    "Cluster API": (cluster_api, "db-0", READY),
    "kured": (kured, "db-0", READY),
    "descheduler": (descheduler, "db-0", READY),
    "an old client: `policy/v1beta1`": (eviction_of_v1beta1, "db-0", READY),
    "preemption": (preemption, "db-0", READY),
    "scale-in, rollout": (scale_in, "db-2", READY),
    "scale-in, rollout (of all pods)": (rollout, "db-2", READY),
    "scale-in to zero": (scale_to_zero, "db-2", ("scaled-to-zero",)),
    "garbage collector": (garbage_collector, "db-0", ("owner-gone",)),
    "garbage collector (in the foreground)": (garbage_collector_in_the_foreground, "db-0", ("owner-deleted",)),
    "deletion of the namespace": (namespace_deletion, "db-0", ("namespace",)),
}
"""By the row of the page: the client, a pod that it removes, and the rules by which that may go at last."""


@pytest.mark.parametrize(("client", "name", "reasons"), CLIENTS.values(), ids=CLIENTS)
def test_each_client_ends_well(client, name, reasons):
    async def scene(cluster):
        uid = cluster.pod(name)["metadata"]["uid"]
        await client(cluster)
        await cluster.until(lambda: cluster.is_going(uid))
        allowed = [(reason, is_safe) for pod, reason, is_safe in cluster.allowed if pod == name]
        assert allowed
        assert {reason for reason, _ in allowed} <= set(reasons)
        assert reasons != READY or all(is_safe for _, is_safe in allowed), "it had something to lose"

    play_on_guarded_cluster(scene)


@pytest.mark.parametrize("client", [kubectl_drain, scale_in, rollout])
def test_afterwards_nothing_stays_prepared(client):
    async def scene(cluster):
        await client(cluster)
        await cluster.clock.sleep(600)
        calls = cluster.database.calls
        assert calls.count("release") == calls.count("prepare") > 0
        assert {one["state"] for one in cluster.entries().values()} <= {"Released"}

    play_on_guarded_cluster(scene)


async def evict_by_taint(cluster):
    """Five tries, 10 ms apart (``tainteviction: addConditionAndDeletePod``): none comes after the preparation."""
    await mark(cluster, "DeletionByTaintManager", NODE_CONTROLLER)
    for _ in range(5):
        assert (await cluster.remove(NODE_CONTROLLER))[0] == 429
        await cluster.clock.sleep(0.01)


async def taint(cluster, *taints):
    node = cluster.pod("db-0")["spec"]["nodeName"]
    await cluster.client.patch(NODES, node, {"spec": {"taints": [*taints]}})


OFF = {"key": "maintenance", "effect": "NoExecute"}


def test_a_taint_eviction_forgets_the_pod_and_the_guard_goes_on():
    async def scene(cluster):
        uid = cluster.pod("db-0")["metadata"]["uid"]
        await taint(cluster, OFF)
        await evict_by_taint(cluster)
        await cluster.until(lambda: cluster.is_going(uid))
        assert cluster.allowed == [("db-0", "releaser", True)]

    play_on_guarded_cluster(scene)


def test_a_pod_whose_node_has_its_taint_no_more_stays_and_its_preparation_is_undone():
    async def scene(cluster):
        uid = cluster.pod("db-0")["metadata"]["uid"]
        await taint(cluster, OFF)
        await evict_by_taint(cluster)
        await taint(cluster)
        await cluster.until(lambda: cluster.entries()["db-0"]["state"] == "Released")
        assert not cluster.is_going(uid)
        assert cluster.database.calls == ["prepare", "cancel"]
        assert cluster.allowed == []

    play_on_guarded_cluster(scene)


def test_who_asks_too_seldom_never_finds_the_pod_ready():
    """A descheduler every half hour: 20 minutes after its eviction the preparation is undone."""

    async def scene(cluster):
        uid = cluster.pod("db-0")["metadata"]["uid"]
        assert (await cluster.evict(f"{ACCOUNT}descheduler"))[0] == 429
        await cluster.clock.sleep(1230)
        assert cluster.database.calls == ["prepare", "cancel"]
        assert (await cluster.evict(f"{ACCOUNT}descheduler"))[0] == 429
        assert not cluster.is_going(uid)

    play_on_guarded_cluster(scene)


def test_the_pods_of_a_node_that_is_gone_are_not_held():
    """The garbage collector of pods marks them Failed first, so that nobody is asked about them."""

    async def scene(cluster):
        pod = cluster.pod("db-0")
        await cluster.client.delete(NODES, pod["spec"]["nodeName"])
        await cluster.until(lambda: cluster.is_going(pod["metadata"]["uid"]))
        assert cluster.allowed == []

    play_on_guarded_cluster(scene)


def test_each_client_is_on_the_page():
    rows = re.findall(r"^\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE)
    shown = [*(row for row in CLIENTS if " (" not in row), "taint eviction"]
    assert [row for row in shown if row not in rows] == []
