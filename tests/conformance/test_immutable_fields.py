"""What may not change any more, or only in one direction, kind by kind."""

import pytest
from support.conformance.api_client import b64, causes, unique
from support.conformance.objects import changed, config_map, job, meta, pod, service, workload

from lastcall.adapters.kube.resources import (
    CLAIMS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUMES,
    dict_resource,
)

source = pytest.mark.source
CORE = "pkg/apis/core/validation/validation.go"
APPS = "pkg/apis/apps/validation/validation.go"
SECRETS = dict_resource("", "v1", "secrets")
ROLE_BINDINGS = dict_resource("rbac.authorization.k8s.io", "v1", "rolebindings")


@source(CORE)
async def test_immutable_config_maps(api):
    """Their data cannot change, and they cannot become mutable again; their labels can."""
    await api.create(CONFIG_MAPS, {**config_map(), "immutable": True})
    status = await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}}).refused(422, "Invalid")
    assert ("FieldValueForbidden", "data") in causes(status)
    assert "field is immutable when `immutable` is set" in status["message"]
    status = await api.patch(CONFIG_MAPS, "m", {"immutable": False}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "immutable")]
    await api.patch(CONFIG_MAPS, "m", {"metadata": {"labels": {"a": "b"}}})


@source(CORE)
async def test_the_type_of_a_secret_is_immutable(api):
    """It says which keys must be there."""
    await api.create(SECRETS, {**meta("s"), "data": {"a": b64("x")}})
    status = await api.patch(SECRETS, "s", {"type": "example.com/other"}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "type")]
    assert "field is immutable" in status["message"]


@source(CORE)
async def test_the_spec_of_a_pod_hardly_changes(api):
    """422 that says which fields may."""
    await api.create(PODS, pod())
    status = await api.patch(PODS, "p", {"spec": {"restartPolicy": "Never"}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec")]
    assert "pod updates may not change fields other than" in status["message"]


@source(CORE)
async def test_containers_are_not_added_to_a_pod(api):
    """Their number is fixed."""
    made = await api.create(PODS, pod())
    containers = [*made["spec"]["containers"], {"name": "d", "image": "i"}]
    status = await api.patch(PODS, "p", {"spec": {"containers": containers}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec.containers")]
    assert "pod updates may not add or remove containers" in status["message"]


@source(CORE)
async def test_a_deadline_may_only_come_nearer(api):
    """activeDeadlineSeconds can be set and shortened."""
    await api.create(PODS, pod())
    await api.patch(PODS, "p", {"spec": {"activeDeadlineSeconds": 100}})
    await api.patch(PODS, "p", {"spec": {"activeDeadlineSeconds": 50}})
    status = await api.patch(PODS, "p", {"spec": {"activeDeadlineSeconds": 60}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec.activeDeadlineSeconds")]


@source(CORE)
async def test_tolerations_may_only_be_added(api):
    """To a pod that is there."""
    tolerations = [{"key": "a", "operator": "Exists"}]
    made = await api.create(PODS, pod(tolerations=tolerations))
    more = [*made["spec"]["tolerations"], {"key": "b", "operator": "Exists"}]
    assert (await api.patch(PODS, "p", {"spec": {"tolerations": more}}))["spec"]["tolerations"] == more
    status = await api.patch(PODS, "p", {"spec": {"tolerations": more[1:]}}).refused(422, "Invalid")
    assert "existing toleration can not be modified except its tolerationSeconds" in status["message"]


@source("pkg/apis/core/validation/validation.go")
async def test_scheduling_gates_are_only_taken_away(api):
    """KEP-3521: a gated pod can be freed, a free one not gated."""
    made = await api.create(PODS, pod(schedulingGates=[{"name": "example.com/a"}]))
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"
    more = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    status = await api.patch(PODS, "p", {"spec": {"schedulingGates": more}}).refused(422, "Invalid")
    assert "only deletion is allowed" in status["message"]
    free = await api.patch(PODS, "p", {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in free["spec"]


@source(APPS)
async def test_a_deployments_selector_is_immutable(api):
    """As those of all workloads."""
    await api.create(DEPLOYMENTS, workload("d", paused=True, labels={"app": "d", "b": "c"}))
    patch = {"spec": {"selector": {"matchLabels": {"b": None}}}}
    status = await api.patch(DEPLOYMENTS, "d", patch).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec.selector")]
    assert "field is immutable" in status["message"]


@source(APPS)
async def test_what_a_stateful_set_may_change(api):
    """The fields are named."""
    await api.create(STATEFUL_SETS, workload("s", serviceName="a"))
    status = await api.patch(STATEFUL_SETS, "s", {"spec": {"serviceName": "b"}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec")]
    assert "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template'" in status["message"]


@source("pkg/apis/batch/validation/validation.go")
async def test_a_jobs_template_is_immutable(api):
    """But for some fields while it is suspended: the image is not among them."""
    await api.create(JOBS, job("j"))
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "other"}]}}}}
    status = await api.patch(JOBS, "j", patch).refused(422, "Invalid")
    assert causes(status)[0][1].startswith("spec.template")
    assert "field is immutable" in status["message"]


@source(CORE)
async def test_the_address_of_a_service_is_kept(api):
    """An update without it keeps it, another is refused."""
    made = await api.create(SERVICES, service())
    body = changed(changed(made, "spec.clusterIP", None), "spec.clusterIPs", None)
    kept = await api.update(SERVICES, changed(body, "spec.sessionAffinity", "ClientIP"))
    assert kept["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    status = await api.patch(SERVICES, "s", {"spec": {"clusterIP": "", "clusterIPs": None}}).reply()
    assert status.status in (200, 422)
    other = {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}
    status = await api.patch(SERVICES, "s", other).refused(422, "Invalid")
    assert "may not change once set" in status["message"]


@source(CORE)
async def test_a_claim_is_immutable(api):
    """But for its size and attributes."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    await api.create(CLAIMS, {**meta("c"), "spec": spec})
    status = await api.patch(CLAIMS, "c", {"spec": {"accessModes": ["ReadOnlyMany"]}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec")]
    assert "spec is immutable after creation" in status["message"]


@source(CORE)
async def test_the_source_of_a_volume_is_immutable(api):
    """Another path would be another volume."""
    name = unique("pv")
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    await api.create(VOLUMES, {**meta(name), "spec": spec})
    status = await api.patch(VOLUMES, name, {"spec": {"hostPath": {"path": "/y"}}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "spec.persistentvolumesource")]


@source("pkg/apis/storage/validation/validation.go")
async def test_a_storage_class_is_immutable(api):
    """Parameters and provisioner."""
    name = unique("sc")
    await api.create(STORAGE_CLASSES, {**meta(name), "provisioner": "example.com/x"})
    status = await api.patch(STORAGE_CLASSES, name, {"parameters": {"a": "b"}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "parameters")]
    assert "field is immutable" in status["message"]


@source("pkg/apis/scheduling/validation/validation.go")
async def test_the_value_of_a_priority_class_is_immutable(api):
    """Pods have it already."""
    name = unique("pc")
    await api.create(PRIORITY_CLASSES, {**meta(name), "value": 7})
    status = await api.patch(PRIORITY_CLASSES, name, {"value": 8}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueForbidden", "value")]


@source("pkg/apis/rbac/validation/validation.go")
async def test_the_role_of_a_binding_is_immutable(api):
    """Another role is another binding."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    await api.create(ROLE_BINDINGS, {**meta("b"), "roleRef": reference, "subjects": []})
    status = await api.patch(ROLE_BINDINGS, "b", {"roleRef": {"name": "other"}}).refused(422, "Invalid")
    assert "cannot change roleRef" in status["message"]
