"""ReplicaSets on the lab's API server, in virtual time."""

from support.lab.controller_cluster import SERVICE_ACCOUNTS, on_cluster
from support.lab.workloads import told

from lastcall.adapters.kube.resources import EVENTS, PODS, REPLICA_SETS
from lastcall_lab.apiserver.admission.chain import refusal_error
from lastcall_lab.controllers.framework.actions import DeleteObject
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController

CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}


def replica_set(replicas, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


@on_cluster(ReplicaSetController())
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


@on_cluster(ReplicaSetController())
async def test_the_unready_and_unscheduled_go_first(cluster):
    await cluster.create(REPLICA_SETS, replica_set(3))
    await cluster.until(lambda: cluster.count(PODS) == 3)
    keep = cluster.names(PODS)[1]
    await cluster.bind(keep, "n1")
    await cluster.ready(keep)
    await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
    await cluster.until(lambda: cluster.count(PODS) == 1)
    assert cluster.names(PODS) == [keep]


@on_cluster(ReplicaSetController())
async def test_orphans_that_match_are_adopted_and_others_released(cluster):
    await cluster.create(PODS, {"metadata": {"name": "mine", "labels": {"app": "web"}}, "spec": CONTAINERS})
    await cluster.create(REPLICA_SETS, replica_set(2))
    await cluster.until(lambda: cluster.count(PODS) == 2)
    [owner] = cluster.get(PODS, "mine")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    await cluster.patch(PODS, "mine", {"metadata": {"labels": {"app": "other"}}})
    await cluster.until(lambda: cluster.count(PODS) == 3)
    assert not cluster.get(PODS, "mine")["metadata"].get("ownerReferences")
    assert cluster.get(REPLICA_SETS, "web")["status"]["replicas"] == 2


@on_cluster(ReplicaSetController())
async def test_pods_that_have_failed_are_replaced_and_stay_with_their_set(cluster):
    await cluster.create(REPLICA_SETS, replica_set(1))
    await cluster.until(lambda: cluster.count(PODS) == 1)
    [failed] = cluster.names(PODS)
    await cluster.patch(PODS, failed, {"status": {"phase": "Failed"}}, "status")
    await cluster.until(lambda: cluster.count(PODS) == 2)
    await cluster.patch(PODS, failed, {"metadata": {"labels": {"app": "other"}}})
    await cluster.settle()
    [owner] = cluster.get(PODS, failed)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ReplicaSet", "web"), "they go with the set"
    assert cluster.count(PODS) == 2


@on_cluster(ReplicaSetController())
async def test_a_set_that_goes_adopts_nothing(cluster):
    await cluster.create(REPLICA_SETS, {**replica_set(0), "metadata": {"name": "web", "finalizers": ["mine/stays"]}})
    await cluster.delete(REPLICA_SETS, "web")
    await cluster.create(PODS, {"metadata": {"name": "mine", "labels": {"app": "web"}}, "spec": CONTAINERS})
    await cluster.settle()
    assert not cluster.get(PODS, "mine")["metadata"].get("ownerReferences")


@on_cluster(ReplicaSetController())
async def test_the_status_tells_who_is_ready_available_and_going(cluster):
    await cluster.create(REPLICA_SETS, replica_set(2, minReadySeconds=30))
    await cluster.until(lambda: cluster.count(PODS) == 2)
    first, second = cluster.names(PODS)
    for name in (first, second):
        await cluster.bind(name, "n1")
    await cluster.ready(first)
    await cluster.settle()
    said = cluster.get(REPLICA_SETS, "web")["status"]
    assert (said["replicas"], said["readyReplicas"], said.get("availableReplicas", 0)) == (2, 1, 0)
    await cluster.settle(31)
    assert cluster.get(REPLICA_SETS, "web")["status"]["availableReplicas"] == 1
    await cluster.delete(PODS, second, grace=30)
    await cluster.until(lambda: cluster.get(REPLICA_SETS, "web")["status"]["terminatingReplicas"] == 1)
    assert cluster.get(REPLICA_SETS, "web")["status"]["replicas"] == 2, "another one has come for it"


@on_cluster(ReplicaSetController())
async def test_that_a_pod_is_refused_is_told(cluster):
    broken = replica_set(1)
    broken["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    await cluster.create(REPLICA_SETS, broken)
    await cluster.until(lambda: told(cluster, "FailedCreate"))
    assert told(cluster, "FailedCreate")[0].startswith("Error creating: pods ")
    assert 'serviceaccount "nobody" not found' in told(cluster, "FailedCreate")[0]
    await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "nobody"}})
    await cluster.until(lambda: cluster.count(PODS) == 1)


def failure(obj):
    """Its condition ReplicaFailure; None if it has none."""
    found = [one for one in obj["status"].get("conditions") or () if one["type"] == "ReplicaFailure"]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else None


@on_cluster(ReplicaSetController())
async def test_that_pods_are_refused_is_in_the_status_until_they_are_not(cluster):
    broken = replica_set(2)
    broken["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    await cluster.create(REPLICA_SETS, broken)
    await cluster.settle(120)
    status, reason, why = failure(cluster.get(REPLICA_SETS, "web"))
    assert (status, reason) == ("True", "FailedCreate")
    assert why.startswith('pods "web-" is forbidden: error looking up service account default/nobody:')
    since = cluster.get(REPLICA_SETS, "web")["status"]["conditions"][0]["lastTransitionTime"]
    await cluster.settle(60)
    [same] = cluster.get(REPLICA_SETS, "web")["status"]["conditions"]
    assert same["lastTransitionTime"] == since
    tries = sum(one["count"] for one in cluster.all(EVENTS) if one["reason"] == "FailedCreate")
    assert 10 < tries < 60, "it is tried again and again, with pauses"
    await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "nobody"}})
    await cluster.until(lambda: cluster.count(PODS) == 2)
    await cluster.settle()
    assert failure(cluster.get(REPLICA_SETS, "web")) is None


@on_cluster(ReplicaSetController())
async def test_that_pods_cannot_be_deleted_is_in_the_status_too(cluster):
    await cluster.create(REPLICA_SETS, replica_set(2))
    await cluster.until(lambda: cluster.count(PODS) == 2)
    asked = cluster.server.admission.validate

    async def refuse(attributes):
        if (attributes.operation, attributes.resource.plural) == ("DELETE", "pods"):
            raise refusal_error(attributes, "not today")
        await asked(attributes)

    cluster.server.admission.validate = refuse
    await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
    await cluster.until(lambda: told(cluster, "FailedDelete"))
    [why] = set(told(cluster, "FailedDelete"))
    assert why.startswith("Error deleting: pods ")
    await cluster.settle()
    status, reason, message = failure(cluster.get(REPLICA_SETS, "web"))
    assert (status, reason, message) == ("True", "FailedDelete", why.replace("Error deleting", "unable to delete pods"))
    del cluster.server.admission.validate
    await cluster.until(lambda: cluster.count(PODS) == 1)
    await cluster.settle()
    assert failure(cluster.get(REPLICA_SETS, "web")) is None


@on_cluster(ReplicaSetController())
async def test_who_wants_no_pods_any_more_has_not_failed(cluster):
    broken = replica_set(1)
    broken["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    await cluster.create(REPLICA_SETS, broken)
    await cluster.until(lambda: failure(cluster.get(REPLICA_SETS, "web")))
    await cluster.patch(REPLICA_SETS, "web", {"spec": {"replicas": 0}})
    await cluster.until(lambda: failure(cluster.get(REPLICA_SETS, "web")) is None, 15)


def test_nobody_counts_on_pods_that_are_about_to_be_deleted():
    view, made = View(), replica_set(1)
    made["metadata"] |= {"namespace": "default", "uid": "u", "generation": 2}
    view.apply("replicasets.apps", made, None)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    for name in ("a", "b", "c"):
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}}
        metadata |= {"ownerReferences": [owner], "creationTimestamp": "2027-01-15T08:00:00Z"}
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "conditions": [ready]}
        view.apply("pods", {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}, None)
    told, *rest = ReplicaSetController().decide(ObjectRef("replicasets.apps", "default", "web"), view, 0.0).actions
    assert told.body["status"]["availableReplicas"] == 1
    assert [action.ref.name for action in rest if isinstance(action, DeleteObject)] == ["a", "b"]
