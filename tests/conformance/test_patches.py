"""Patches: JSON, merge and strategic."""

import pytest
from support.conformance.api_client import JSON_PATCH, STRATEGIC, causes
from support.conformance.objects import CONTAINER, config_map, meta, pod, running, service, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, PODS, REPLICA_SETS, SERVICES

source = pytest.mark.source
PATCH = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go"
MERGE_DOC = "https://www.rfc-editor.org/rfc/rfc7386"
JSON_DOC = "https://www.rfc-editor.org/rfc/rfc6902"
STRATEGIC_SOURCE = "staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go"
DIRECTIVES = (
    "https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md"
)


@source(MERGE_DOC)
async def test_null_takes_a_field_away(api):
    """The others stay."""
    await api.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}))
    assert (await api.patch(CONFIG_MAPS, "m", {"data": {"a": None, "c": "3"}}))["data"] == {"b": "2", "c": "3"}


@source(MERGE_DOC)
async def test_a_merge_patch_replaces_lists(api):
    """It knows no keys of lists."""
    await api.create(SERVICES, service(ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
    found = await api.patch(SERVICES, "s", {"spec": {"ports": [{"name": "c", "port": 3}]}})
    assert [port["name"] for port in found["spec"]["ports"]] == ["c"]


@source(PATCH)
async def test_a_patch_with_the_current_revision(api):
    """A resourceVersion in a patch is a precondition that holds."""
    made = await api.create(CONFIG_MAPS, config_map())
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "w"}}
    assert (await api.patch(CONFIG_MAPS, "m", patch))["data"] == {"k": "w"}


@source(PATCH)
async def test_a_patch_with_an_old_revision(api):
    """409."""
    made = await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}})
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "x"}}
    status = await api.patch(CONFIG_MAPS, "m", patch).refused(409, "Conflict")
    assert "the object has been modified" in status["message"]


@source(PATCH)
async def test_an_empty_patch_changes_nothing(api):
    """200 and the same revision."""
    made = await api.create(CONFIG_MAPS, config_map())
    assert (await api.patch(CONFIG_MAPS, "m", {}))["metadata"] == made["metadata"]


@source(PATCH)
async def test_a_patch_of_nothing(api):
    """404."""
    await api.patch(CONFIG_MAPS, "m", {}).refused(404, "NotFound")


@source(PATCH)
async def test_an_unknown_kind_of_patch(api):
    """415, also for plain JSON."""
    await api.create(CONFIG_MAPS, config_map())
    for kind in ("application/x", "application/json"):
        await api.patch(CONFIG_MAPS, "m", {}, kind=kind).refused(415, "UnsupportedMediaType")


@source(PATCH)
async def test_the_kind_of_a_patch_may_have_parameters(api):
    """charset does not matter."""
    await api.create(CONFIG_MAPS, config_map())
    kind = "application/merge-patch+json; charset=utf-8"
    assert (await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}}, kind=kind))["data"] == {"k": "w"}


@source(PATCH)
async def test_a_merge_patch_that_is_no_object(api):
    """400."""
    await api.create(CONFIG_MAPS, config_map())
    await api.ask("PATCH", api.at(CONFIG_MAPS, "m"), b"[1]", kind="application/merge-patch+json").refused(
        400, "BadRequest"
    )


@source(JSON_DOC)
async def test_operations_are_done_in_order(api):
    """add, copy, move, replace, remove."""
    await api.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}))
    patch = [
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "copy", "from": "/data/c", "path": "/data/d"},
        {"op": "move", "from": "/data/a", "path": "/data/e"},
        {"op": "replace", "path": "/data/b", "value": "4"},
        {"op": "remove", "path": "/data/c"},
    ]
    found = await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH)
    assert found["data"] == {"b": "4", "d": "3", "e": "1"}


@source(JSON_DOC)
async def test_a_test_that_fails_changes_nothing(api):
    """422, and no operation of the patch has an effect."""
    await api.create(CONFIG_MAPS, config_map())
    patch = [
        {"op": "add", "path": "/data/a", "value": "1"},
        {"op": "test", "path": "/data/k", "value": "other"},
    ]
    status = await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH).refused(422, "Invalid")
    assert status["message"] == "the server rejected our request due to an error in our request"
    assert (await api.get(CONFIG_MAPS, "m"))["data"] == {"k": "v"}


@source(JSON_DOC)
async def test_a_list_is_appended_to_by_a_dash(api):
    """And inserted into by an index."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a"]))
    patch = [
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"},
        {"op": "add", "path": "/metadata/finalizers/1", "value": "example.com/b"},
    ]
    found = await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH)
    assert found["metadata"]["finalizers"] == ["example.com/a", "example.com/b", "example.com/c"]


@source(JSON_DOC)
async def test_slashes_and_tildes_are_escaped(api):
    """~1 and ~0."""
    await api.create(CONFIG_MAPS, config_map(annotations={"a": "b"}))
    patch = [{"op": "add", "path": "/metadata/annotations/example.com~1x", "value": "y"}]
    found = await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH)
    assert found["metadata"]["annotations"] == {"a": "b", "example.com/x": "y"}


@source(JSON_DOC)
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/x"},
        {"op": "move", "from": "/data/x", "path": "/data/y"},
        {"op": "add", "path": "/data/x/y", "value": "1"},
        {"op": "copy", "from": "/binaryData/x", "path": "/data/y"},
        {"op": "add", "path": "/metadata/finalizers/7", "value": "example.com/a"},
    ],
    ids=["remove", "move", "add", "copy", "index"],
)
async def test_an_operation_at_a_place_that_is_not_there(api, operation):
    """422."""
    await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", [operation], JSON_PATCH).refused(422, "Invalid")


@source("vendor/gopkg.in/evanphx/json-patch.v4/patch.go")
async def test_replacing_what_is_not_there_adds_it(api):
    """As the library has it, and not the RFC."""
    await api.create(CONFIG_MAPS, config_map())
    found = await api.patch(CONFIG_MAPS, "m", [{"op": "replace", "path": "/data/x", "value": "1"}], JSON_PATCH)
    assert found["data"] == {"k": "v", "x": "1"}


@source(PATCH)
async def test_an_operation_that_is_none(api):
    """The patch is refused."""
    await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", [{"op": "frobnicate", "path": "/data"}], JSON_PATCH).refused(422, "Invalid")


@source(JSON_DOC)
async def test_a_test_of_the_revision_is_a_precondition(api):
    """As clients without another way do it."""
    made = await api.create(CONFIG_MAPS, config_map())
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]},
        {"op": "replace", "path": "/data/k", "value": "w"},
    ]
    assert (await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH))["data"] == {"k": "w"}
    await api.patch(CONFIG_MAPS, "m", patch, JSON_PATCH).refused(422, "Invalid")


@source(STRATEGIC_SOURCE)
async def test_containers_are_merged_by_name(api):
    """The one that is named changes, the others stay."""
    containers = [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:1"}]
    await api.create(PODS, pod(containers=containers))
    patch = {"spec": {"containers": [{"name": "b", "image": "i:2"}]}}
    found = await api.patch(PODS, "p", patch, STRATEGIC)
    assert {one["name"]: one["image"] for one in found["spec"]["containers"]} == {"a": "i:1", "b": "i:2"}


@source(DIRECTIVES)
async def test_the_directive_delete(api):
    """$patch: delete takes an item of a list away."""
    await api.create(SERVICES, service(ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
    found = await api.patch(SERVICES, "s", {"spec": {"ports": [{"port": 1, "$patch": "delete"}]}}, STRATEGIC)
    assert [port["name"] for port in found["spec"]["ports"]] == ["b"]


@source(DIRECTIVES)
async def test_the_directive_replace_in_a_list(api):
    """$patch: replace as an item makes the others the whole list."""
    await api.create(SERVICES, service(ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
    ports = [{"name": "c", "port": 3}, {"$patch": "replace"}]
    found = await api.patch(SERVICES, "s", {"spec": {"ports": ports}}, STRATEGIC)
    assert [port["name"] for port in found["spec"]["ports"]] == ["c"]


@source(DIRECTIVES)
async def test_the_directive_replace_in_a_map(api):
    """A map with $patch: replace is the new map."""
    await api.create(CONFIG_MAPS, config_map(labels={"a": "1", "b": "2"}))
    patch = {"metadata": {"labels": {"c": "3", "$patch": "replace"}}}
    assert (await api.patch(CONFIG_MAPS, "m", patch, STRATEGIC))["metadata"]["labels"] == {"c": "3"}


@source(DIRECTIVES)
async def test_the_directive_retain_keys(api):
    """A union keeps only what is named: a volume changes its source."""
    volumes = [{"name": "v", "emptyDir": {}}]
    spec = workload("d", paused=True)
    spec["spec"]["template"]["spec"]["volumes"] = volumes
    await api.create(DEPLOYMENTS, spec)
    volume = {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}
    patch = {"spec": {"template": {"spec": {"volumes": [volume]}}}}
    found = await api.patch(DEPLOYMENTS, "d", patch, STRATEGIC)
    assert found["spec"]["template"]["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x", "type": ""}}]


@source(DIRECTIVES)
async def test_values_are_deleted_from_lists_of_texts(api):
    """$deleteFromPrimitiveList/finalizers."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/a", "example.com/b"]))
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    found = await api.patch(CONFIG_MAPS, "m", patch, STRATEGIC)
    assert found["metadata"]["finalizers"] == ["example.com/b"]


@source(DIRECTIVES)
async def test_the_order_of_a_list_can_be_set(api):
    """$setElementOrder/env."""
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    body = workload("d", paused=True)
    body["spec"]["template"]["spec"]["containers"] = [{**CONTAINER, "env": env}]
    await api.create(DEPLOYMENTS, body)
    container = {
        "name": "c",
        "$setElementOrder/env": [{"name": "C"}, {"name": "B"}, {"name": "A"}],
        "env": [{"name": "C", "value": "3"}],
    }
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    found = await api.patch(DEPLOYMENTS, "d", patch, STRATEGIC)
    (made,) = found["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in made["env"]] == ["C", "B", "A"]


@source(STRATEGIC_SOURCE)
async def test_atomic_lists_are_replaced(api):
    """Tolerations have no merge key: all of them must be there."""
    body = workload("r")
    body["spec"]["template"]["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
    await api.create(REPLICA_SETS, body)
    patch = {"spec": {"template": {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}}}
    found = await api.patch(REPLICA_SETS, "r", patch, STRATEGIC)
    assert found["spec"]["template"]["spec"]["tolerations"] == [{"key": "b", "operator": "Exists"}]


@source(STRATEGIC_SOURCE)
async def test_conditions_are_merged_by_type(api):
    """As kubelets and controllers write them."""
    await running(api, "p")
    patch = {"status": {"conditions": [{"type": "example.com/x", "status": "True"}]}}
    found = await api.patch(PODS, "p", patch, STRATEGIC, sub="status")
    assert {one["type"]: one["status"] for one in found["status"]["conditions"]} == {
        "Ready": "True",
        "example.com/x": "True",
    }


@source(STRATEGIC_SOURCE)
async def test_owners_are_merged_by_uid(api):
    """Two clients add an owner each."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in "ab"]
    await api.create(LEASES, meta("l"))
    await api.patch(LEASES, "l", {"metadata": {"ownerReferences": owners[:1]}}, STRATEGIC)
    found = await api.patch(LEASES, "l", {"metadata": {"ownerReferences": owners[1:]}}, STRATEGIC)
    assert sorted(one["uid"] for one in found["metadata"]["ownerReferences"]) == ["a", "b"]


@source(STRATEGIC_SOURCE)
async def test_an_item_without_its_key(api):
    """A patch of a container without a name is no patch."""
    await api.create(PODS, pod())
    reply = await api.patch(PODS, "p", {"spec": {"containers": [{"image": "x"}]}}, STRATEGIC).reply()
    assert reply.status in (400, 422, 500)
    assert "does not contain declared merge key: name" in reply.body["message"]


@source(PATCH)
async def test_a_patch_is_validated(api):
    """As any update."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.patch(CONFIG_MAPS, "m", {"metadata": {"labels": {"a b": "c"}}}).refused(422, "Invalid")
    assert causes(status)[0][1] == "metadata.labels"


@source(PATCH)
async def test_a_patch_of_a_wrong_type(api):
    """A list where a map must be: the field patch is invalid."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.patch(CONFIG_MAPS, "m", {"data": ["x"]}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "patch")]
    assert "cannot unmarshal array into Go struct field ConfigMap.data" in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_patches_nothing(api):
    """The answer has the change."""
    await api.create(CONFIG_MAPS, config_map())
    shown = await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}}, dryRun="All")
    assert shown["data"] == {"k": "w"}
    assert (await api.get(CONFIG_MAPS, "m"))["data"] == {"k": "v"}


@source(PATCH)
async def test_a_patch_cannot_change_the_identity(api):
    """Neither name nor namespace."""
    await api.create(CONFIG_MAPS, config_map())
    for metadata in ({"name": "n"}, {"namespace": "other"}):
        await api.patch(CONFIG_MAPS, "m", {"metadata": metadata}).refused(400, "BadRequest")


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_unknown_fields_of_a_patch(api):
    """Strict validation refuses them in patches too."""
    await api.create(CONFIG_MAPS, config_map())
    reply = await api.patch(CONFIG_MAPS, "m", {"dada": {}}, fieldValidation="Strict").reply()
    assert 'unknown field "dada"' in reply.refused(422, "Invalid")["message"]
