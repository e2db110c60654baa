"""The verbs of the Kubernetes client: at the lab within the process, at the lab over TLS, at any cluster."""

import asyncio
import contextlib
import json

import msgspec
import pytest
from support.conformance.api_client import unique

from lastcall import errors
from lastcall.adapters.kube.client import JSON_PATCH, MERGE, STRATEGIC
from lastcall.adapters.kube.resources import BUDGETS, CONFIG_MAPS, NAMESPACES, PODS, dict_resource


class Small(msgspec.Struct):
    data: dict[str, str] = {}


POD = {
    "metadata": {"name": "p", "labels": {"app": "p"}},
    "spec": {
        "containers": [{"name": "c", "image": "none.invalid/c"}],
        "schedulingGates": [{"name": "lastcall.dev/never"}],
        "automountServiceAccountToken": False,
    },
}


async def pod(cluster, *, running=False):
    """One that no node gets; ``running`` is what its status pretends."""
    accounts = dict_resource("", "v1", "serviceaccounts")
    with contextlib.suppress(errors.AlreadyExists):
        await cluster.client.create(accounts, {"metadata": {"name": "default"}}, namespace=cluster.namespace)
    made = await cluster.client.create(PODS, POD, namespace=cluster.namespace)
    if running:
        conditions = [{"type": "Ready", "status": "True"}]
        await status(cluster, {"phase": "Running", "conditions": conditions})
    return made


async def status(cluster, part, kind=STRATEGIC):
    return await cluster.client.patch(
        PODS, "p", {"status": part}, namespace=cluster.namespace, subresource="status", kind=kind
    )


# -- one object --------------------------------------------------------------------------------------------------------


async def test_an_object_is_made_read_changed_and_deleted(cluster):
    client, namespace = cluster.client, cluster.namespace
    made = await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, namespace=namespace)
    assert made["data"] == {"x": "1"}
    read = await client.get(CONFIG_MAPS, "a", namespace=namespace)
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    changed = await client.patch(CONFIG_MAPS, "a", {"data": {"y": "2"}}, namespace=namespace)
    assert changed["data"] == {"x": "1", "y": "2"}
    replaced = await client.update(CONFIG_MAPS, "a", {**changed, "data": {"z": "3"}}, namespace=namespace)
    assert replaced["data"] == {"z": "3"}
    await client.delete(CONFIG_MAPS, "a", namespace=namespace)
    with pytest.raises(errors.NotFound) as caught:
        await client.get(CONFIG_MAPS, "a", namespace=namespace)
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert str(caught.value) == 'configmaps "a" not found'


async def test_objects_are_read_as_small_structs_and_sent_as_structs(cluster):
    small = CONFIG_MAPS.with_shape(Small)
    await cluster.put("a", "7")
    assert await cluster.client.get(small, "a", namespace=cluster.namespace) == Small({"value": "7"})
    found = await cluster.client.list(small, namespace=cluster.namespace)
    assert Small({"value": "7"}) in found.items
    changed = await cluster.client.patch(small, "a", Small({"more": "8"}), namespace=cluster.namespace)
    assert changed == Small({"value": "7", "more": "8"})


async def test_dry_run_changes_nothing(cluster):
    client, namespace = cluster.client, cluster.namespace
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace=namespace, dry_run=True)
    await cluster.put("b")
    await client.patch(CONFIG_MAPS, "b", {"data": {"value": "2"}}, namespace=namespace, dry_run=True)
    await client.update(CONFIG_MAPS, "b", {"metadata": {"name": "b"}}, namespace=namespace, dry_run=True)
    await client.delete(CONFIG_MAPS, "b", namespace=namespace, dry_run=True)
    assert await cluster.names() == ["b"]
    assert (await client.get(CONFIG_MAPS, "b", namespace=namespace))["data"] == {"value": "1"}


async def test_what_a_subresource_answers(cluster):
    await pod(cluster)
    request = {"spec": {"audiences": [], "expirationSeconds": 600}}
    accounts = dict_resource("", "v1", "serviceaccounts")
    answer = await cluster.client.create_subresource(accounts, "default", "token", request, namespace=cluster.namespace)
    assert answer["status"]["token"].count(".") == 2


# -- lists -------------------------------------------------------------------------------------------------------------


async def test_a_list_is_asked_for_in_pages_and_told_whole(cluster):
    names = [f"a{number}" for number in range(7)]
    for name in names:
        await cluster.put(name)
    cluster.line.asked.clear()
    found = await cluster.client.list(CONFIG_MAPS, namespace=cluster.namespace, limit=3)
    assert [item["metadata"]["name"] for item in found.items][:7] == names
    assert int(found.revision) > 0
    asked = [said for _, _, said in cluster.line.asked]
    assert [said["limit"] for said in asked] == ["3"] * 3
    assert ["continue" in said for said in asked] == [False, True, True]


async def test_a_list_that_changes_while_its_pages_are_read_is_of_one_moment(cluster):
    for name in ("a", "b", "c"):
        await cluster.put(name)
    listing = asyncio.create_task(cluster.names(limit=1))
    while len([one for one in cluster.line.asked if "limit" in one[2]]) < 2:
        await asyncio.sleep(0)
    await cluster.drop("c")
    await cluster.put("d")
    assert await listing == ["a", "b", "c"]


async def test_selectors_choose(cluster):
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"})):
        made = {"metadata": {"name": name, "labels": labels}}
        await cluster.client.create(CONFIG_MAPS, made, namespace=cluster.namespace)
    assert await cluster.names(labels="app=x") == ["a"]
    assert await cluster.names(fields="metadata.name=b") == ["b"]


# -- patches and preconditions -----------------------------------------------------------------------------------------


async def test_a_merge_patch_takes_away_what_is_null(cluster):
    await cluster.put("a")
    changed = await cluster.client.patch(
        CONFIG_MAPS, "a", {"data": {"value": None, "b": "2"}}, namespace=cluster.namespace, kind=MERGE
    )
    assert changed["data"] == {"b": "2"}


async def test_a_strategic_patch_merges_lists_by_their_key(cluster):
    await pod(cluster)
    for kind in ("example.com/one", "example.com/two"):
        changed = await status(cluster, {"conditions": [{"type": kind, "status": "True"}]})
    types = {one["type"] for one in changed["status"]["conditions"]}
    assert types >= {"example.com/one", "example.com/two"}


async def test_a_json_patch_can_test_first(cluster):
    client, namespace = cluster.client, cluster.namespace
    await cluster.put("a")
    test = {"op": "test", "path": "/data/value", "value": "1"}
    patch = [test, {"op": "replace", "path": "/data/value", "value": "2"}]
    changed = await client.patch(CONFIG_MAPS, "a", patch, namespace=namespace, kind=JSON_PATCH)
    assert changed["data"] == {"value": "2"}
    with pytest.raises(errors.RequestRefused):
        await client.patch(CONFIG_MAPS, "a", patch, namespace=namespace, kind=JSON_PATCH)


async def test_apply_owns_its_fields_and_conflicts_over_others(cluster):
    namespace = cluster.namespace
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1", "y": "1"}}
    await cluster.client.apply(CONFIG_MAPS, "a", wanted, namespace=namespace)
    less = {**wanted, "data": {"x": "1"}}
    assert (await cluster.client.apply(CONFIG_MAPS, "a", less, namespace=namespace))["data"] == {"x": "1"}
    other = {**wanted, "data": {"x": "2"}}
    with pytest.raises(errors.Conflict) as caught:
        await cluster.other.apply(CONFIG_MAPS, "a", other, namespace=namespace)
    assert caught.value.details["causes"][0]["field"] == ".data.x"
    taken = await cluster.other.apply(CONFIG_MAPS, "a", other, namespace=namespace, force=True)
    assert taken["data"] == {"x": "2"}


async def test_status_is_written_apart(cluster):
    made = await pod(cluster)
    changed = {**made, "status": {**made["status"], "phase": "Failed", "reason": "Lost"}}
    updated = await cluster.client.update(PODS, "p", changed, namespace=cluster.namespace, subresource="status")
    assert (updated["status"]["phase"], updated["status"]["reason"]) == ("Failed", "Lost")
    ignored = await cluster.client.patch(PODS, "p", {"status": {"reason": "x"}}, namespace=cluster.namespace)
    assert ignored["status"]["reason"] == "Lost"


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
async def test_a_resource_version_in_a_patch_is_a_precondition(cluster, kind):
    client, namespace = cluster.client, cluster.namespace
    old = (await cluster.put("a"))["metadata"]["resourceVersion"]
    new = (await cluster.put("a", "2"))["metadata"]["resourceVersion"]

    async def patch(version):
        wanted = {"metadata": {"resourceVersion": version}, "data": {"value": "3"}}
        return await client.patch(CONFIG_MAPS, "a", wanted, namespace=namespace, kind=kind)

    with pytest.raises(errors.Conflict):
        await patch(old)
    assert (await patch(new))["data"] == {"value": "3"}


async def test_what_is_deleted_must_be_what_was_meant(cluster):
    client, namespace = cluster.client, cluster.namespace
    first = (await cluster.put("a"))["metadata"]
    await cluster.drop("a")
    second = (await cluster.put("a"))["metadata"]
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid=first["uid"])
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, revision=first["resourceVersion"])
    await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid=second["uid"], revision=second["resourceVersion"])
    with pytest.raises(errors.NotFound):
        await client.delete(CONFIG_MAPS, "a", namespace=namespace, uid=second["uid"])


async def test_a_pod_is_deleted_by_force_if_it_is_the_one_that_was_meant(cluster):
    made = await pod(cluster)
    with pytest.raises(errors.Conflict):
        await cluster.client.delete(PODS, "p", namespace=cluster.namespace, grace=0, uid="another")
    await cluster.client.delete(PODS, "p", namespace=cluster.namespace, grace=0, uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await cluster.client.get(PODS, "p", namespace=cluster.namespace)


async def test_an_eviction_is_refused_while_a_budget_allows_none(cluster):
    client, namespace = cluster.client, cluster.namespace
    made = await pod(cluster, running=True)
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}}
    await client.create(BUDGETS, budget, namespace=namespace)
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.evict("p", namespace=namespace, uid=made["metadata"]["uid"])
    assert caught.value.code == 429
    await client.delete(BUDGETS, "b", namespace=namespace)
    with pytest.raises(errors.Conflict):
        await client.evict("p", namespace=namespace, uid="another")
    await client.evict("p", namespace=namespace, uid=made["metadata"]["uid"], grace=0, dry_run=True)
    await client.evict("p", namespace=namespace, uid=made["metadata"]["uid"], grace=0)
    with pytest.raises(errors.NotFound):
        await client.get(PODS, "p", namespace=namespace)


# -- errors ------------------------------------------------------------------------------------------------------------


async def test_errors_say_what_to_do(cluster):
    client, namespace = cluster.client, cluster.namespace
    await cluster.put("a")
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace=namespace)
    stale = {"metadata": {"name": "a", "resourceVersion": "1"}}
    with pytest.raises(errors.Conflict):
        await client.update(CONFIG_MAPS, "a", stale, namespace=namespace)
    with pytest.raises(errors.RequestRefused) as caught:
        await client.create(CONFIG_MAPS, {"metadata": {"name": "Not_A_Name"}}, namespace=namespace)
    assert caught.value.details["causes"][0]["field"] == "metadata.name"
    with pytest.raises(errors.NotFound):
        await client.list(dict_resource("apps.example.com", "v1", "things"))
    with pytest.raises(errors.RequestRefused):
        await client.patch(CONFIG_MAPS, "a", [{"op": "no"}], namespace=namespace, kind=JSON_PATCH)
    with pytest.raises(errors.NotFound):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace=unique())


async def test_a_server_that_is_away_is_unavailable_until_it_is_back(cluster):
    await cluster.put("a")
    await cluster.client.get(CONFIG_MAPS, "a", namespace=cluster.namespace)
    await cluster.trouble.down()
    with pytest.raises(errors.Unavailable):
        await cluster.client.get(CONFIG_MAPS, "a", namespace=cluster.namespace)
    await cluster.trouble.up()
    await cluster.client.get(CONFIG_MAPS, "a", namespace=cluster.namespace)


async def test_a_closed_client_says_so(cluster):
    cluster.line.close()
    with pytest.raises(errors.Unavailable, match="closed"):
        await cluster.client.get(NAMESPACES, "default")


async def test_unicode_and_large_objects_come_whole(cluster):
    value = json.dumps({"snowman": "\u2603", "text": "x" * 500_000}, ensure_ascii=False)
    await cluster.put("a", value)
    assert (await cluster.client.get(CONFIG_MAPS, "a", namespace=cluster.namespace))["data"]["value"] == value
