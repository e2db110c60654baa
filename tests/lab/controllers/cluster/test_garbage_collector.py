"""What controllers tidy up: dependents, namespaces, and what every namespace must have."""

from support.lab.controller_cluster import SERVICE_ACCOUNTS, on_cluster

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS, SERVICES
from lastcall.adapters.kube.resources import ENDPOINT_SLICES as SLICES
from lastcall_lab.controllers.cluster.endpoint_slices import EndpointSliceController
from lastcall_lab.controllers.cluster.garbage_collector import GarbageCollector
from lastcall_lab.controllers.cluster.namespaces import NamespaceController
from lastcall_lab.controllers.cluster.service_accounts import ServiceAccountController
from lastcall_lab.controllers.objects.served_kinds import ServedKind
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController

KINDS = {
    ("v1", "Pod"): ServedKind("pods", namespaced=True),
    ("v1", "ConfigMap"): ServedKind("configmaps", namespaced=True),
    ("apps/v1", "ReplicaSet"): ServedKind("replicasets.apps", namespaced=True),
    ("apps/v1", "Deployment"): ServedKind("deployments.apps", namespaced=True),
}


def config_map(name, *owners, block=False):
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references}}


def pod(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@on_cluster(GarbageCollector(KINDS))
async def test_in_the_background_dependents_go_after_their_last_owner(cluster):
    first = await cluster.create(CONFIG_MAPS, config_map("first"))
    second = await cluster.create(CONFIG_MAPS, config_map("second"))
    await cluster.create(CONFIG_MAPS, config_map("both", first, second))
    child = await cluster.create(CONFIG_MAPS, config_map("child", first))
    await cluster.create(CONFIG_MAPS, config_map("grandchild", child))
    await cluster.delete(CONFIG_MAPS, "first")
    await cluster.until(lambda: cluster.names(CONFIG_MAPS) == ["both", "second"])
    await cluster.settle(5)
    assert cluster.names(CONFIG_MAPS) == ["both", "second"], "an owner is left"
    await cluster.delete(CONFIG_MAPS, "second")
    await cluster.until(lambda: cluster.count(CONFIG_MAPS) == 0)


@on_cluster(GarbageCollector(KINDS))
async def test_in_the_foreground_the_owner_waits_for_those_that_block_it(cluster):
    owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
    blocking = config_map("blocking", owner, block=True)
    blocking["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(CONFIG_MAPS, blocking)
    await cluster.delete(CONFIG_MAPS, "owner", propagation="Foreground")
    await cluster.settle(5)
    assert cluster.names(CONFIG_MAPS) == ["blocking", "owner"]
    assert cluster.get(CONFIG_MAPS, "blocking")["metadata"]["deletionTimestamp"]
    await cluster.patch(CONFIG_MAPS, "blocking", {"metadata": {"finalizers": None}})
    await cluster.until(lambda: cluster.count(CONFIG_MAPS) == 0)


@on_cluster(GarbageCollector(KINDS))
async def test_orphans_are_let_go(cluster):
    owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
    await cluster.create(CONFIG_MAPS, config_map("child", owner))
    await cluster.delete(CONFIG_MAPS, "owner", propagation="Orphan")
    await cluster.until(lambda: cluster.names(CONFIG_MAPS) == ["child"])
    await cluster.settle(5)
    assert "ownerReferences" not in cluster.get(CONFIG_MAPS, "child")["metadata"]


@on_cluster(GarbageCollector(KINDS))
async def test_another_object_of_the_owners_name_is_not_the_owner(cluster):
    owner = await cluster.create(CONFIG_MAPS, config_map("owner"))
    await cluster.create(CONFIG_MAPS, config_map("child", owner))
    await cluster.delete(CONFIG_MAPS, "owner", propagation="Background")
    await cluster.create(CONFIG_MAPS, config_map("owner"))
    await cluster.until(lambda: cluster.names(CONFIG_MAPS) == ["owner"])


@on_cluster(NamespaceController(["configmaps", "pods", "serviceaccounts"]), ServiceAccountController("PEM"))
async def test_a_namespace_goes_when_it_is_empty(cluster):
    await cluster.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await cluster.until(
        lambda: "default" in [s.key.name for s in cluster.server.store.objects("serviceaccounts", "shop")]
    )
    bundle = await cluster.client.get(CONFIG_MAPS, "kube-root-ca.crt", namespace="shop")
    assert bundle["data"] == {"ca.crt": "PEM"}
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(PODS, held, namespace="shop")
    await cluster.client.delete(NAMESPACES, "shop")
    await cluster.settle(10)
    [condition] = cluster.get(NAMESPACES, "shop")["status"]["conditions"]
    assert condition["message"] == "Some resources are remaining: pods. has 1 resource instances"
    assert cluster.count(CONFIG_MAPS) == 4, "those of the four namespaces that stay"
    await cluster.patch(PODS, "held", {"metadata": {"finalizers": None}}, namespace="shop")
    await cluster.until(lambda: cluster.get(NAMESPACES, "shop") is None)


@on_cluster(ServiceAccountController("PEM"))
async def test_a_deleted_service_account_is_made_again(cluster):
    await cluster.delete(SERVICE_ACCOUNTS, "default")
    await cluster.until(lambda: len(list(cluster.server.store.objects("serviceaccounts", "default"))) == 1)


@on_cluster(EndpointSliceController())
async def test_endpoints_follow_their_pods(cluster):
    port = {"name": "http", "port": 80, "targetPort": "web"}
    await cluster.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}})
    await cluster.until(lambda: cluster.count(SLICES) == 1)
    one = pod("one", app="web")
    one["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 8080}]
    one["spec"]["nodeName"] = "n1"
    await cluster.create(PODS, one)
    await cluster.create(PODS, pod("other", app="db"))
    await cluster.ready("one")
    await cluster.patch(PODS, "one", {"status": {"podIP": "127.64.0.1"}}, "status")
    conditions = {"ready": True, "serving": True, "terminating": False}
    await cluster.until(
        lambda: [e["conditions"] for e in cluster.all(SLICES)[0].get("endpoints") or ()] == [conditions]
    )
    [found] = cluster.all(SLICES)
    assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert found["endpoints"][0]["targetRef"]["name"] == "one"
    assert found["endpoints"][0]["nodeName"] == "n1"
    await cluster.delete(PODS, "one", grace=30)
    leaving = {"ready": False, "serving": True, "terminating": True}
    await cluster.until(lambda: cluster.all(SLICES)[0]["endpoints"][0]["conditions"] == leaving)
    await cluster.delete(PODS, "one", grace=0)
    await cluster.until(lambda: not cluster.all(SLICES)[0].get("endpoints"))
    await cluster.delete(SERVICES, "web")
    await cluster.until(lambda: cluster.count(SLICES) == 0)


@on_cluster(GarbageCollector(KINDS), ReplicaSetController())
async def test_a_deployments_sets_and_pods_go_with_it(cluster):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    owner = await cluster.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner["metadata"]["uid"]}
    await cluster.create(REPLICA_SETS, {"metadata": {"name": "web-1", "ownerReferences": [reference]}, "spec": spec})
    await cluster.until(lambda: cluster.count(PODS) == 2)
    await cluster.delete(DEPLOYMENTS, "web")
    await cluster.until(lambda: cluster.count(PODS) + cluster.count(REPLICA_SETS) == 0)
