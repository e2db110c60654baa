"""Reading: objects, lists, pages, revisions and forms."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import config_map, meta, pod, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, PODS, REPLICA_SETS

source = pytest.mark.source
API = "https://kubernetes.io/docs/reference/using-api/api-concepts/"
GET = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go"
CACHER = "staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go"
MATCH = "staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go"
ONLY = "case=this"


async def some(api, *names):
    """ConfigMaps with the label by which these cases tell theirs from the cluster's."""
    return [await api.create(CONFIG_MAPS, config_map(name, labels={"case": "this"})) for name in names]


@source("staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go")
async def test_what_is_not_there(api):
    """404, reason NotFound, naming the object and its resource."""
    status = await api.get(CONFIG_MAPS, "x").refused(404, "NotFound")
    assert status["message"] == 'configmaps "x" not found'
    assert status["details"] == {"name": "x", "kind": "configmaps"}


@source("staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go")
async def test_what_is_not_there_in_a_group(api):
    """The group is in the message and the details."""
    status = await api.get(LEASES, "x").refused(404, "NotFound")
    assert status["message"] == 'leases.coordination.k8s.io "x" not found'
    assert status["details"] == {"name": "x", "group": "coordination.k8s.io", "kind": "leases"}


@source(API + "#collections")
async def test_a_list_has_kind_version_and_revision(api):
    """Its items do not repeat kind and version."""
    await some(api, "a")
    found = await api.list(CONFIG_MAPS, labelSelector=ONLY)
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(found["metadata"]["resourceVersion"]) > 0
    assert not {"kind", "apiVersion"} & set(found["items"][0])


@source(API + "#collections")
async def test_an_empty_list_has_items(api):
    """[] and not null."""
    assert (await api.list(LEASES))["items"] == []


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_a_list_is_in_the_order_of_keys(api):
    """Not in the order of creation."""
    await some(api, "b", "a-1", "a", "a.1", "c")
    assert await api.names(CONFIG_MAPS, labelSelector=ONLY) == ["a", "a-1", "a.1", "b", "c"]


@source(API + "#resource-uris")
async def test_a_list_of_all_namespaces(api):
    """The collection without a namespace; order is by namespace, then by name."""
    mark = unique("mark")
    other = unique("other")
    await api.create(NAMESPACES, meta(other))
    await api.create(CONFIG_MAPS, config_map("z", labels={"mark": mark}))
    await api.ask("POST", CONFIG_MAPS.path(other), config_map("a", labels={"mark": mark}))
    found = (await api.ask("GET", CONFIG_MAPS.path(), labelSelector=f"mark={mark}"))["items"]
    places = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in found]
    assert places == sorted([(api.namespace, "z"), (other, "a")])


@source(API + "#retrieving-large-results-sets-in-chunks")
async def test_pages_have_all_items_once(api):
    """limit and continue, until there is no token."""
    await some(api, *"abcde")
    names, token, pages = [], "", 0
    while pages == 0 or token:
        page = await api.list(CONFIG_MAPS, labelSelector=ONLY, limit=2, **({"continue": token} if token else {}))
        names += [item["metadata"]["name"] for item in page["items"]]
        token, pages = page["metadata"].get("continue", ""), pages + 1
    assert names == list("abcde")


@source(API + "#retrieving-large-results-sets-in-chunks")
async def test_pages_are_of_one_revision(api):
    """What is created or deleted meanwhile is not seen."""
    await some(api, *"abc")
    first = await api.list(CONFIG_MAPS, labelSelector=ONLY, limit=1)
    await some(api, "bb")
    await api.delete(CONFIG_MAPS, "c")
    rest = await api.list(CONFIG_MAPS, labelSelector=ONLY, **{"continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@source(API + "#retrieving-large-results-sets-in-chunks")
async def test_how_many_are_left_is_told_without_selectors(api):
    """remainingItemCount; with a selector it is unknown and left out."""
    for name in "abc":
        await api.create(LEASES, meta(name))
    page = await api.list(LEASES, limit=1)
    assert page["metadata"]["remainingItemCount"] == 2
    selected = await api.list(LEASES, limit=1, fieldSelector="metadata.name!=x")
    assert "remainingItemCount" not in selected["metadata"]


@source(API + "#retrieving-large-results-sets-in-chunks")
async def test_a_limit_that_is_just_enough_gives_no_token(api):
    """All items are there: nothing to go on with."""
    for name in "ab":
        await api.create(LEASES, meta(name))
    assert "continue" not in (await api.list(LEASES, limit=2))["metadata"]


@source("staging/src/k8s.io/apiserver/pkg/storage/continue.go")
async def test_a_token_that_is_none(api):
    """400."""
    status = await api.list(LEASES, limit=1, **{"continue": "garbage"}).refused(400, "BadRequest")
    assert "continue key is not valid" in status["message"]


@source(API + "#semantics-for-get-and-list")
async def test_a_list_of_an_earlier_moment(api):
    """resourceVersionMatch Exact shows what was there then."""
    (first,) = await some(api, "a")
    await some(api, "b")
    await api.delete(CONFIG_MAPS, "a")
    revision = first["metadata"]["resourceVersion"]
    query = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    found = await api.list(CONFIG_MAPS, labelSelector=ONLY, **query)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    assert found["metadata"]["resourceVersion"] == revision


@source(API + "#semantics-for-get-and-list")
async def test_a_list_not_older_than_a_revision(api):
    """It is that one or newer."""
    (made,) = await some(api, "a")
    revision = made["metadata"]["resourceVersion"]
    query = {"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"}
    found = await api.list(CONFIG_MAPS, labelSelector=ONLY, **query)
    assert int(found["metadata"]["resourceVersion"]) >= int(revision)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]


@source(MATCH)
async def test_pages_cannot_change_their_revision(api):
    """A token and resourceVersionMatch exclude each other."""
    for name in "ab":
        await api.create(LEASES, meta(name))
    token = (await api.list(LEASES, limit=1))["metadata"]["continue"]
    query = {"continue": token, "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"}
    status = await api.list(LEASES, limit=1, **query).refused(422, "Invalid")
    assert "resourceVersionMatch is forbidden when continue is provided" in status["message"]


@source(MATCH)
async def test_an_exact_match_of_any_revision(api):
    """Exact and revision 0 exclude each other."""
    query = {"resourceVersion": "0", "resourceVersionMatch": "Exact"}
    status = await api.list(LEASES, **query).refused(422, "Invalid")
    assert 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"' in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/storage/api_object_versioner.go")
async def test_a_revision_that_is_no_number(api):
    """400 for a list."""
    status = await api.list(LEASES, resourceVersion="x").refused(400, "BadRequest")
    assert 'resourceVersion: Invalid value: "x"' in status["message"]


@source(CACHER)
async def test_a_revision_of_the_future(api):
    """504 with the cause ResourceVersionTooLarge, and a hint when to try again."""
    reply = await api.list(LEASES, resourceVersion=str(10**15)).reply()
    status = reply.refused(504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert reply.headers["retry-after"] == "1"


@source(API + "#receiving-resources-as-tables")
async def test_only_metadata_of_one_object(api):
    """as=PartialObjectMetadata."""
    await api.create(PODS, pod())
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    found = await api.ask("GET", api.at(PODS, "p"), accept=accept)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert set(found) == {"kind", "apiVersion", "metadata"}
    assert found["metadata"]["name"] == "p"


@source(API + "#receiving-resources-as-tables")
async def test_only_metadata_of_a_list(api):
    """as=PartialObjectMetadataList; its items name their kind."""
    await api.create(PODS, pod())
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = await api.ask("GET", api.at(PODS), accept=accept)
    assert found["kind"] == "PartialObjectMetadataList"
    (item,) = found["items"]
    assert set(item) <= {"kind", "apiVersion", "metadata"}


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go")
async def test_an_object_in_yaml(api):
    """Accept: application/yaml."""
    await api.create(CONFIG_MAPS, config_map())
    reply = await api.ask("GET", api.at(CONFIG_MAPS, "m"), accept="application/yaml").reply()
    assert reply.headers["content-type"] == "application/yaml"
    assert reply.data.startswith(b"apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go")
async def test_a_type_that_is_not_served(api):
    """406."""
    reply = await api.ask("GET", api.at(CONFIG_MAPS), accept="image/png").reply()
    reply.refused(406, "NotAcceptable")


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go")
async def test_the_first_type_that_is_served_is_taken(api):
    """In the order of the header, by quality."""
    accept = "image/png, application/yaml;q=0.5, application/json;q=0.9"
    reply = await api.ask("GET", api.at(CONFIG_MAPS), accept=accept).reply()
    assert reply.headers["content-type"] == "application/json"


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go")
async def test_pretty_answers_have_lines(api):
    """pretty=true."""
    await api.create(CONFIG_MAPS, config_map())
    reply = await api.get(CONFIG_MAPS, "m", pretty="true").reply()
    assert reply.data.startswith(b'{\n  "kind": "ConfigMap",\n  "apiVersion": "v1",\n')


@source("staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go")
async def test_each_change_has_a_greater_revision(api):
    """Across kinds of one cluster revisions grow with time."""
    one = await api.create(CONFIG_MAPS, config_map())
    two = await api.create(LEASES, meta("l"))
    three = await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}})
    revisions = [int(obj["metadata"]["resourceVersion"]) for obj in (one, two, three)]
    assert revisions == sorted(set(revisions))


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go")
async def test_a_list_by_one_name_has_its_object(api):
    """fieldSelector metadata.name."""
    await some(api, "a", "b")
    found = await api.list(CONFIG_MAPS, fieldSelector="metadata.name=b")
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


@source(GET)
async def test_the_same_object_in_its_other_version_groups(api):
    """Events have two groups, one storage; what is not there in one is not in the other."""
    await api.ask("GET", f"/apis/events.k8s.io/v1/namespaces/{api.namespace}/events/x").refused(404, "NotFound")


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_reading_in_a_namespace_that_is_not_there(api):
    """A list is empty, not an error; one object is not found."""
    path = CONFIG_MAPS.path(unique("missing"))
    assert (await api.ask("GET", path))["items"] == []
    await api.ask("GET", f"{path}/x").refused(404, "NotFound")


@source("pkg/registry/apps/replicaset/storage/storage.go")
async def test_a_scale_is_read_as_another_kind(api):
    """GET of /scale answers an autoscaling/v1 Scale with the object's identity."""
    made = await api.create(REPLICA_SETS, workload("r"))
    scale = await api.get(REPLICA_SETS, "r", "scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["metadata"]["uid"] == made["metadata"]["uid"]
    assert scale["spec"] == {}
    assert scale["status"] == {"replicas": 0, "selector": "app=r"}


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_pages_of_selected_objects(api):
    """The storage goes on as long as there are objects, selected or not: the last page is empty."""
    for number in range(4):
        await api.create(LEASES, {"metadata": {"name": f"l{number}", "labels": {"odd": str(number % 2)}}})
    pages, token = [], ""
    while token is not None:
        page = await api.list(LEASES, labelSelector="odd=0", limit=1, **({"continue": token} if token else {}))
        pages.append([one["metadata"]["name"] for one in page["items"]])
        token = page["metadata"].get("continue")
    assert pages == [["l0"], ["l2"], []]


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_a_page_of_one_name(api):
    """Only that object is read."""
    for name in ("a", "b"):
        await api.create(LEASES, meta(name))
    page = await api.list(LEASES, fieldSelector="metadata.name=a", limit=1)
    assert (len(page["items"]), page["metadata"].get("continue")) == (1, None)


@source("staging/src/k8s.io/apimachinery/pkg/fields/selector.go")
async def test_a_field_selector_of_nothing(api):
    """Selects everything."""
    await api.create(LEASES, meta("a"))
    assert await api.names(LEASES, fieldSelector="=") == ["a"]
