"""Subresources: status, scale, binding, and who may write what by them."""

import pytest
from support.conformance.api_client import STRATEGIC, causes
from support.conformance.objects import NOWHERE, changed, meta, pod, running, workload

from lastcall.adapters.kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    dict_resource,
)

source = pytest.mark.source
POD = "pkg/registry/core/pod/strategy.go"
SETS = "pkg/registry/apps/replicaset/strategy.go"
SCALE = "pkg/registry/apps/deployment/storage/storage.go"
BINDING = "pkg/registry/core/pod/storage/storage.go"


def bind(api, name, target, **metadata):
    """Binds a pod."""
    return api.ask("POST", api.at(PODS, name, "binding"), {**meta(name, **metadata), "target": target})


@source(SETS)
async def test_a_status_is_written_at_its_path(api):
    """The spec that comes along is ignored, and the generation stays."""
    made = await api.create(REPLICA_SETS, workload("r"))
    body = changed(changed(made, "status", {"replicas": 3, "observedGeneration": 9}), "spec.minReadySeconds", 7)
    body = changed(body, "metadata.resourceVersion", None)
    found = await api.update(REPLICA_SETS, body, "status")
    assert found["status"] == {"replicas": 3, "observedGeneration": 9}
    assert "minReadySeconds" not in found["spec"]
    assert found["metadata"]["generation"] == 1


@source(POD)
async def test_a_pods_phase_is_written_at_its_status(api):
    """As kubelets do."""
    assert (await running(api, "p"))["status"]["phase"] == "Running"


@source(POD)
async def test_a_status_is_read_at_its_path(api):
    """The whole object."""
    made = await api.create(PODS, pod())
    assert await api.get(PODS, "p", "status") == made


@source(POD)
async def test_the_quality_of_service_is_not_written(api):
    """A status cannot change it."""
    await api.create(PODS, pod())
    reply = await api.patch(PODS, "p", {"status": {"qosClass": "Guaranteed"}}, sub="status").reply()
    assert reply.status in (200, 422)
    assert (await api.get(PODS, "p"))["status"]["qosClass"] == "BestEffort"


@source("pkg/apis/core/validation/validation.go")
async def test_a_container_that_has_ended_for_good_stays_ended(api):
    """With restartPolicy Never a terminated container cannot run again."""
    await api.create(PODS, pod(node=NOWHERE, restartPolicy="Never"))
    base = {"name": "c", "ready": False, "restartCount": 0, "image": "i", "imageID": "i"}
    ended = {**base, "state": {"terminated": {"exitCode": 1}}}
    await api.patch(PODS, "p", {"status": {"containerStatuses": [ended]}}, sub="status")
    again = {**base, "state": {"running": {}}}
    status = await api.patch(PODS, "p", {"status": {"containerStatuses": [again]}}, sub="status").refused(
        422, "Invalid"
    )
    assert "may not be transitioned to non-terminated state" in status["message"]


@source("pkg/registry/core/rest/storage_core.go")
async def test_config_maps_have_no_status(api):
    """404: there is no such path."""
    await api.create(CONFIG_MAPS, meta("m"))
    await api.get(CONFIG_MAPS, "m", "status").refused(404, "NotFound")


@source(SCALE)
async def test_a_scale_changes_the_replicas(api):
    """And counts as a generation."""
    await api.create(DEPLOYMENTS, workload("d", paused=True))
    before = (await api.get(DEPLOYMENTS, "d"))["metadata"]["generation"]
    scale = await api.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 2}}, sub="scale")
    assert scale["spec"] == {"replicas": 2}
    found = await api.get(DEPLOYMENTS, "d")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (2, before + 1)


@source(SCALE)
async def test_a_scale_is_replaced(api):
    """A PUT of a Scale."""
    await api.create(STATEFUL_SETS, workload("s"))

    async def replaced():
        scale = await api.get(STATEFUL_SETS, "s", "scale")
        reply = await api.update(STATEFUL_SETS, changed(scale, "spec.replicas", 1), sub="scale").reply()
        return None if reply.status == 409 else reply  # a controller has written its status in between

    again = (await api.until(replaced)).good()
    assert again["spec"]["replicas"] == 1
    assert (await api.get(STATEFUL_SETS, "s"))["spec"]["replicas"] == 1


@source(SCALE)
async def test_an_old_scale_conflicts(api):
    """It has the object's revision."""
    await api.create(REPLICA_SETS, workload("r"))
    scale = await api.get(REPLICA_SETS, "r", "scale")
    await api.patch(REPLICA_SETS, "r", {"spec": {"minReadySeconds": 3}})
    path = api.at(REPLICA_SETS, "r", "scale")
    await api.ask("PUT", path, changed(scale, "spec.replicas", 1)).refused(409, "Conflict")


@source("pkg/apis/autoscaling/validation/validation.go")
async def test_a_negative_scale(api):
    """422 of a Scale."""
    await api.create(REPLICA_SETS, workload("r"))
    status = await api.patch(REPLICA_SETS, "r", {"spec": {"replicas": -1}}, sub="scale").refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec.replicas")]


@source(SCALE)
async def test_the_selector_of_a_scale_is_text(api):
    """As it would be asked for."""
    body = workload("r", labels={"app": "r"})
    body["spec"]["selector"]["matchExpressions"] = [{"key": "app", "operator": "In", "values": ["r", "s"]}]
    await api.create(REPLICA_SETS, body)
    assert (await api.get(REPLICA_SETS, "r", "scale"))["status"]["selector"] == "app=r,app in (r,s)"


@source(BINDING)
async def test_a_binding_gives_a_pod_its_node(api):
    """201 with a Status; the pod has the node and the condition PodScheduled."""
    await api.create(PODS, pod())
    reply = await bind(api, "p", {"kind": "Node", "name": NOWHERE}).reply()
    assert (reply.status, reply.body["status"]) == (201, "Success")
    found = await api.get(PODS, "p")
    assert found["spec"]["nodeName"] == NOWHERE
    assert {one["type"]: one["status"] for one in found["status"]["conditions"]} == {"PodScheduled": "True"}


@source(BINDING)
async def test_a_pod_is_bound_once(api):
    """Another binding conflicts."""
    await api.create(PODS, pod())
    await bind(api, "p", {"kind": "Node", "name": NOWHERE})
    status = await bind(api, "p", {"kind": "Node", "name": "other"}).refused(409, "Conflict")
    assert f'pod p is already assigned to node "{NOWHERE}"' in status["message"]


@source(BINDING)
async def test_annotations_of_a_binding_become_the_pods(api):
    """Schedulers say things to kubelets in this way."""
    await api.create(PODS, pod())
    await bind(api, "p", {"kind": "Node", "name": NOWHERE}, annotations={"example.com/a": "b"})
    assert (await api.get(PODS, "p"))["metadata"]["annotations"] == {"example.com/a": "b"}


@source(BINDING)
async def test_a_pod_that_goes_is_not_bound(api):
    """409."""
    await api.create(PODS, pod(metadata={"finalizers": ["example.com/x"]}))
    await api.delete(PODS, "p")
    status = await bind(api, "p", {"kind": "Node", "name": NOWHERE}).refused(409, "Conflict")
    assert "pod p is being deleted, cannot be assigned to a host" in status["message"]
    await api.patch(PODS, "p", {"metadata": {"finalizers": None}})


@source("pkg/apis/core/validation/validation.go")
async def test_the_node_of_a_pod_is_not_changed_by_an_update(api):
    """Only by a binding, once."""
    await api.create(PODS, pod())
    status = await api.patch(PODS, "p", {"spec": {"nodeName": NOWHERE}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec")]


@source("pkg/registry/core/pod/rest/log.go")
async def test_the_log_of_a_pod_on_no_node(api):
    """Empty, or an error: there is no kubelet to ask. A container that is not there is a bad request."""
    await api.create(PODS, pod())
    status = await api.get(PODS, "p", "log", container="other").refused(400, "BadRequest")
    assert "container other is not valid for pod p" in status["message"]


@source("pkg/registry/core/pod/rest/log.go")
async def test_options_of_logs_are_validated(api):
    """422 of PodLogOptions."""
    await api.create(PODS, pod())
    status = await api.get(PODS, "p", "log", tailLines="-5").refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "tailLines")]


@source("https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/1287-in-place-update-pod-resources")
async def test_a_pod_is_resized_at_a_subresource(api):
    """Requests of a container, in place; the generation grows."""
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    container = {"name": "c", "image": "i", "resources": resources}
    await api.create(PODS, pod(containers=[container]))
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}}
    found = await api.patch(PODS, "p", patch, kind="application/strategic-merge-patch+json", sub="resize")
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "150m"}
    assert found["metadata"]["generation"] == 2


@source("pkg/registry/core/pod/storage/storage.go")
async def test_ephemeral_containers_are_added_at_a_subresource(api):
    """To debug a pod that runs; they are never taken away."""
    await running(api, "p")
    patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "i:1"}]}}
    kind = "application/strategic-merge-patch+json"
    found = await api.patch(PODS, "p", patch, kind=kind, sub="ephemeralcontainers")
    assert [one["name"] for one in found["spec"]["ephemeralContainers"]] == ["debug"]
    gone = {"spec": {"ephemeralContainers": None}}
    status = await api.patch(PODS, "p", gone, sub="ephemeralcontainers").refused(422, "Invalid")
    assert "may not be removed" in status["message"]


@source("pkg/apis/apps/validation/validation.go")
@pytest.mark.parametrize("sets", [DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS], ids=lambda one: one.plural)
async def test_a_status_with_a_negative_number(api, sets):
    """422; numbers that are not said count as 0, which is larger."""
    await api.create(sets, workload("w", **({"serviceName": "s"} if sets == STATEFUL_SETS else {})))
    status = await api.patch(sets, "w", {"status": {"replicas": -1}}, sub="status").refused(422, "Invalid")
    assert causes(status)[0] == ("FieldValueInvalid", "status.replicas")
    assert ("FieldValueInvalid", "status.readyReplicas") in causes(status)


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go")
async def test_a_condition_without_a_type(api):
    """An empty type breaks two rules."""
    budgets = dict_resource("policy", "v1", "poddisruptionbudgets")
    await api.create(budgets, {**meta("b"), "spec": {"minAvailable": 1}})
    patch = {"status": {"conditions": [{"status": "True"}]}}
    status = await api.patch(budgets, "b", patch, sub="status").refused(422, "Invalid")
    found = [field.removeprefix("status.conditions[0].") for _, field in causes(status)]
    assert found == ["type", "type", "lastTransitionTime", "reason"]


@source("pkg/apis/core/v1/defaults.go")
@pytest.mark.parametrize("status", [None, {}, {"phase": None}, {"phase": ""}])
async def test_a_namespace_without_a_phase(api, status):
    """It is active, whichever way the status is written."""
    body = {**meta(api.namespace), "status": status}
    whole = {"apiVersion": "v1", "kind": "Namespace", **body}
    for found in (
        await api.patch(NAMESPACES, api.namespace, {"status": status}, sub="status"),
        await api.patch(NAMESPACES, api.namespace, {"status": status}, STRATEGIC, sub="status"),
        await api.update(NAMESPACES, body, "status"),
        await api.apply(NAMESPACES, api.namespace, whole, sub="status", force="true"),
    ):
        assert found["status"] == {"phase": "Active"}
