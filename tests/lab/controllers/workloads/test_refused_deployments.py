"""Deployments whose sets or pods the API server refuses."""

from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import condition, refuse, told, workload

from lastcall.adapters.kube.resources import DEPLOYMENTS
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController

on_deployments = on_cluster(DeploymentController(), ReplicaSetController())


def status(cluster):
    return cluster.get(DEPLOYMENTS, "web")["status"]


def done(cluster):
    return status(cluster).get("availableReplicas") == 1


@on_deployments
async def test_that_a_set_cannot_be_made_is_told(cluster):
    allow = refuse(cluster, "replicasets", "not today")
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=1))
        await cluster.settle(60)
        [said] = status(cluster)["conditions"]
        [why] = set(told(cluster, "ReplicaSetCreateError"))
        assert why.startswith('Failed to create new replica set "web-')
        assert why.endswith(": not today")
        assert (said["type"], said["status"], said["reason"]) == ("Progressing", "False", "ReplicaSetCreateError")
        assert said["message"] == why
        assert "observedGeneration" not in status(cluster), "nothing else is known"
        allow()
        await cluster.until(lambda: done(cluster))
        await cluster.settle()
        assert condition(cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")


@on_deployments
async def test_one_without_a_deadline_says_nothing_of_its_progress(cluster):
    refuse(cluster, "replicasets", "not today")
    await cluster.create(DEPLOYMENTS, workload(replicas=1, progressDeadlineSeconds=2**31 - 1))
    await cluster.until(lambda: told(cluster, "ReplicaSetCreateError"))
    await cluster.settle()
    assert not status(cluster).get("conditions")


@on_deployments
async def test_that_pods_are_refused_is_told_by_the_deployment_too(cluster):
    allow = refuse(cluster, "pods", "not today")
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=1))
        await cluster.until(lambda: condition(cluster.get(DEPLOYMENTS, "web"), "ReplicaFailure"))
        assert condition(cluster.get(DEPLOYMENTS, "web"), "ReplicaFailure") == ("True", "FailedCreate")
        assert condition(cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("True", "NewReplicaSetCreated")
        allow()
        await cluster.until(lambda: done(cluster))
        await cluster.settle()
        assert condition(cluster.get(DEPLOYMENTS, "web"), "ReplicaFailure") is None
