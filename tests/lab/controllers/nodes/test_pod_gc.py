"""Pods that no kubelet will confirm, in virtual time."""

from support.lab.controller_cluster import on_cluster
from support.lab.scripted_nodes import Beats

from lastcall.adapters.kube.resources import NODES, PODS
from lastcall_lab.controllers.nodes.pod_gc import PodGarbageCollector, PodGCSettings
from lastcall_lab.controllers.objects.pods import condition_of

OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@on_cluster(PodGarbageCollector())
async def test_on_a_node_that_is_out_of_service_and_not_ready_what_terminates_is_removed(cluster):
    await Beats(cluster).start("n1")
    for name in ("going", "staying", "held"):
        await cluster.create(PODS, pod(name, nodeName="n1"))
        await cluster.ready(name)
    await cluster.patch(PODS, "held", {"metadata": {"finalizers": ["example.com/hold"]}})
    await cluster.delete(PODS, "going")
    await cluster.delete(PODS, "held")
    await cluster.patch(NODES, "n1", {"spec": {"taints": [OUT]}}, namespace="")
    await cluster.settle(50)
    assert cluster.count(PODS) == 3, "the node is ready"
    await Beats(cluster).say("n1", "Unknown")
    await cluster.settle(22)
    assert cluster.names(PODS) == ["held", "staying"]
    assert cluster.get(PODS, "held")["status"]["phase"] == "Failed", "its volumes are free all the same"
    assert not condition_of(cluster.get(PODS, "held"), "DisruptionTarget")


@on_cluster(PodGarbageCollector())
async def test_orphans_go_when_their_node_has_been_missing_for_a_while(cluster):
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    held = pod("web", nodeName="n1")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(PODS, held)
    await cluster.ready("web")
    await cluster.delete(NODES, "n1", namespace="")
    await cluster.settle(39)
    assert not cluster.get(PODS, "web")["metadata"].get("deletionTimestamp")
    await cluster.settle(42)
    found = cluster.get(PODS, "web")
    assert found["status"]["phase"] == "Failed"
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    said = condition_of(found, "DisruptionTarget")
    assert (said["reason"], said["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


@on_cluster(PodGarbageCollector())
async def test_a_node_that_comes_back_keeps_its_pods(cluster):
    await cluster.create(PODS, pod("web", nodeName="n1"))
    await cluster.settle(30)
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.settle(100)
    assert not cluster.get(PODS, "web")["metadata"].get("deletionTimestamp")
    await cluster.delete(NODES, "n1", namespace="")
    await cluster.settle(39)
    assert cluster.names(PODS) == ["web"], "it is missing anew"


@on_cluster(PodGarbageCollector(PodGCSettings(finished=2)))
async def test_the_oldest_finished_pods_go_when_there_are_too_many(cluster):
    for name in ("a", "b", "c", "d"):
        await cluster.create(PODS, pod(name, nodeName="n1"))
        status = {"phase": "Failed", "reason": "Evicted"} if name == "c" else {"phase": "Succeeded"}
        await cluster.patch(PODS, name, {"status": status}, "status")
        await cluster.settle(1.1)
    await cluster.until(lambda: cluster.count(PODS) == 2, seconds=25)
    assert cluster.names(PODS) == ["b", "d"], "evicted ones first"
