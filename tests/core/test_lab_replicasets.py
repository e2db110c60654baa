"""ReplicaSets on the lab's API server, in virtual time."""

from support.lab_cluster import on_cluster

from lastcall.adapters.kube.resources import PODS, REPLICA_SETS
from lastcall.lab.controllers.replicasets import ReplicaSets


def replica_set(replicas, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


@on_cluster(ReplicaSets())
async def test_as_many_pods_as_asked_for(cluster):
    await cluster.create(REPLICA_SETS, replica_set(3))
    await cluster.until(lambda: cluster.count(PODS) == 3)
    await cluster.settle()
    assert cluster.count(PODS) == 3, "none is made twice"
    await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
    await cluster.until(lambda: cluster.count(PODS) == 1)
    await cluster.settle()
    assert cluster.count(PODS) == 1
    assert cluster.get(REPLICA_SETS, "web")["status"]["replicas"] == 1


@on_cluster(ReplicaSets())
async def test_the_unready_and_unscheduled_go_first(cluster):
    await cluster.create(REPLICA_SETS, replica_set(3))
    await cluster.until(lambda: cluster.count(PODS) == 3)
    keep = cluster.names(PODS)[1]
    await cluster.bind(keep, "n1")
    await cluster.ready(keep)
    await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
    await cluster.until(lambda: cluster.count(PODS) == 1)
    assert cluster.names(PODS) == [keep]
