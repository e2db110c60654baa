"""Server-side apply: who owns which field, and what follows."""

import pytest
from support.conformance.api_client import APPLY, STRATEGIC, causes
from support.conformance.objects import CONTAINER, config_map, meta, pod, running, service, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, REPLICA_SETS, SERVICES

source = pytest.mark.source
SSA = "https://kubernetes.io/docs/reference/using-api/server-side-apply/"
KEP = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/555-server-side-apply"
PATCH = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go"


def said(name="m", data=None, **metadata):
    """A ConfigMap, as it is applied: with kind and version."""
    return {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name, data, **metadata)}


def owners(obj):
    """The managers that have applied, with the keys of the data that they own."""
    entries = [entry for entry in obj["metadata"]["managedFields"] if entry["operation"] == "Apply"]
    return {
        entry["manager"]: sorted(key[2:] for key in entry["fieldsV1"].get("f:data", {}) if key != ".")
        for entry in entries
    }


@source(SSA)
async def test_apply_creates(api):
    """201 for what was not there."""
    reply = await api.apply(CONFIG_MAPS, "m", said()).reply()
    assert reply.status == 201
    assert owners(reply.body) == {"m1": ["k"]}


@source(SSA)
async def test_apply_again_changes_nothing(api):
    """200 and the same revision."""
    first = await api.apply(CONFIG_MAPS, "m", said())
    reply = await api.apply(CONFIG_MAPS, "m", said()).reply()
    assert reply.status == 200
    assert reply.body["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@source(SSA + "#conflicts")
async def test_another_value_for_an_owned_field_conflicts(api):
    """409 with a cause for each field."""
    await api.apply(CONFIG_MAPS, "m", said())
    status = await api.apply(CONFIG_MAPS, "m", said(data={"k": "other"}), "m2").refused(409, "Conflict")
    assert causes(status) == [("FieldManagerConflict", ".data.k")]
    assert status["message"] == 'Apply failed with 1 conflict: conflict with "m1": .data.k'


@source(SSA + "#conflicts")
async def test_force_takes_the_field(api):
    """The former owner loses it."""
    await api.apply(CONFIG_MAPS, "m", said())
    found = await api.apply(CONFIG_MAPS, "m", said(data={"k": "other"}), "m2", force="true")
    assert found["data"] == {"k": "other"}
    assert owners(found) == {"m2": ["k"]}


@source(SSA + "#field-management")
async def test_the_same_value_is_shared(api):
    """No conflict: both own it."""
    await api.apply(CONFIG_MAPS, "m", said())
    found = await api.apply(CONFIG_MAPS, "m", said(), "m2")
    assert owners(found) == {"m1": ["k"], "m2": ["k"]}


@source(SSA + "#field-management")
async def test_a_shared_field_stays_while_one_owns_it(api):
    """It goes when the last owner no longer says it."""
    await api.apply(CONFIG_MAPS, "m", said(data={"k": "v", "a": "1"}))
    await api.apply(CONFIG_MAPS, "m", said(), "m2")
    kept = await api.apply(CONFIG_MAPS, "m", said(data={"a": "1"}))
    assert kept["data"] == {"a": "1", "k": "v"}
    gone = await api.apply(CONFIG_MAPS, "m", said(data={}), "m2")
    assert gone["data"] == {"a": "1"}


@source(SSA + "#field-management")
async def test_what_is_no_longer_said_is_removed(api):
    """As far as nobody else owns it."""
    await api.apply(CONFIG_MAPS, "m", said(data={"a": "1", "b": "2"}, labels={"x": "y"}))
    found = await api.apply(CONFIG_MAPS, "m", said(data={"a": "1"}))
    assert found["data"] == {"a": "1"}
    assert "labels" not in found["metadata"]


@source(SSA + "#field-management")
async def test_what_others_wrote_stays(api):
    """Fields that were never applied are not removed."""
    await api.apply(CONFIG_MAPS, "m", said())
    await api.patch(CONFIG_MAPS, "m", {"data": {"z": "1"}}, fieldManager="editor")
    assert (await api.apply(CONFIG_MAPS, "m", said()))["data"] == {"k": "v", "z": "1"}


@source(SSA + "#conflicts")
async def test_an_update_takes_without_asking(api):
    """A later apply of the old value conflicts with the updater."""
    await api.apply(CONFIG_MAPS, "m", said())
    await api.patch(CONFIG_MAPS, "m", {"data": {"k": "edited"}}, fieldManager="editor")
    status = await api.apply(CONFIG_MAPS, "m", said()).refused(409, "Conflict")
    assert 'conflict with "editor"' in status["message"]
    assert "using v1" in status["message"]


@source(SSA + "#managers")
async def test_apply_and_update_of_one_manager_are_two(api):
    """The operation is part of who owns."""
    await api.create(CONFIG_MAPS, config_map(), fieldManager="m1")
    status = await api.apply(CONFIG_MAPS, "m", said(data={"k": "other"})).refused(409, "Conflict")
    assert causes(status) == [("FieldManagerConflict", ".data.k")]


@source(PATCH)
async def test_apply_needs_a_manager(api):
    """400... as an invalid option: the field is required."""
    status = await api.ask("PATCH", api.at(CONFIG_MAPS, "m"), said(), kind=APPLY).refused(422, "Invalid")
    assert "fieldManager: Required value: is required for apply patch" in status["message"]


@source(PATCH)
async def test_apply_needs_kind_and_version(api):
    """They cannot be told from the path alone."""
    reply = await api.apply(CONFIG_MAPS, "m", config_map()).reply()
    assert reply.status in (400, 500)
    assert "apiVersion" in reply.body["message"] or "Kind" in reply.body["message"]


@source(SSA + "#clearing-managedfields")
async def test_apply_says_nothing_of_managed_fields(api):
    """They must be left out."""
    body = said(managedFields=[{"manager": "x"}])
    reply = await api.apply(CONFIG_MAPS, "m", body).reply()
    assert reply.status == 400
    assert "metadata.managedFields must be nil" in reply.body["message"]


@source(PATCH)
async def test_apply_under_another_name(api):
    """The name in the body is that of the path."""
    await api.apply(CONFIG_MAPS, "m", said("n")).refused(400, "BadRequest")


@source(PATCH)
async def test_apply_with_an_old_revision(api):
    """A resourceVersion is a precondition."""
    first = await api.apply(CONFIG_MAPS, "m", said())
    await api.apply(CONFIG_MAPS, "m", said(data={"k": "w"}))
    body = said(data={"k": "x"}, resourceVersion=first["metadata"]["resourceVersion"])
    await api.apply(CONFIG_MAPS, "m", body).refused(409, "Conflict")


@source(PATCH)
async def test_apply_with_another_uid(api):
    """It is meant for an object that is gone: nothing is made."""
    body = said(uid="00000000-0000-0000-0000-000000000000")
    await api.apply(CONFIG_MAPS, "m", body).refused(409, "Conflict")
    assert await api.gone(CONFIG_MAPS, "m")


@source(SSA + "#clearing-managedfields")
async def test_ownership_can_be_forgotten(api):
    """managedFields of one empty entry; the next apply owns what it says."""
    await api.apply(CONFIG_MAPS, "m", said())
    cleared = await api.patch(CONFIG_MAPS, "m", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in cleared["metadata"]
    await api.apply(CONFIG_MAPS, "m", said(data={"k": "w"}), "m2", force="true")


@source(SSA + "#merge-strategy")
async def test_items_of_a_list_are_owned_by_their_keys(api):
    """Two managers each have a port of one service."""
    port = {"name": "a", "port": 1, "protocol": "TCP"}
    base = {"apiVersion": "v1", "kind": "Service", **service(ports=[port])}
    other = {"apiVersion": "v1", "kind": "Service", **meta("s")}
    other["spec"] = {"ports": [{"name": "b", "port": 2, "protocol": "TCP"}]}
    await api.apply(SERVICES, "s", base)
    found = await api.apply(SERVICES, "s", other, "m2")
    assert [one["name"] for one in found["spec"]["ports"]] == ["a", "b"]


@source(SSA + "#merge-strategy")
async def test_an_item_that_is_no_longer_said_goes(api):
    """The others of the list stay."""
    ports = [{"name": name, "port": number, "protocol": "TCP"} for name, number in (("a", 1), ("b", 2))]
    whole = {"apiVersion": "v1", "kind": "Service", **service(ports=ports)}
    await api.apply(SERVICES, "s", whole)
    less = {"apiVersion": "v1", "kind": "Service", **service(ports=ports[:1])}
    found = await api.apply(SERVICES, "s", less)
    assert [one["name"] for one in found["spec"]["ports"]] == ["a"]


@source(SSA + "#merge-strategy")
async def test_sets_are_merged(api):
    """Finalizers of two managers; each takes only its own away."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/base"]), fieldManager="maker")
    await api.apply(CONFIG_MAPS, "m", said(finalizers=["example.com/a"]))
    both = await api.apply(CONFIG_MAPS, "m", said(finalizers=["example.com/b"]), "m2")
    assert set(both["metadata"]["finalizers"]) == {"example.com/base", "example.com/a", "example.com/b"}
    less = await api.apply(CONFIG_MAPS, "m", said())
    assert set(less["metadata"]["finalizers"]) == {"example.com/base", "example.com/b"}


@source(SSA + "#merge-strategy")
async def test_an_atomic_map_is_owned_as_a_whole(api):
    """The selector of labels of a workload's pods is one field."""
    body = {"apiVersion": "v1", "kind": "Service", **service()}
    await api.apply(SERVICES, "s", body)
    other = {"apiVersion": "v1", "kind": "Service", **meta("s"), "spec": {"selector": {"b": "c"}}}
    status = await api.apply(SERVICES, "s", other, "m2").refused(409, "Conflict")
    assert causes(status) == [("FieldManagerConflict", ".spec.selector")]


@source(SSA)
async def test_the_same_item_twice(api):
    """A list with two items of one key is refused."""
    containers = [{"name": "c", "image": "a"}, {"name": "c", "image": "b"}]
    body = {"apiVersion": "v1", "kind": "Pod", **pod(containers=containers)}
    reply = await api.apply(PODS, "p", body).reply()
    assert reply.status >= 400
    assert await api.gone(PODS, "p")


@source(KEP)
async def test_replicas_are_left_to_the_autoscaler(api):
    """Who no longer says replicas leaves them to the other owner."""
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **workload("d", paused=True)}
    await api.apply(DEPLOYMENTS, "d", body)
    scale = {"apiVersion": "apps/v1", "kind": "Deployment", **meta("d"), "spec": {"replicas": 0}}
    await api.apply(DEPLOYMENTS, "d", scale, "scaler")
    del body["spec"]["replicas"]
    assert (await api.apply(DEPLOYMENTS, "d", body))["spec"]["replicas"] == 0


@source(KEP)
async def test_status_and_spec_have_their_own_entries(api):
    """An entry of managedFields names the subresource."""
    await running(api, "p")
    body = {"apiVersion": "v1", "kind": "Pod", **meta("p"), "status": {"message": "hello"}}
    found = await api.apply(PODS, "p", body, "m2", sub="status")
    (entry,) = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] == "m2"]
    assert (entry["subresource"], entry["operation"]) == ("status", "Apply")
    assert entry["fieldsV1"] == {"f:status": {"f:message": {}}}


@source(KEP)
async def test_the_spec_applied_at_status_is_ignored(api):
    """And is not owned."""
    await api.create(PODS, pod())
    body = {"apiVersion": "v1", "kind": "Pod", **meta("p"), "spec": {"activeDeadlineSeconds": 5}}
    found = await api.apply(PODS, "p", body, "m2", sub="status")
    assert "activeDeadlineSeconds" not in found["spec"]
    assert "m2" not in [entry["manager"] for entry in found["metadata"].get("managedFields", [])]


@source(SSA)
async def test_a_dry_run_applies_nothing(api):
    """201, and nothing is there."""
    reply = await api.apply(CONFIG_MAPS, "m", said(), dryRun="All").reply()
    assert reply.status == 201
    assert await api.gone(CONFIG_MAPS, "m")


@source(PATCH)
async def test_force_is_only_for_apply(api):
    """Another patch with force is invalid."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.patch(CONFIG_MAPS, "m", {}, kind=STRATEGIC, force="true").refused(422, "Invalid")
    assert "force: Forbidden: may not be specified for non-apply patch" in status["message"]


@source(SSA)
async def test_unknown_fields_are_no_part_of_a_schema(api):
    """An apply of a field that is not there is an error."""
    body = {**said(), "dada": "x"}
    reply = await api.apply(CONFIG_MAPS, "m", body).reply()
    assert reply.status in (400, 500)
    assert "field not declared in schema" in reply.body["message"]


@source(SSA)
async def test_a_body_of_yaml_is_applied(api):
    """This is where the media type has its name from."""
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: 'x'}\n"
    found = await api.ask("PATCH", api.at(CONFIG_MAPS, "m"), body, kind=APPLY, fieldManager="m1")
    assert found["data"] == {"a": "x"}


@source(SSA)
async def test_defaults_are_nobodys(api):
    """What the server filled in is not owned by who applied."""
    body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **workload("r")}
    body["spec"]["template"]["spec"]["containers"] = [dict(CONTAINER)]
    found = await api.apply(REPLICA_SETS, "r", body)
    (entry,) = found["metadata"]["managedFields"]
    container = entry["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert set(container) == {".", "f:name", "f:image"}


@source("staging/src/k8s.io/client-go/applyconfigurations/internal/internal.go")
async def test_an_item_without_its_name(api):
    """The key fields of built-in kinds are empty by default: validation refuses the item, not the schema."""
    await api.create(DEPLOYMENTS, workload("d"))
    template = {"spec": {"containers": [{"image": "i"}]}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", **meta("d"), "spec": {"template": template}}
    status = await api.apply(DEPLOYMENTS, "d", body).refused(422, "Invalid")
    assert ("FieldValueRequired", "spec.template.spec.containers[1].name") in causes(status)
