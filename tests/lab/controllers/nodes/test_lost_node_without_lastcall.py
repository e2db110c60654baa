"""What Kubernetes does when a node is gone and nobody says so, and what it does when somebody says it is off.

The controllers with the constants of Kubernetes 1.36, in virtual time. These are the scenarios that failover is to improve.
"""

import functools

from support.lab.controller_cluster import on_cluster
from support.lab.volume_kubelets import Kubelets, claim, storage_class

from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    CLAIMS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from lastcall_lab import virtual
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController
from lastcall_lab.controllers.nodes.pod_gc import PodGarbageCollector
from lastcall_lab.controllers.nodes.taint_eviction import TaintEvictionController
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.controllers.scheduling.scheduler import Scheduler
from lastcall_lab.controllers.volumes.attach_detach import AttachDetachController
from lastcall_lab.controllers.volumes.volume_binder import VolumeBinderController
from lastcall_lab.controllers.volumes.volume_protection import ClaimProtectionController, VolumeProtectionController
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController
from lastcall_lab.volumes.attacher import Attacher
from lastcall_lab.volumes.provisioner import Provisioner
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_events import AccessFault, find_violations
from lastcall_lab.volumes.volume_store import InMemoryVolumes

OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


def scenario(test):
    """Three nodes, a Deployment ``web`` and a StatefulSet ``db`` with a volume, all running."""
    storage = Storage(InMemoryVolumes(), virtual.VirtualClock())
    controllers = (
        *(
            Scheduler(),
            NodeLifecycleController(),
            TaintEvictionController(),
            PodGarbageCollector(),
            DeploymentController(),
            ReplicaSetController(),
            StatefulSetController(),
        ),
        *(
            VolumeBinderController(),
            ClaimProtectionController(),
            VolumeProtectionController(),
            AttachDetachController(),
            Provisioner(storage),
            Attacher(storage),
        ),
    )

    @functools.wraps(test)
    async def run(cluster):
        nodes = Kubelets(cluster, storage)
        await nodes.begin("n1", "n2", "n3")
        await cluster.create(STORAGE_CLASSES, storage_class(), namespace="")
        await cluster.create(DEPLOYMENTS, workload("web", replicas=1))
        templates = [claim("data")]
        await cluster.create(
            STATEFUL_SETS, workload("db", replicas=1, serviceName="db", volumeClaimTemplates=templates)
        )
        await cluster.until(lambda: len(running(cluster)) == 2, 30)
        await cluster.settle(60)
        try:
            await test(nodes)
        finally:
            await nodes.end()

    return on_cluster(*controllers)(run)


def workload(name, **spec):
    labels = {"app": name}
    mounts = [{"name": "data", "mountPath": "/data"}] if "volumeClaimTemplates" in spec else []
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def running(cluster, app=""):
    """Pods that run, as far as the API server knows."""
    found = [one for one in cluster.all(PODS) if one["status"].get("phase") == "Running"]
    return [one for one in found if not app or one["metadata"]["labels"]["app"] == app]


def ready(cluster, app):
    return [one for one in running(cluster, app) if condition_of(one, "Ready").get("status") == "True"]


def at(cluster):
    return cluster.clock.boottime()


@scenario
async def test_a_deployments_pod_is_replaced_after_six_minutes(nodes):
    cluster = nodes.cluster
    (old,) = running(cluster, "web")
    start = at(cluster)
    nodes.pull(old["spec"]["nodeName"])
    await cluster.until(lambda: not ready(cluster, "web"))
    assert 40 <= at(cluster) - start <= 60, "it is called unready as soon as its node is"
    await cluster.until(lambda: ready(cluster, "web"))
    assert 345 <= at(cluster) - start <= 375
    found = cluster.get(PODS, old["metadata"]["name"])
    assert found["metadata"]["deletionTimestamp"], "the old one is Terminating"
    await cluster.settle(1500)
    assert cluster.get(PODS, old["metadata"]["name"]), "for ever"


@scenario
async def test_a_statefulsets_pod_stays_terminating_and_its_volume_attached(nodes):
    cluster = nodes.cluster
    (old,) = running(cluster, "db")
    node = old["spec"]["nodeName"]
    nodes.pull(node)
    await cluster.settle(1500)
    found = cluster.get(PODS, "db-0")
    assert found["metadata"]["uid"] == old["metadata"]["uid"]
    assert found["metadata"]["deletionTimestamp"]
    assert condition_of(found, "Ready")["status"] == "False"
    assert condition_of(found, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    (attachment,) = cluster.all(ATTACHMENTS)
    assert (attachment["spec"]["nodeName"], attachment["metadata"].get("deletionTimestamp")) == (node, None)
    assert cluster.get(CLAIMS, "data-db-0")["status"]["phase"] == "Bound"
    events = [one["message"] for one in cluster.all(EVENTS) if one["reason"] == "TaintManagerEviction"]
    assert "Marking for deletion Pod default/db-0" in events


@scenario
async def test_with_the_taint_it_fails_over_and_nobody_writes_twice(nodes):
    cluster = nodes.cluster
    (old,) = running(cluster, "db")
    node = old["spec"]["nodeName"]
    nodes.pull(node)
    await cluster.settle(120)
    taints = cluster.get(NODES, node)["spec"]["taints"]
    start = at(cluster)
    await cluster.patch(NODES, node, {"spec": {"taints": [*taints, OUT]}}, namespace="")
    await cluster.until(lambda: ready(cluster, "db"), 60)
    assert at(cluster) - start <= 40, "at most twenty seconds until the pod's object is removed, and some to attach"
    (new,) = ready(cluster, "db")
    assert new["metadata"]["name"] == "db-0"
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["spec"]["nodeName"] != node
    assert [one["spec"]["nodeName"] for one in cluster.all(ATTACHMENTS)] == [new["spec"]["nodeName"]]
    await cluster.settle(10)
    assert find_violations(nodes.storage.records) == []


@scenario
async def test_with_the_taint_on_a_node_that_is_only_cut_off_its_data_is_torn_from_a_writer(nodes):
    cluster = nodes.cluster
    (old,) = running(cluster, "db")
    node = old["spec"]["nodeName"]
    nodes.silent.add(node)
    await cluster.settle(120)
    taints = cluster.get(NODES, node)["spec"]["taints"]
    await cluster.patch(NODES, node, {"spec": {"taints": [*taints, OUT]}}, namespace="")
    await cluster.until(lambda: ready(cluster, "db"), 60)
    assert [one.fault for one in find_violations(nodes.storage.records)] == [AccessFault.DETACHED_IN_USE]


@scenario
async def test_a_node_that_comes_back_confirms_what_was_asked(nodes):
    cluster = nodes.cluster
    (old,) = running(cluster, "db")
    node = old["spec"]["nodeName"]
    nodes.silent.add(node)
    await cluster.settle(1000)
    assert cluster.get(PODS, "db-0")["metadata"]["deletionTimestamp"]
    await nodes.back(node)
    await cluster.until(lambda: ready(cluster, "db"), 60)
    (new,) = ready(cluster, "db")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert find_violations(nodes.storage.records) == []
