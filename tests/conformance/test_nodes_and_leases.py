"""Nodes, their taints and status, and leases."""

import pytest
from support.conformance.api_client import STRATEGIC, causes, unique
from support.conformance.objects import meta

from lastcall.adapters.kube.resources import ATTACHMENTS, CSI_NODES, LEASES, NODES

source = pytest.mark.source
NODE = "pkg/apis/core/validation/validation.go"
LEASE = "pkg/apis/coordination/validation/validation.go"
STORAGE = "pkg/apis/storage/validation/validation.go"
TAINT = {"key": "example.com/a", "value": "b", "effect": "NoExecute"}


async def node(api, **spec):
    """A node that nobody runs."""
    name = unique("node")
    return await api.create(NODES, {**meta(name), "spec": spec})


@source(NODE)
@pytest.mark.parametrize(
    ("taint", "cause"),
    [
        ({"effect": "Sometimes"}, "FieldValueNotSupported"),
        ({"effect": ""}, "FieldValueRequired"),
        ({"key": "a b"}, "FieldValueInvalid"),
        ({"value": "a b"}, "FieldValueInvalid"),
    ],
)
async def test_a_taint_that_is_none(api, taint, cause):
    """422 with the field, which Kubernetes takes for one of metadata."""
    body = {**meta(unique("node")), "spec": {"taints": [{**TAINT, **taint}]}}
    status = await api.create(NODES, body).refused(422, "Invalid")
    assert causes(status)[0][0] == cause
    assert causes(status)[0][1].startswith("metadata.taints[0]")


@source(NODE)
async def test_one_taint_twice(api):
    """Key and effect tell taints apart."""
    taints = [TAINT, {**TAINT, "value": "c"}]
    status = await api.create(NODES, {**meta(unique("node")), "spec": {"taints": taints}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueDuplicate", "metadata.taints[1]")]


@source("staging/src/k8s.io/api/core/v1/types.go")
async def test_taints_are_merged_by_key(api):
    """The patch strategy of taints is a merge by key, so that clients do not undo each other's."""
    name = (await node(api))["metadata"]["name"]
    found = await api.patch(NODES, name, {"spec": {"taints": [TAINT]}}, STRATEGIC)
    assert TAINT in found["spec"]["taints"]


@source(NODE)
async def test_a_node_is_cordoned(api):
    """unschedulable; false is left out."""
    name = (await node(api))["metadata"]["name"]
    assert (await api.patch(NODES, name, {"spec": {"unschedulable": True}}))["spec"]["unschedulable"] is True
    assert "unschedulable" not in (await api.patch(NODES, name, {"spec": {"unschedulable": False}}))["spec"]


@source(NODE)
async def test_a_nodes_network_is_given_once(api):
    """podCIDR can be set, and then not changed."""
    name = (await node(api))["metadata"]["name"]
    await api.patch(NODES, name, {"spec": {"podCIDR": "10.1.2.0/24", "podCIDRs": ["10.1.2.0/24"]}})
    change = {"spec": {"podCIDR": "10.1.3.0/24", "podCIDRs": ["10.1.3.0/24"]}}
    reply = await api.patch(NODES, name, change).reply()
    assert reply.status == 422
    assert "node updates may not change podCIDR except from" in reply.body["message"]


@source("pkg/registry/core/node/strategy.go")
async def test_conditions_of_a_node_are_merged_by_type(api):
    """As each kubelet writes its own."""
    name = (await node(api))["metadata"]["name"]
    for kind in ("Ready", "MemoryPressure"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        found = await api.patch(NODES, name, patch, STRATEGIC, sub="status")
    assert {one["type"] for one in found["status"]["conditions"]} == {"Ready", "MemoryPressure"}


@source("pkg/apis/core/v1/defaults.go")
async def test_what_a_node_can_give_is_what_it_has(api):
    """allocatable is capacity if it is not said."""
    name = (await node(api))["metadata"]["name"]
    patch = {"status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}
    found = await api.patch(NODES, name, patch, STRATEGIC, sub="status")
    assert found["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}


@source("pkg/registry/core/node/strategy.go")
async def test_a_status_does_not_change_the_spec_of_a_node(api):
    """Nor the other way round."""
    name = (await node(api))["metadata"]["name"]
    found = await api.patch(NODES, name, {"spec": {"unschedulable": True}, "status": {}}, sub="status")
    assert "unschedulable" not in found["spec"]


@source("pkg/registry/core/node/strategy.go")
async def test_nodes_are_selected_by_unschedulable(api):
    """A field of nodes."""
    name = (await node(api, unschedulable=True))["metadata"]["name"]
    found = await api.list(NODES, fieldSelector=f"spec.unschedulable=true,metadata.name={name}")
    assert [one["metadata"]["name"] for one in found["items"]] == [name]


@source(NODE)
async def test_the_provider_of_a_node_is_told_once(api):
    """providerID."""
    name = (await node(api))["metadata"]["name"]
    await api.patch(NODES, name, {"spec": {"providerID": "x://1"}})
    status = await api.patch(NODES, name, {"spec": {"providerID": "x://2"}}).refused(422, "Invalid")
    assert "node updates may not change providerID except from" in status["message"]


@source(LEASE)
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"leaseDurationSeconds": -1}, "spec.leaseDurationSeconds"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions"),
    ],
)
async def test_a_lease_that_is_none(api, spec, field):
    """422 with the field."""
    status = await api.create(LEASES, {**meta("l"), "spec": spec}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", field)]


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go")
async def test_leases_count_microseconds(api):
    """renewTime has six digits behind the point, and is in UTC."""
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 40, "renewTime": "2026-01-02T03:04:05.678900+01:00"}
    made = await api.create(LEASES, {**meta("l"), "spec": spec})
    assert made["spec"]["renewTime"] == "2026-01-02T02:04:05.678900Z"


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/micro_time.go")
async def test_a_time_that_is_none(api):
    """400."""
    await api.create(LEASES, {**meta("l"), "spec": {"renewTime": "soon"}}).refused(400, "BadRequest")


@source("https://kubernetes.io/docs/concepts/architecture/leases/")
async def test_of_two_that_want_a_lease_one_gets_it(api):
    """Leader election: the resourceVersion decides."""
    made = await api.create(LEASES, {**meta("l"), "spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 1}})
    calls = [api.update(LEASES, {**made, "spec": {**made["spec"], "holderIdentity": who}}) for who in ("a", "b")]
    codes = [(await call.reply()).status for call in calls]
    assert codes == [200, 409]


@source("pkg/registry/storage/volumeattachment/strategy.go")
async def test_an_attachment_and_its_status(api):
    """attached is written at /status alone."""
    name = unique("attachment")
    spec = {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    made = await api.create(ATTACHMENTS, {**meta(name), "spec": spec, "status": {"attached": True}})
    assert made["status"] == {"attached": False}
    found = await api.patch(ATTACHMENTS, name, {"status": {"attached": True}}, sub="status")
    assert found["status"] == {"attached": True}


@source(STORAGE)
async def test_the_spec_of_an_attachment_is_immutable(api):
    """It is made and deleted."""
    name = unique("attachment")
    spec = {"attacher": "example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}
    await api.create(ATTACHMENTS, {**meta(name), "spec": spec})
    status = await api.patch(ATTACHMENTS, name, {"spec": {"nodeName": "m"}}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec")]


@source(STORAGE)
async def test_drivers_of_a_node_are_told_apart(api):
    """A CSINode names each driver once."""
    name = unique("node")
    driver = {"name": "example.com", "nodeID": "n", "topologyKeys": None}
    status = await api.create(CSI_NODES, {**meta(name), "spec": {"drivers": [driver, driver]}}).refused(422, "Invalid")
    assert ("FieldValueDuplicate", "spec.drivers[1].name") in causes(status)
