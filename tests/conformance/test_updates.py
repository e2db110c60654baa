"""Updates: conflicts, what is kept, and what a generation counts."""

import asyncio

import pytest
from support.conformance.api_client import b64, causes
from support.conformance.objects import changed, config_map, meta, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS, LEASES, REPLICA_SETS, dict_resource

source = pytest.mark.source
STORE = "staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go"
UPDATE = "staging/src/k8s.io/apiserver/pkg/registry/rest/update.go"
CORE = "pkg/apis/core/validation/validation.go"
ENDPOINTS = dict_resource("", "v1", "endpoints")


@source(STORE)
async def test_an_update_of_an_old_state_conflicts(api):
    """409, and the object stays."""
    made = await api.create(CONFIG_MAPS, config_map())
    await api.update(CONFIG_MAPS, changed(made, "data.k", "one"))
    status = await api.update(CONFIG_MAPS, changed(made, "data.k", "two")).refused(409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on configmaps "m": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert (await api.get(CONFIG_MAPS, "m"))["data"] == {"k": "one"}


@source(STORE)
async def test_of_many_updates_of_one_state_one_wins(api):
    """Optimistic concurrency."""
    made = await api.create(CONFIG_MAPS, config_map())
    calls = [api.update(CONFIG_MAPS, changed(made, "data.k", str(number))).reply() for number in range(8)]
    replies = await asyncio.gather(*calls)
    assert sorted(reply.status for reply in replies) == [200] + [409] * 7


@source(UPDATE)
async def test_an_update_without_a_revision_overwrites(api):
    """For kinds that allow it."""
    await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", {"data": {"other": "x"}})
    assert (await api.update(CONFIG_MAPS, config_map(data={"k": "new"})))["data"] == {"k": "new"}


@source("pkg/registry/coordination/lease/strategy.go")
async def test_a_lease_is_not_overwritten_blindly(api):
    """Kinds that do not allow it want a resourceVersion."""
    await api.create(LEASES, meta("l"))
    status = await api.update(LEASES, meta("l")).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "metadata.resourceVersion")]
    assert "must be specified for an update" in status["message"]


@source("pkg/registry/coordination/lease/strategy.go")
async def test_a_lease_is_created_by_an_update(api):
    """Kinds that allow it answer 201."""
    reply = await api.update(LEASES, meta("l")).reply()
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]


@source("pkg/registry/core/configmap/strategy.go")
async def test_most_kinds_are_not_created_by_an_update(api):
    """404."""
    await api.update(CONFIG_MAPS, config_map()).refused(404, "NotFound")


@source(STORE)
async def test_an_update_that_changes_nothing_keeps_the_revision(api):
    """Nothing is written."""
    made = await api.create(CONFIG_MAPS, config_map())
    again = await api.update(CONFIG_MAPS, made)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@source(UPDATE)
async def test_an_update_with_another_uid_conflicts(api):
    """It is meant for an object that had the name before."""
    made = await api.create(CONFIG_MAPS, config_map())
    other = changed(
        changed(made, "metadata.uid", "00000000-0000-0000-0000-000000000000"), "metadata.resourceVersion", None
    )
    status = await api.update(CONFIG_MAPS, other).refused(409, "Conflict")
    assert "UID in precondition" in status["message"]


@source(UPDATE)
async def test_an_update_needs_the_name_of_its_path(api):
    """Another one in the body is a bad request."""
    await api.create(CONFIG_MAPS, config_map())
    status = await api.ask("PUT", api.at(CONFIG_MAPS, "m"), config_map("n")).refused(400, "BadRequest")
    assert "the name of the object (n) does not match the name on the URL (m)" in status["message"]


@source(UPDATE)
async def test_an_update_needs_a_name(api):
    """A body without a name is refused, though the path has one."""
    await api.create(CONFIG_MAPS, config_map())
    await api.ask("PUT", api.at(CONFIG_MAPS, "m"), {"data": {}}).refused(400, "BadRequest")


@source("staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go")
async def test_the_times_of_an_object_are_kept(api):
    """A creationTimestamp that is left out is the old one."""
    made = await api.create(CONFIG_MAPS, config_map())
    again = await api.update(CONFIG_MAPS, config_map(data={"k": "w"}))
    assert again["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert again["metadata"]["uid"] == made["metadata"]["uid"]


@source("staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go")
async def test_a_creation_time_cannot_change(api):
    """Another time is refused or ignored: it never changes."""
    made = await api.create(CONFIG_MAPS, config_map())
    await api.update(CONFIG_MAPS, changed(made, "metadata.creationTimestamp", "2001-01-01T00:00:00Z")).reply()
    found = await api.get(CONFIG_MAPS, "m")
    assert found["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


@source("staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go")
async def test_nobody_deletes_by_an_update(api):
    """A deletionTimestamp in an update does not make the object terminate."""
    made = await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/x"]))
    await api.update(CONFIG_MAPS, changed(made, "metadata.deletionTimestamp", "2001-01-01T00:00:00Z")).reply()
    assert "deletionTimestamp" not in (await api.get(CONFIG_MAPS, "m"))["metadata"]


@source("pkg/registry/apps/replicaset/strategy.go")
async def test_a_generation_counts_changes_of_the_spec(api):
    """Not those of metadata, not those of the status."""
    made = await api.create(REPLICA_SETS, workload("r"))
    assert made["metadata"]["generation"] == 1
    labelled = await api.patch(REPLICA_SETS, "r", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    spec = await api.patch(REPLICA_SETS, "r", {"spec": {"minReadySeconds": 5}})
    assert spec["metadata"]["generation"] == 2


@source("pkg/registry/apps/deployment/strategy.go")
async def test_annotations_of_a_deployment_count_as_a_generation(api):
    """Its strategy compares the annotations too."""
    await api.create(DEPLOYMENTS, workload("d", paused=True))
    before = (await api.get(DEPLOYMENTS, "d"))["metadata"]["generation"]
    after = await api.patch(DEPLOYMENTS, "d", {"metadata": {"annotations": {"example.com/a": "b"}}})
    assert after["metadata"]["generation"] == before + 1


@source("pkg/registry/apps/replicaset/strategy.go")
async def test_a_status_in_an_update_is_ignored(api):
    """It is written at /status."""
    made = await api.create(REPLICA_SETS, workload("r"))
    body = changed(changed(made, "status.replicas", 7), "metadata.resourceVersion", None)
    again = await api.update(REPLICA_SETS, body)
    assert again["status"]["replicas"] == 0


@source(CORE)
async def test_config_maps_are_small(api):
    """One MiB of data."""
    status = await api.create(CONFIG_MAPS, config_map(data={"k": "x" * (1024 * 1024 + 1)})).refused(422, "Invalid")
    assert ("FieldValueTooLong", "[]") in causes(status)


@source(CORE)
async def test_keys_of_config_maps(api):
    """They are file names."""
    status = await api.create(CONFIG_MAPS, config_map(data={"a/b": "x"})).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "data[a/b]")]


@source(CORE)
async def test_a_key_is_text_or_binary(api):
    """Not both."""
    body = {**config_map(), "binaryData": {"k": b64("x")}}
    status = await api.create(CONFIG_MAPS, body).refused(422, "Invalid")
    assert "duplicate of key present in" in status["message"]


@source("https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/")
async def test_finalizers_are_not_added_to_what_goes(api):
    """Only taken away."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/x"]))
    await api.delete(CONFIG_MAPS, "m")
    patch = {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}
    status = await api.patch(CONFIG_MAPS, "m", patch).refused(422, "Invalid")
    assert set(causes(status)) == {("FieldValueForbidden", "metadata.finalizers")}
    assert "no new finalizers can be added if the object is being deleted" in status["message"]


@source("https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/")
async def test_what_goes_can_still_change(api):
    """Labels of a terminating object, for instance."""
    await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/x"]))
    await api.delete(CONFIG_MAPS, "m")
    found = await api.patch(CONFIG_MAPS, "m", {"metadata": {"labels": {"a": "b"}}})
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["deletionTimestamp"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run")
async def test_a_dry_run_updates_nothing(api):
    """The answer has the change and the old revision."""
    made = await api.create(CONFIG_MAPS, config_map())
    shown = await api.update(CONFIG_MAPS, changed(made, "data.k", "w"), dryRun="All")
    assert shown["data"] == {"k": "w"}
    assert (await api.get(CONFIG_MAPS, "m"))["data"] == {"k": "v"}


@source("pkg/registry/core/endpoint/strategy.go")
async def test_endpoints_are_created_by_an_update(api):
    """As controllers once did; the API warns that v1 Endpoints are deprecated."""
    reply = await api.update(ENDPOINTS, meta("e")).reply()
    assert reply.status == 201
    assert "v1 Endpoints is deprecated" in reply.headers["warning"]


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/update.go")
async def test_a_body_of_another_kind(api):
    """A Pod is no ConfigMap."""
    await api.create(CONFIG_MAPS, config_map())
    body = {**config_map(), "kind": "Pod", "apiVersion": "v1"}
    status = await api.ask("PUT", api.at(CONFIG_MAPS, "m"), body).refused(400, "BadRequest")
    assert "Pod in version" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager")
async def test_an_update_takes_the_fields_that_it_changes(api):
    """The manager that changes a field owns it; the others keep theirs."""
    await api.create(CONFIG_MAPS, config_map(data={"a": "1", "b": "1"}), fieldManager="one")
    made = await api.update(CONFIG_MAPS, config_map(data={"a": "1", "b": "2"}), fieldManager="two")
    owned = {entry["manager"]: entry["fieldsV1"]["f:data"] for entry in made["metadata"]["managedFields"]}
    assert owned == {"one": {".": {}, "f:a": {}}, "two": {"f:b": {}}}
