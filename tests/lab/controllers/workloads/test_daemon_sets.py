"""DaemonSets on the lab's API server, in virtual time, and what they are made of."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import moments, template, told, up, workload

from lastcall.adapters.kube.resources import DAEMON_SETS, NODES, PODS, dict_resource
from lastcall_lab.controllers.framework.failure_backoff import FailureBackoff
from lastcall_lab.controllers.workloads.daemon_pods import node_fit
from lastcall_lab.controllers.workloads.daemon_sets import DaemonSetController

REVISIONS = dict_resource("apps", "v1", "controllerrevisions")

on_daemons = on_cluster(DaemonSetController())


async def nodes(cluster, *names, **labels):
    for name in names:
        await cluster.create(NODES, {"metadata": {"name": name, "labels": labels}}, namespace="")
        await taint(cluster, name)


async def taint(cluster, name, *taints):
    said = [{"key": key, "effect": effect} for key, effect in taints]
    await cluster.patch(NODES, name, {"spec": {"taints": said}}, namespace="")


def status(cluster):
    return cluster.get(DAEMON_SETS, "web")["status"]


def places(cluster):
    return sorted(pod["spec"]["nodeName"] for pod in cluster.all(PODS) if pod["spec"].get("nodeName"))


def done(cluster):
    """What ``kubectl rollout status`` waits for."""
    found = cluster.get(DAEMON_SETS, "web")
    said = found["status"]
    seen = said.get("observedGeneration", 0) >= found["metadata"]["generation"]
    wanted = said["desiredNumberScheduled"]
    return seen and said.get("updatedNumberScheduled", 0) == said.get("numberAvailable", 0) == wanted


async def change(cluster, image):
    containers = [{"name": "c", "image": image}]
    await cluster.patch(DAEMON_SETS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def rolling(**bounds):
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


@on_daemons
async def test_one_on_each_node_that_comes(cluster):
    async with kubelet(cluster):
        await nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, workload())
        await cluster.until(lambda: done(cluster) and places(cluster) == ["n1", "n2"])
        pod = cluster.all(PODS)[0]
        affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        field = {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
        assert affinity == {"nodeSelectorTerms": [{"matchFields": [field]}]}
        tolerated = {one["key"].rpartition("/")[2]: one["effect"] for one in pod["spec"]["tolerations"]}
        assert tolerated == {
            "not-ready": "NoExecute",
            "unreachable": "NoExecute",
            "disk-pressure": "NoSchedule",
            "memory-pressure": "NoSchedule",
            "pid-pressure": "NoSchedule",
            "unschedulable": "NoSchedule",
        }
        assert all("tolerationSeconds" not in one for one in pod["spec"]["tolerations"])
        await nodes(cluster, "n3")
        await cluster.until(lambda: places(cluster) == ["n1", "n2", "n3"] and done(cluster))
        assert status(cluster) == {
            "currentNumberScheduled": 3,
            "desiredNumberScheduled": 3,
            "numberAvailable": 3,
            "numberMisscheduled": 0,
            "numberReady": 3,
            "observedGeneration": 1,
            "updatedNumberScheduled": 3,
        }


@on_daemons
async def test_it_rests_when_it_is_done(cluster):
    async with kubelet(cluster):
        await nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, workload())
        await cluster.until(lambda: done(cluster))
        await cluster.settle(5)
        before = cluster.server.store.revision
        await cluster.settle(1000)
        assert cluster.server.store.revision == before


@on_daemons
async def test_only_on_nodes_that_are_meant_and_taints_that_are_tolerated(cluster):
    async with kubelet(cluster):
        await nodes(cluster, "n1", disk="ssd")
        await nodes(cluster, "n2", "n3")
        await cluster.create(DAEMON_SETS, workload(template=template(nodeSelector={"disk": "ssd"})))
        await cluster.until(lambda: done(cluster) and places(cluster) == ["n1"])
        await cluster.patch(NODES, "n2", {"metadata": {"labels": {"disk": "ssd"}}}, namespace="")
        await cluster.until(lambda: places(cluster) == ["n1", "n2"])
        await taint(cluster, "n1", ("node.kubernetes.io/unschedulable", "NoSchedule"))
        await taint(cluster, "n2", ("mine", "NoSchedule"))
        await cluster.settle(10)
        assert places(cluster) == ["n1", "n2"], "what is there may stay"
        assert status(cluster)["numberMisscheduled"] == 1
        await taint(cluster, "n2", ("mine", "NoExecute"))
        await cluster.until(lambda: places(cluster) == ["n1"])
        await taint(cluster, "n2")
        await cluster.until(lambda: places(cluster) == ["n1", "n2"])
        await cluster.patch(NODES, "n1", {"metadata": {"labels": {"disk": None}}}, namespace="")
        await cluster.until(lambda: places(cluster) == ["n2"])


@on_daemons
async def test_a_pod_that_was_deleted_comes_back_when_it_is_gone(cluster):
    async with kubelet(cluster, stops_after=20.0):
        await nodes(cluster, "n1")
        await cluster.create(DAEMON_SETS, workload())
        await cluster.until(lambda: done(cluster))
        [before] = cluster.names(PODS)
        await cluster.delete(PODS, before)
        await cluster.settle(15)
        assert cluster.names(PODS) == [before]
        await cluster.until(lambda: done(cluster) and cluster.names(PODS) != [before])


@on_daemons
async def test_pods_that_keep_failing_are_replaced_less_and_less_often(cluster):
    async with kubelet(cluster, ready_after=0.1, work=lambda pod: (0.1, 1)) as node:
        await nodes(cluster, "n1")
        await cluster.create(DAEMON_SETS, workload())
        await cluster.settle(100)
        made = len({pod["metadata"]["uid"] for _, pod in node.seen})
        assert 5 <= made <= 9, "after 1, 2, 4, 8 ... seconds"
        assert told(cluster, "FailedDaemonPod")[0].endswith("on node n1, will try to kill it")


@on_daemons
async def test_pods_for_a_node_that_is_gone_and_never_took_them_go(cluster):
    await nodes(cluster, "n1")
    await cluster.create(DAEMON_SETS, workload())
    await cluster.until(lambda: cluster.count(PODS) == 1)
    await cluster.delete(NODES, "n1", namespace="")
    await cluster.until(lambda: cluster.count(PODS) == 0)
    assert status(cluster)["desiredNumberScheduled"] == 0


# -- updates -----------------------------------------------------------------------------------------------------------


@on_daemons
async def test_a_rolling_update_takes_one_node_after_the_other(cluster):
    async with kubelet(cluster, stops_after=3.0) as node:
        await nodes(cluster, "n1", "n2", "n3")
        await cluster.create(DAEMON_SETS, workload())
        await cluster.until(lambda: done(cluster))
        begun = len(node.seen)
        await change(cluster, "i:2")
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster) and cluster.count(PODS) == 3)
        assert all(sum(map(up, pods.values())) >= 2 for pods in list(moments(node))[begun:])
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)} == {"i:2"}
        assert sorted(one["revision"] for one in cluster.all(REVISIONS)) == [1, 2]


@on_daemons
async def test_with_surge_the_new_pod_is_there_before_the_old_one_goes(cluster):
    async with kubelet(cluster) as node:
        await nodes(cluster, "n1", "n2", "n3")
        await cluster.create(DAEMON_SETS, workload(updateStrategy=rolling(maxSurge=1, maxUnavailable=0)))
        await cluster.until(lambda: done(cluster))
        begun = len(node.seen)
        await change(cluster, "i:2")
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster) and cluster.count(PODS) == 3)
        for pods in list(moments(node))[begun:]:
            assert sum(map(up, pods.values())) >= 3
            assert sum("deletionTimestamp" not in pod["metadata"] for pod in pods.values()) <= 4


@on_daemons
async def test_on_delete_waits_for_the_user(cluster):
    async with kubelet(cluster):
        await nodes(cluster, "n1", "n2")
        await cluster.create(DAEMON_SETS, workload(updateStrategy={"type": "OnDelete"}))
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.settle(20)
        assert status(cluster).get("updatedNumberScheduled", 0) == 0
        await cluster.delete(PODS, cluster.names(PODS)[0])
        await cluster.until(lambda: status(cluster).get("updatedNumberScheduled") == 1)


@on_daemons
async def test_orphans_are_adopted_and_old_revisions_forgotten(cluster):
    async with kubelet(cluster):
        await nodes(cluster, "n1")
        orphan = {
            "metadata": {"name": "mine", "labels": {"app": "web"}},
            "spec": {**template()["spec"], "nodeName": "n1"},
        }
        await cluster.create(PODS, orphan)
        await cluster.create(DAEMON_SETS, workload(revisionHistoryLimit=1, updateStrategy={"type": "OnDelete"}))
        await cluster.until(lambda: bool(cluster.get(PODS, "mine")["metadata"].get("ownerReferences")))
        for image in ("i:2", "i:3", "i:4"):
            await change(cluster, image)
            await cluster.settle(3)
        assert cluster.names(PODS) == ["mine"]
        assert sorted(one["revision"] for one in cluster.all(REVISIONS)) == [3, 4]


@settings(max_examples=10, deadline=None)
@given(
    places=st.integers(1, 5),
    most=st.integers(1, 3),
    surge=st.booleans(),
    images=st.lists(st.sampled_from(["i:1", "i:2", "i:3"]), min_size=1, max_size=3),
    pause=st.integers(0, 8),
)
def test_updates_keep_their_bounds(places, most, surge, images, pause):
    @on_cluster(DaemonSetController())
    async def scenario(cluster):
        delay = cluster.random.uniform
        async with kubelet(cluster, ready_after=lambda _: delay(0.1, 5), stops_after=lambda _: delay(0.1, 5)) as node:
            await nodes(cluster, *(f"n{number}" for number in range(places)))
            bounds = {"maxSurge": most, "maxUnavailable": 0} if surge else {"maxUnavailable": most}
            await cluster.create(DAEMON_SETS, workload(updateStrategy=rolling(**bounds)))
            await cluster.until(lambda: done(cluster))
            begun = len(node.seen)
            for image in images:
                await change(cluster, image)
                await cluster.settle(pause)
            await cluster.settle(0.5)
            await cluster.until(lambda: done(cluster))
            for pods in list(moments(node))[begun:]:
                assert sum(map(up, pods.values())) >= (places if surge else places - most)
                staying = [pod for pod in pods.values() if "deletionTimestamp" not in pod["metadata"]]
                assert len(staying) <= places + (most if surge else 0)

    scenario()


# -- what they are made of ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "taints", "expected"),
    [
        ({}, [], (True, True)),
        ({"nodeName": "n1"}, [], (True, True)),
        ({"nodeName": "n2"}, [], (False, False)),
        ({"nodeSelector": {"a": "b"}}, [], (True, True)),
        ({"nodeSelector": {"a": "c"}}, [], (False, False)),
        ({}, [("x", "NoSchedule")], (False, True)),
        ({}, [("x", "PreferNoSchedule")], (True, True)),
        ({}, [("x", "NoExecute")], (False, False)),
        ({"tolerations": [{"operator": "Exists"}]}, [("x", "NoExecute")], (True, True)),
        ({}, [("node.kubernetes.io/unreachable", "NoExecute")], (True, True)),
        ({}, [("node.kubernetes.io/not-ready", "NoSchedule")], (False, True)),
        ({}, [("node.kubernetes.io/network-unavailable", "NoSchedule")], (False, True)),
        ({"hostNetwork": True}, [("node.kubernetes.io/network-unavailable", "NoSchedule")], (True, True)),
    ],
)
def test_fit(spec, taints, expected):
    daemon = {"spec": {"template": {"spec": {"containers": [], **spec}}}}
    said = [{"key": key, "effect": effect} for key, effect in taints]
    assert node_fit(daemon, {"metadata": {"name": "n1", "labels": {"a": "b"}}, "spec": {"taints": said}}) == expected


def test_each_failure_doubles_the_wait_until_a_calm_time():
    backoff = FailureBackoff(1.0, 8.0)
    now, waits = 0.0, []
    for _ in range(5):
        backoff.record_retry("k", now)
        waits.append(backoff.seconds_left("k", now))
        now += waits[-1]
        assert backoff.seconds_left("k", now) == 0
    assert waits == [1, 2, 4, 8, 8]
    backoff.record_retry("k", now + 17)
    assert backoff.seconds_left("k", now + 17) == 1
