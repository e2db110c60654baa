"""Deletion: grace, preconditions, finalizers, propagation, collections."""

import pytest
from support.conformance.api_client import causes, unique
from support.conformance.objects import NOWHERE, config_map, meta, pod, running, workload

from lastcall.adapters.kube.resources import (
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICES,
)

source = pytest.mark.source
DELETE = "staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go"
STORE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go"
HANDLER = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/delete.go"
POD = "pkg/registry/core/pod/strategy.go"
OPTIONS = "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go"
FINALIZERS = "https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/"
COLLECTION = "https://kubernetes.io/docs/concepts/architecture/garbage-collection/"


@source(HANDLER)
async def test_what_is_deleted_at_once_answers_a_status(api):
    """Success, with the name and uid of what is gone."""
    made = await api.create(CONFIG_MAPS, config_map())
    status = await api.delete(CONFIG_MAPS, "m")
    assert (status["kind"], status["status"]) == ("Status", "Success")
    assert status["details"] == {"name": "m", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert await api.gone(CONFIG_MAPS, "m")


@source("pkg/registry/core/pod/storage/storage.go")
async def test_a_deleted_pod_is_answered_whole(api):
    """Pods answer themselves, also when they are gone at once."""
    await api.create(PODS, pod())
    assert (await api.delete(PODS, "p"))["kind"] == "Pod"
    assert await api.gone(PODS, "p")


@source(POD)
async def test_a_pod_on_no_node_goes_at_once(api):
    """Nobody would end its containers."""
    await api.create(PODS, pod(terminationGracePeriodSeconds=60))
    await api.delete(PODS, "p")
    assert await api.gone(PODS, "p")


@source(POD)
async def test_a_pod_on_a_node_terminates(api):
    """It stays with a deletionTimestamp in the future: now and its grace."""
    await running(api, "p")
    found = await api.delete(PODS, "p")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    assert found["metadata"]["deletionTimestamp"] > found["metadata"]["creationTimestamp"]
    assert not await api.gone(PODS, "p")


@source(POD)
async def test_the_grace_is_the_pods_own(api):
    """terminationGracePeriodSeconds."""
    await api.create(PODS, pod(node=NOWHERE, terminationGracePeriodSeconds=7))
    assert (await api.delete(PODS, "p"))["metadata"]["deletionGracePeriodSeconds"] == 7


@source(DELETE)
async def test_a_second_deletion_may_only_shorten(api):
    """A longer grace changes nothing."""
    await running(api, "p")
    first = await api.delete(PODS, "p", {"gracePeriodSeconds": 20})
    longer = await api.delete(PODS, "p", {"gracePeriodSeconds": 50})
    shorter = await api.delete(PODS, "p", {"gracePeriodSeconds": 10})
    assert longer["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 20
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 10
    assert shorter["metadata"]["deletionTimestamp"] < first["metadata"]["deletionTimestamp"]


@source(DELETE)
async def test_a_deletion_counts_as_a_generation(api):
    """Of kinds with generations."""
    await running(api, "p")
    before = (await api.get(PODS, "p"))["metadata"]["generation"]
    assert (await api.delete(PODS, "p"))["metadata"]["generation"] == before + 1


@source(DELETE)
async def test_a_forced_deletion_removes_a_pod_on_a_node(api):
    """Grace 0, whether the kubelet knows or not."""
    await running(api, "p")
    await api.delete(PODS, "p", {"gracePeriodSeconds": 0})
    assert await api.gone(PODS, "p")


@source(DELETE)
async def test_the_kubelets_last_word_is_for_its_pod_only(api):
    """Grace 0 with the uid of a pod that was replaced: 409, and the new one lives."""
    old = await running(api, "p")
    await api.delete(PODS, "p", {"gracePeriodSeconds": 0})
    await running(api, "p")
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": old["metadata"]["uid"]}}
    status = await api.delete(PODS, "p", options).refused(409, "Conflict")
    assert "the UID in the precondition" in status["message"]
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]


@source(DELETE)
async def test_a_precondition_of_the_revision(api):
    """An object that has changed is not deleted."""
    made = await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}})
    options = {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    status = await api.delete(CONFIG_MAPS, "m", options).refused(409, "Conflict")
    assert "the ResourceVersion in the precondition" in status["message"]
    assert not await api.gone(CONFIG_MAPS, "m")


@source(HANDLER)
async def test_grace_in_the_query(api):
    """Options of a deletion may stand in the query."""
    await running(api, "p")
    found = await api.delete(PODS, "p", gracePeriodSeconds=3)
    assert found["metadata"]["deletionGracePeriodSeconds"] == 3


@source(DELETE)
async def test_grace_of_kinds_without_grace(api):
    """Nothing but pods waits: a ConfigMap with finalizers has a grace of 0."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/x"]))
    found = await api.delete(CONFIG_MAPS, "m", {"gracePeriodSeconds": 30})
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0


@source(FINALIZERS)
async def test_a_finalizer_keeps_an_object(api):
    """It is answered as it is now, and goes with its last finalizer."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a", "example.com/b"]))
    found = await api.delete(CONFIG_MAPS, "m")
    assert found["kind"] == "ConfigMap"
    assert found["metadata"]["deletionTimestamp"]
    await api.patch(CONFIG_MAPS, "m", {"metadata": {"finalizers": ["example.com/b"]}})
    assert not await api.gone(CONFIG_MAPS, "m")
    last = await api.patch(CONFIG_MAPS, "m", {"metadata": {"finalizers": []}})
    assert last["metadata"]["name"] == "m"
    assert await api.gone(CONFIG_MAPS, "m")


@source(FINALIZERS)
async def test_a_name_is_not_free_while_its_object_goes(api):
    """409, and the message says that it is being deleted."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]))
    await api.delete(CONFIG_MAPS, "m")
    status = await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"])).refused(409, "AlreadyExists")
    assert status["message"] == 'object is being deleted: configmaps "m" already exists'


@source(STORE)
async def test_a_second_deletion_of_a_finalized_object(api):
    """The time of the first stays."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]))
    first = await api.delete(CONFIG_MAPS, "m")
    second = await api.delete(CONFIG_MAPS, "m")
    assert first["metadata"]["deletionTimestamp"] == second["metadata"]["deletionTimestamp"]


@source(POD)
async def test_a_pod_with_finalizers_survives_a_forced_deletion(api):
    """It stays until they are gone, with a grace of 0."""
    await running(api, "p")
    await api.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/a"]}})
    found = await api.delete(PODS, "p", {"gracePeriodSeconds": 0})
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    assert not await api.gone(PODS, "p")
    await api.patch(PODS, "p", {"metadata": {"finalizers": None}})
    assert await api.gone(PODS, "p")


@source(COLLECTION)
async def test_foreground_deletion_waits_for_the_dependents(api):
    """The finalizer foregroundDeletion, removed by the garbage collector."""
    await api.create(REPLICA_SETS, workload("r"))
    found = await api.delete(REPLICA_SETS, "r", {"propagationPolicy": "Foreground"})
    assert found["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert found["metadata"]["deletionTimestamp"]
    await api.patch(REPLICA_SETS, "r", {"metadata": {"finalizers": None}}).reply()


@source(COLLECTION)
async def test_orphaning_waits_until_the_dependents_are_free(api):
    """The finalizer orphan."""
    await api.create(REPLICA_SETS, workload("r"))
    found = await api.delete(REPLICA_SETS, "r", {"propagationPolicy": "Orphan"})
    assert found["metadata"]["finalizers"] == ["orphan"]
    await api.patch(REPLICA_SETS, "r", {"metadata": {"finalizers": None}}).reply()


@source(COLLECTION)
async def test_background_deletion_removes_the_owner_at_once(api):
    """Its dependents are left to the garbage collector."""
    await api.create(DEPLOYMENTS, workload("d", paused=True))
    await api.delete(DEPLOYMENTS, "d", {"propagationPolicy": "Background"})
    assert await api.gone(DEPLOYMENTS, "d")


@source("pkg/registry/batch/job/strategy.go")
async def test_a_jobs_deletion_orphans_with_a_warning(api):
    """Without a policy a Job's pods are kept, which the API warns of."""
    from support.conformance.objects import job

    await api.create(JOBS, job("j"))
    reply = await api.delete(JOBS, "j").reply()
    assert reply.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in reply.headers["warning"]
    await api.patch(JOBS, "j", {"metadata": {"finalizers": None}}).reply()


@source(OPTIONS)
async def test_two_ways_to_say_the_policy(api):
    """orphanDependents and propagationPolicy exclude each other."""
    await api.create(CONFIG_MAPS, config_map())
    options = {"orphanDependents": True, "propagationPolicy": "Orphan"}
    status = await api.delete(CONFIG_MAPS, "m", options).refused(422, "Invalid")
    assert "orphanDependents and deletionPropagation cannot be both set" in status["message"]


@source(OPTIONS)
async def test_a_policy_that_is_none(api):
    """The three that there are, are named."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.delete(CONFIG_MAPS, "m", {"propagationPolicy": "Sideways"}).refused(422, "Invalid")
    assert '"Foreground", "Background", "Orphan"' in status["message"] or "Foreground" in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_deletes_nothing(api):
    """In the body or in the query."""
    await api.create(CONFIG_MAPS, config_map())
    await api.delete(CONFIG_MAPS, "m", {"dryRun": ["All"]})
    await api.delete(CONFIG_MAPS, "m", dryRun="All")
    assert not await api.gone(CONFIG_MAPS, "m")


@source(HANDLER)
async def test_a_deletion_of_nothing(api):
    """404, with preconditions or not."""
    await api.delete(CONFIG_MAPS, "m").refused(404, "NotFound")
    await api.delete(CONFIG_MAPS, "m", {"preconditions": {"uid": "u"}}).refused(404, "NotFound")


@source(STORE)
async def test_a_collection_is_deleted_by_labels(api):
    """What does not match stays; the answer is the list of what was deleted."""
    for name, value in (("a", "1"), ("b", "1"), ("c", "2")):
        await api.create(LEASES, meta(name, labels={"x": value}))
    found = await api.ask("DELETE", api.at(LEASES), labelSelector="x=1")
    assert found["kind"] == "LeaseList"
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b"]
    assert await api.names(LEASES) == ["c"]


@source(STORE)
async def test_a_collection_of_finalized_objects_terminates(api):
    """Each for itself."""
    for name in "ab":
        await api.create(LEASES, meta(name, finalizers=["example.com/x"]))
    await api.ask("DELETE", api.at(LEASES))
    items = (await api.list(LEASES))["items"]
    assert all(item["metadata"]["deletionTimestamp"] for item in items)
    assert len(items) == 2


@source("staging/src/k8s.io/apiserver/pkg/endpoints/installer.go")
async def test_services_are_deleted_as_a_collection(api):
    """Since 1.23."""
    from support.conformance.objects import service

    await api.create(SERVICES, service("one"))
    await api.ask("DELETE", api.at(SERVICES))
    assert await api.names(SERVICES) == []


@source("pkg/registry/core/rest/storage_core.go")
async def test_namespaces_are_no_collection_to_delete(api):
    """405."""
    await api.ask("DELETE", "/api/v1/namespaces", labelSelector="no=such").refused(405, "MethodNotAllowed")


@source("pkg/registry/core/namespace/storage/storage.go")
async def test_a_namespace_terminates(api):
    """Its phase says so; the finalizer in its spec keeps it until it is empty."""
    name = unique("ns")
    await api.create(NAMESPACES, meta(name))
    found = await api.delete(NAMESPACES, name)
    assert found["status"]["phase"] == "Terminating"
    assert found["metadata"]["deletionTimestamp"]


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go")
async def test_nothing_is_created_in_a_namespace_that_terminates(api):
    """403 with the cause NamespaceTerminating."""
    name = unique("ns")
    await api.create(NAMESPACES, meta(name, finalizers=["example.com/hold"]))
    await api.delete(NAMESPACES, name)

    async def refused():
        reply = await api.ask("POST", CONFIG_MAPS.path(name), config_map(unique("m"))).reply()
        return reply.status == 403 and reply

    status = (await api.until(refused)).refused(403, "Forbidden")
    assert "because it is being terminated" in status["message"]
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@source("plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go")
async def test_a_claim_goes_when_its_protection_does(api):
    """A claim terminates until nobody uses it."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    await api.create(CLAIMS, {**meta("c", finalizers=["example.com/x"]), "spec": spec})
    found = await api.delete(CLAIMS, "c")
    assert "kubernetes.io/pvc-protection" in found["metadata"]["finalizers"]
    await api.patch(CLAIMS, "c", {"metadata": {"finalizers": None}})
    assert await api.gone(CLAIMS, "c")


@source("pkg/registry/core/node/strategy.go")
async def test_a_node_goes_at_once(api):
    """Its pods are left to the controllers."""
    name = unique("node")
    await api.create(NODES, meta(name))
    await api.delete(NODES, name)
    assert await api.gone(NODES, name)


@source(OPTIONS)
async def test_options_of_another_kind(api):
    """A body that is no DeleteOptions."""
    await api.create(CONFIG_MAPS, config_map())
    await api.delete(CONFIG_MAPS, "m", {"kind": "Pod", "apiVersion": "v1"}).refused(400, "BadRequest")
    assert not await api.gone(CONFIG_MAPS, "m")


@source(POD)
async def test_a_finished_pod_goes_at_once(api):
    """Succeeded or Failed on a node: there is nothing to wait for."""
    for phase in ("Succeeded", "Failed"):
        await running(api, "p", phase=phase)
        await api.delete(PODS, "p")
        assert await api.gone(PODS, "p")


@source(DELETE)
async def test_a_negative_grace_is_one_second(api):
    """As of old."""
    await running(api, "p")
    found = await api.delete(PODS, "p", {"gracePeriodSeconds": -5})
    assert found["metadata"]["deletionGracePeriodSeconds"] == 1


@source(OPTIONS)
async def test_a_dry_run_that_is_none(api):
    """Only All is known."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.delete(CONFIG_MAPS, "m", {"dryRun": ["Some"]}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueNotSupported", "dryRun")]
