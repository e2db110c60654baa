"""Pods that no kubelet will confirm, in virtual time; the verdicts as tables."""

import pytest
from support.lab_cluster import on_cluster
from support.lab_nodes import Beats

from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.lab.controllers.podgc import PodGC, Settings
from lastcall.lab.controllers.pods import condition
from lastcall.lab.controllers.verdicts import Detachment, DetachRules, Node, Removal, detachment, removal
from lastcall.model.tolerations import Taint

OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def pod(name, **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@on_cluster(PodGC())
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
    assert not condition(cluster.get(PODS, "held"), "DisruptionTarget")


@on_cluster(PodGC())
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
    said = condition(found, "DisruptionTarget")
    assert (said["reason"], said["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


@on_cluster(PodGC())
async def test_a_node_that_comes_back_keeps_its_pods(cluster):
    await cluster.create(PODS, pod("web", nodeName="n1"))
    await cluster.settle(30)
    await cluster.create(NODES, {"metadata": {"name": "n1"}}, namespace="")
    await cluster.settle(100)
    assert not cluster.get(PODS, "web")["metadata"].get("deletionTimestamp")
    await cluster.delete(NODES, "n1", namespace="")
    await cluster.settle(39)
    assert cluster.names(PODS) == ["web"], "it is missing anew"


@on_cluster(PodGC(Settings(finished=2)))
async def test_the_oldest_finished_pods_go_when_there_are_too_many(cluster):
    for name in ("a", "b", "c", "d"):
        await cluster.create(PODS, pod(name, nodeName="n1"))
        status = {"phase": "Failed", "reason": "Evicted"} if name == "c" else {"phase": "Succeeded"}
        await cluster.patch(PODS, name, {"status": status}, "status")
        await cluster.settle(1.1)
    await cluster.until(lambda: cluster.count(PODS) == 2, seconds=25)
    assert cluster.names(PODS) == ["b", "d"], "evicted ones first"


SICK = Node(ready=False)
OUT_READY = Node(ready=True, taints=(Taint(key=OUT["key"], effect="NoSchedule"),))
OUT_SICK = Node(ready=False, taints=OUT_READY.taints)


@pytest.mark.parametrize(
    ("terminating", "bound", "node", "missing_for", "verdict"),
    [
        (True, False, None, 0, Removal.UNSCHEDULED),
        (False, False, None, 0, None),
        (True, True, OUT_SICK, 0, Removal.OUT_OF_SERVICE),
        (False, True, OUT_SICK, 0, None),
        (True, True, OUT_READY, 0, None),
        (True, True, SICK, 0, None),
        (False, True, None, 40, Removal.ORPHANED),
        (True, True, None, 39, None),
    ],
)
def test_what_is_removed(terminating, bound, node, missing_for, verdict):
    said = removal(terminating=terminating, bound=bound, node=node, missing_for=missing_for, quarantine=40)
    assert said is verdict


@pytest.mark.parametrize(
    ("mounted", "waited", "node", "force", "verdict"),
    [
        (False, 0, Node(ready=True), True, Detachment.UNMOUNTED),
        (True, 0, Node(ready=True), True, None),
        (True, 1e6, Node(ready=True), True, None),
        (True, 360, SICK, True, None),
        (True, 361, SICK, True, Detachment.TIMEOUT),
        (True, 361, SICK, False, None),
        (True, 361, None, True, Detachment.TIMEOUT),
        (True, 0, OUT_READY, True, Detachment.OUT_OF_SERVICE),
        (True, 0, OUT_SICK, False, Detachment.OUT_OF_SERVICE),
        (True, 361, OUT_SICK, True, Detachment.TIMEOUT),
    ],
)
def test_what_is_detached(mounted, waited, node, force, verdict):
    rules = DetachRules(force_on_timeout=force)
    assert detachment(mounted=mounted, waited=waited, node=node, rules=rules) is verdict
