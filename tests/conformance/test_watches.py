"""Watches: which events come, in which order, with what in them."""

import pytest
from support.conformance.api_client import unique
from support.conformance.objects import NOWHERE, config_map, meta, pod, running

from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, PODS

source = pytest.mark.source
API = "https://kubernetes.io/docs/reference/using-api/api-concepts/"
WATCH = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go"
CACHER = "staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go"
LISTS = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list"
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


async def revision(api, resource=LEASES):
    """Of now."""
    return (await api.list(resource))["metadata"]["resourceVersion"]


@source(API + "#semantics-for-watch")
async def test_a_watch_begins_with_what_is_there(api):
    """Without a revision: ADDED for each object, then what happens."""
    await api.create(LEASES, meta("a"))
    async with api.watch(LEASES) as events:
        assert await events.names(1) == [("ADDED", "a")]
        await api.create(LEASES, meta("b"))
        assert await events.names(1) == [("ADDED", "b")]


@source(API + "#semantics-for-watch")
async def test_a_watch_from_a_revision_has_only_what_came_later(api):
    """As clients do after a list."""
    await api.create(LEASES, meta("a"))
    since = await revision(api)
    await api.create(LEASES, meta("b"))
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert await events.names(1) == [("ADDED", "b")]


@source(API + "#semantics-for-watch")
async def test_a_watch_goes_on_from_the_last_event(api):
    """The revision of an object in an event is where the next watch begins."""
    since = await revision(api)
    for name in "abc":
        await api.create(LEASES, meta(name))
    async with api.watch(LEASES, resourceVersion=since) as events:
        await events.next()
        second = await events.next()
    async with api.watch(LEASES, resourceVersion=second["object"]["metadata"]["resourceVersion"]) as events:
        assert await events.names(1) == [("ADDED", "c")]


@source(API + "#efficient-detection-of-changes")
async def test_changes_come_in_their_order(api):
    """Creation, change and deletion of several objects."""
    since = await revision(api)
    await api.create(LEASES, meta("a"))
    await api.create(LEASES, meta("b"))
    await api.patch(LEASES, "a", {"metadata": {"labels": {"x": "y"}}})
    await api.delete(LEASES, "b")
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert await events.names(4) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@source(WATCH)
async def test_an_event_has_the_whole_object(api):
    """With kind and version, as a GET gives it."""
    since = await revision(api)
    made = await api.create(LEASES, meta("a"))
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert (await events.next())["object"] == made


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/watcher.go")
async def test_a_deletion_has_a_revision_of_its_own(api):
    """The object's last state, with the revision of the deletion."""
    made = await api.create(LEASES, meta("a"))
    await api.delete(LEASES, "a")
    async with api.watch(LEASES, resourceVersion=made["metadata"]["resourceVersion"]) as events:
        event = await events.next()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_a_change_that_changes_nothing_is_no_event(api):
    """The next event is of the next real change."""
    made = await api.create(LEASES, meta("a", labels={"x": "1"}))
    since = made["metadata"]["resourceVersion"]
    await api.patch(LEASES, "a", {"metadata": {"labels": {"x": "1"}}})
    await api.patch(LEASES, "a", {"metadata": {"labels": {"x": "2"}}})
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert (await events.next())["object"]["metadata"]["labels"] == {"x": "2"}


@source(CACHER)
async def test_an_object_that_leaves_a_selector_is_deleted_to_its_watcher(api):
    """With the state before it left, and the revision at which it left."""
    made = await api.create(LEASES, meta("a", labels={"x": "1"}))
    left = await api.patch(LEASES, "a", {"metadata": {"labels": {"x": "2"}}})
    query = {"labelSelector": "x=1", "resourceVersion": made["metadata"]["resourceVersion"]}
    async with api.watch(LEASES, **query) as events:
        event = await events.next()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["labels"] == {"x": "1"}
    assert event["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


@source(CACHER)
async def test_an_object_that_enters_a_selector_is_added(api):
    """Also if it has been there for long."""
    made = await api.create(LEASES, meta("a", labels={"x": "1"}))
    await api.patch(LEASES, "a", {"metadata": {"labels": {"x": "2"}}})
    query = {"labelSelector": "x=2", "resourceVersion": made["metadata"]["resourceVersion"]}
    async with api.watch(LEASES, **query) as events:
        assert await events.names(1) == [("ADDED", "a")]


@source(CACHER)
async def test_a_binding_adds_the_pod_to_its_nodes_watcher(api):
    """This is how a kubelet learns of its pods."""
    since = (await api.create(PODS, pod()))["metadata"]["resourceVersion"]
    target = {**meta("p"), "target": {"kind": "Node", "name": NOWHERE}}
    await api.ask("POST", api.at(PODS, "p", "binding"), target)
    async with api.watch(PODS, fieldSelector=f"spec.nodeName={NOWHERE}", resourceVersion=since) as events:
        event = await events.next()
    assert (event["type"], event["object"]["spec"]["nodeName"]) == ("ADDED", NOWHERE)


@source(CACHER)
async def test_a_phase_that_is_over_deletes_the_pod_for_its_watcher(api):
    """Watchers of status.phase see pods come and go."""
    pod = await running(api, "p")
    await api.patch(PODS, "p", {"status": {"phase": "Failed"}}, sub="status")
    query = {"fieldSelector": "status.phase=Running", "resourceVersion": pod["metadata"]["resourceVersion"]}
    async with api.watch(PODS, **query) as events:
        assert await events.names(1) == [("DELETED", "p")]


@source(WATCH)
async def test_a_watch_of_one_name(api):
    """By a field selector."""
    since = await revision(api)
    await api.create(LEASES, meta("a"))
    await api.create(LEASES, meta("b"))
    async with api.watch(LEASES, resourceVersion=since, fieldSelector="metadata.name=b") as events:
        assert await events.names(1) == [("ADDED", "b")]


@source(WATCH)
async def test_a_watch_of_one_namespace_is_silent_about_others(api):
    """What is elsewhere does not come."""
    other = unique("other")
    await api.create(NAMESPACES, meta(other))
    since = await revision(api)
    await api.ask("POST", LEASES.path(other), meta("elsewhere"))
    await api.create(LEASES, meta("here"))
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert await events.names(1) == [("ADDED", "here")]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go")
async def test_a_graceful_deletion_is_seen(api):
    """MODIFIED with a deletionTimestamp, again when the grace becomes 0, DELETED."""
    pod = await running(api, "p")
    await api.delete(PODS, "p")
    await api.delete(PODS, "p", {"gracePeriodSeconds": 0})
    async with api.watch(PODS, resourceVersion=pod["metadata"]["resourceVersion"]) as events:
        seen = [await events.next() for _ in range(3)]
    assert [event["type"] for event in seen] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert [event["object"]["metadata"]["deletionGracePeriodSeconds"] for event in seen] == [30, 0, 0]


@source("https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/")
async def test_a_finalizer_makes_two_events(api):
    """The deletion is a change; the object goes with its last finalizer."""
    made = await api.create(CONFIG_MAPS, config_map(finalizers=["example.com/x"]))
    await api.delete(CONFIG_MAPS, "m")
    await api.patch(CONFIG_MAPS, "m", {"metadata": {"finalizers": None}})
    query = {"resourceVersion": made["metadata"]["resourceVersion"], "fieldSelector": "metadata.name=m"}
    async with api.watch(CONFIG_MAPS, **query) as events:
        assert [kind for kind, _ in await events.names(2)] == ["MODIFIED", "DELETED"]


@source("staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go")
async def test_the_deletion_of_a_collection_is_an_event_each(api):
    """For each of its objects."""
    for name in "abc":
        await api.create(LEASES, meta(name))
    since = await revision(api)
    await api.ask("DELETE", api.at(LEASES))
    async with api.watch(LEASES, resourceVersion=since) as events:
        assert sorted(await events.names(3)) == [("DELETED", name) for name in "abc"]


@source(WATCH)
async def test_a_watch_ends_when_its_time_is_over(api):
    """timeoutSeconds; the stream ends in order."""
    async with api.watch(LEASES, timeoutSeconds="1") as events:
        assert await events.next() is None


@source(LISTS)
async def test_initial_events_end_with_a_bookmark(api):
    """It has the annotation k8s.io/initial-events-end and a revision to go on from."""
    await api.create(LEASES, meta("a"))
    async with api.watch(LEASES, **INITIAL) as events:
        assert (await events.next())["object"]["metadata"]["name"] == "a"
        bookmark = await events.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["object"]["kind"] == "Lease"
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0


@source(LISTS)
async def test_after_initial_events_comes_what_happens(api):
    """One stream for the list and the watch."""
    async with api.watch(LEASES, **INITIAL) as events:
        assert (await events.next())["type"] == "BOOKMARK"
        await api.create(LEASES, meta("b"))
        assert await events.names(1) == [("ADDED", "b")]


@source(LISTS)
async def test_initial_events_need_a_match(api):
    """sendInitialEvents without resourceVersionMatch is invalid."""
    query = {"watch": "true", "sendInitialEvents": "true"}
    status = await api.list(LEASES, **query).refused(422, "Invalid")
    assert "resourceVersionMatch" in status["message"]


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go")
async def test_an_exact_match_is_not_for_watches(api):
    """A watch that is told to match exactly is refused."""
    query = {"watch": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"}
    status = await api.list(LEASES, **query).refused(422, "Invalid")
    assert "resourceVersionMatch is forbidden for watch" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/storage/api_object_versioner.go")
async def test_a_watch_from_no_revision(api):
    """One that is no number is an error before the stream begins, which has no reason."""
    status = await api.list(LEASES, watch="true", resourceVersion="x").refused(500)
    assert 'resourceVersion: Invalid value: "x"' in status["message"]


@source(WATCH)
async def test_only_metadata_is_watched(api):
    """Events of PartialObjectMetadata."""
    await api.create(PODS, pod())
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with api.watch(PODS, accept=accept) as events:
        event = await events.next()
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert set(event["object"]) == {"kind", "apiVersion", "metadata"}


@source(API + "#receiving-resources-as-tables")
async def test_a_watch_of_tables_names_its_columns_once(api):
    """Each event is a table of one row; only the first has the definitions of columns."""
    await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    async with api.watch(PODS, accept="application/json;as=Table;g=meta.k8s.io;v=v1") as events:
        first, second = await events.next(), await events.next()
    assert first["object"]["kind"] == second["object"]["kind"] == "Table"
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert not second["object"]["columnDefinitions"]
    assert [one["object"]["rows"][0]["cells"][0] for one in (first, second)] == ["a", "b"]


@source("staging/src/k8s.io/apiserver/pkg/endpoints/installer.go")
async def test_the_old_path_of_watches(api):
    """/watch/ before the resource, deprecated and served."""
    await api.create(LEASES, meta("a"))
    path = f"/apis/coordination.k8s.io/v1/watch/namespaces/{api.namespace}/leases"
    async with api.stream(path) as events:
        assert await events.names(1) == [("ADDED", "a")]


@source(WATCH)
async def test_two_watchers_see_the_same(api):
    """Each stream has all events."""
    since = await revision(api)
    async with (
        api.watch(LEASES, resourceVersion=since) as one,
        api.watch(LEASES, resourceVersion=since) as two,
    ):
        for name in "abc":
            await api.create(LEASES, meta(name))
        assert await one.names(3) == await two.names(3)


@source(WATCH)
async def test_changes_of_status_are_changes(api):
    """The watch of a resource has those of its subresources."""
    pod = await running(api, "p")
    await api.patch(PODS, "p", {"status": {"message": "hello"}}, sub="status")
    async with api.watch(PODS, resourceVersion=pod["metadata"]["resourceVersion"]) as events:
        event = await events.next()
    assert (event["type"], event["object"]["status"]["message"]) == ("MODIFIED", "hello")
