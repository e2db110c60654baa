"""The scheduler on the lab's API server, in virtual time; what it says is what Kubernetes 1.36 says."""

import pytest
from support.lab.controller_cluster import on_cluster
from support.lab.scripted_nodes import Beats

from lastcall.adapters.kube.client import JSON_PATCH
from lastcall.adapters.kube.resources import EVENTS, NODES, PODS, PRIORITY_CLASSES
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController
from lastcall_lab.controllers.objects import node_affinity
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.controllers.scheduling import resource_requests
from lastcall_lab.controllers.scheduling.scheduler import Scheduler

HOPELESS = (
    "no new claims to deallocate, preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
)
NO_VICTIMS = "no new claims to deallocate, preemption: 0/{0} nodes are available: {0} No preemption victims found for incoming pod."
ZONES = {name: {"topology.kubernetes.io/zone": zone} for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b"))}


def pod(name, *, cpu=None, labels=None, **spec):
    container = {"name": "c", "image": "i"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    return {"metadata": {"name": name, "labels": labels or {"app": "web"}}, "spec": {"containers": [container], **spec}}


def node_of(cluster, name):
    return cluster.get(PODS, name)["spec"].get("nodeName")


def why(cluster, name):
    said = condition_of(cluster.get(PODS, name), "PodScheduled")
    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    return said["message"]


def events(cluster, reason):
    found = [one for one in cluster.all(EVENTS) if one["reason"] == reason]
    return sorted(found, key=lambda one: int(one["metadata"]["resourceVersion"]))


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_a_pod_gets_a_node_and_it_is_told(cluster):
    await cluster.create(PODS, pod("web"))
    await cluster.settle()
    assert why(cluster, "web") == "no nodes available to schedule pods"
    beats = Beats(cluster)
    await beats.start("n1")
    await cluster.settle()
    assert node_of(cluster, "web") == "n1"
    assert condition_of(cluster.get(PODS, "web"), "PodScheduled")["status"] == "True"
    (event,) = events(cluster, "Scheduled")
    assert event["message"] == "Successfully assigned default/web to n1"
    assert (event["source"]["component"], event["involvedObject"]["name"]) == ("default-scheduler", "web")
    failed = events(cluster, "FailedScheduling")[0]
    assert (failed["type"], failed["message"]) == ("Warning", "no nodes available to schedule pods")
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_what_speaks_against_nodes(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2", "n3", labels={"n3": {"disk": "fast"}})
    await cluster.settle(0.3)
    await cluster.patch(NODES, "n1", {"spec": {"unschedulable": True}}, namespace="")
    own = {"key": "example.com/own", "effect": "NoSchedule"}
    await cluster.patch(NODES, "n2", {"spec": {"taints": [own]}}, namespace="")
    await cluster.settle(0.3)
    await cluster.create(PODS, pod("slow", nodeSelector={"disk": "slow"}))
    await cluster.settle(0.3)
    assert why(cluster, "slow") == (
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s),"
        f" 1 node(s) were unschedulable. {HOPELESS.format(3)}"
    )
    (event,) = events(cluster, "FailedScheduling")
    assert event["message"] == why(cluster, "slow")
    await cluster.create(PODS, pod("tolerant", tolerations=[{"key": "example.com/own", "operator": "Exists"}]))
    await cluster.create(PODS, pod("any"))
    await cluster.settle(0.3)
    assert node_of(cluster, "any") == "n3"
    assert node_of(cluster, "tolerant") in ("n2", "n3")
    await cluster.patch(NODES, "n2", {"metadata": {"labels": {"disk": "slow"}}, "spec": {"taints": None}}, namespace="")
    await cluster.settle(0.3)
    assert node_of(cluster, "slow") == "n2"
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_no_more_than_a_node_has_and_the_important_first(cluster):
    beats = Beats(cluster)
    await cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000}, namespace="")
    await beats.start("n1", room={"cpu": "2", "memory": "1Gi", "pods": "3"})
    await cluster.settle(0.3)
    for name in ("a", "b", "c"):
        await cluster.create(PODS, pod(name, cpu="800m"))
    await cluster.settle(0.3)
    assert [node_of(cluster, name) for name in "abc"] == ["n1", "n1", None]
    assert why(cluster, "c") == f"0/1 nodes are available: 1 Insufficient cpu. {NO_VICTIMS.format(1)}"
    meek = {"metadata": {"name": "meek"}, "value": 0, "preemptionPolicy": "Never"}
    await cluster.create(PRIORITY_CLASSES, meek, namespace="")
    await cluster.create(PODS, pod("huge", cpu="3", priorityClassName="meek"))
    await cluster.create(PODS, pod("d", cpu="800m", priorityClassName="high"))
    await cluster.settle(0.3)
    never = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert why(cluster, "huge") == f"0/1 nodes are available: 1 Insufficient cpu. {never}"
    await cluster.delete(PODS, "a", grace=0)
    await cluster.settle(0.3)
    assert (node_of(cluster, "c"), node_of(cluster, "d")) == (None, "n1")
    await cluster.patch(PODS, "b", {"status": {"phase": "Succeeded"}}, "status")
    await cluster.settle(0.3)
    assert node_of(cluster, "c") == "n1"
    for name in ("x", "y"):
        await cluster.create(PODS, pod(name))
    await cluster.settle(0.3)
    assert why(cluster, "y") == f"0/1 nodes are available: 1 Too many pods. {NO_VICTIMS.format(1)}"
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_pods_of_one_owner_are_spread(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2", "n3")
    await cluster.settle(0.3)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    for number in range(6):
        one = pod(f"web-{number}")
        one["metadata"]["ownerReferences"] = [owner]
        await cluster.create(PODS, one)
    await cluster.settle(0.3)
    assert sorted(node_of(cluster, f"web-{number}") for number in range(6)) == ["n1", "n1", "n2", "n2", "n3", "n3"]
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_apart_and_evenly(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2", "n3", labels=ZONES)
    await cluster.settle(0.3)
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("a", "b", "c"):
        await cluster.create(PODS, pod(name, affinity=apart))
    await cluster.settle(0.3)
    assert {ZONES[node_of(cluster, name)]["topology.kubernetes.io/zone"] for name in "ab"} == {"a", "b"}
    said = "3 node(s) didn't match pod anti-affinity rules"
    assert why(cluster, "c") == f"0/3 nodes are available: {said}. {NO_VICTIMS.format(3)}"
    await cluster.create(PODS, pod("d"))
    await cluster.settle(0.3)
    assert "3 node(s) didn't satisfy existing pods anti-affinity rules" in why(cluster, "d")
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await cluster.create(PODS, pod("e", affinity=together, labels={"app": "other"}))
    even = {**term, "topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    even["labelSelector"] = {"matchLabels": {"app": "even"}}
    for number in range(5):
        await cluster.create(PODS, pod(f"even-{number}", labels={"app": "even"}, topologySpreadConstraints=[even]))
    await cluster.settle(0.3)
    assert node_of(cluster, "e")
    nodes = [node_of(cluster, f"even-{number}") for number in range(5)]
    assert sorted(nodes.count(name) for name in ("n1", "n2", "n3")) == [1, 2, 2]
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_a_pod_of_a_daemon_set_gets_the_node_that_it_names(cluster):
    beats = Beats(cluster)
    await beats.start("n1", "n2")
    await cluster.settle(0.3)

    def bound_for(name):
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    await cluster.create(PODS, pod("d2", affinity=bound_for("n2")))
    await cluster.patch(NODES, "n1", {"spec": {"unschedulable": True}}, namespace="")
    await cluster.create(PODS, pod("d1", affinity=bound_for("n1")))
    await cluster.settle(0.3)
    assert node_of(cluster, "d2") == "n2"
    assert why(cluster, "d1").startswith(
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable. "
    )
    await beats.stop()


@on_cluster(Scheduler(), NodeLifecycleController())
async def test_what_it_leaves_alone(cluster):
    beats = Beats(cluster)
    await beats.start("n1")
    await cluster.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    await cluster.create(PODS, pod("others", schedulerName="mine"))
    await cluster.settle()
    assert node_of(cluster, "gated") is None
    assert condition_of(cluster.get(PODS, "gated"), "PodScheduled")["reason"] == "SchedulingGated"
    assert node_of(cluster, "others") is None
    gone = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    await cluster.client.patch(PODS, "gated", gone, namespace="default", kind=JSON_PATCH)
    await cluster.settle()
    assert node_of(cluster, "gated") == "n1"
    await beats.stop()


def asked(cpu, restart=None):
    found = {"resources": {"requests": {"cpu": cpu}}}
    return {**found, "restartPolicy": restart} if restart else found


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [asked("1"), asked("500m")]}, 1500),
        ({"containers": [asked("1")], "initContainers": [asked("3")]}, 3000),
        ({"containers": [asked("1")], "initContainers": [asked("500m")]}, 1000),
        ({"containers": [asked("1")], "initContainers": [asked("500m", "Always")]}, 1500),
        ({"containers": [asked("1")], "initContainers": [asked("1", "Always"), asked("2")]}, 3000),
        ({"containers": [asked("1")], "initContainers": [asked("2"), asked("1", "Always")]}, 2000),
        ({"containers": [asked("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [asked("1")], "resources": {"requests": {"cpu": "4"}}}, 4000),
    ],
)
def test_what_a_pod_asks_for(spec, cpu):
    assert resource_requests.pod_requests({"spec": spec})["cpu"] == cpu


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        ({}, False),
        ({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]}, True),
        ({"matchExpressions": [{"key": "size", "operator": "Lt", "values": ["4"]}]}, False),
        ({"matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
    ],
)
def test_terms_of_node_selectors(term, matches):
    node = {"metadata": {"name": "n1", "labels": {"disk": "fast", "size": "5"}}}
    assert node_affinity.matches_node_selector({"nodeSelectorTerms": [term]}, node) is matches
