"""The Kubernetes client on both of its transports: HTTPS, and straight into the lab's API server."""

import asyncio
import contextlib
from random import Random

import msgspec
import pytest
from support.lab_front import serving

from lastcall import errors
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube.client import JSON_PATCH, Client
from lastcall.adapters.kube.credentials import Credential, Files
from lastcall.adapters.kube.http import Endpoint, Http
from lastcall.adapters.kube.resources import CONFIG_MAPS, NAMESPACES, resource
from lastcall.adapters.kube.watching import Key, Kind, Watching
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.inprocess import InProcess

TOKEN = "the-token"


class World:
    """A server, a client of it, and what a test does behind the client's back."""

    def __init__(self, server, transport):
        self.server, self.transport = server, transport
        self.client = Client(transport, manager="test")

    async def put(self, name, value="1"):
        data = {"metadata": {"name": name}, "data": {"value": value}}
        try:
            await self.client.create(CONFIG_MAPS, data, namespace="default")
        except errors.AlreadyExists:
            await self.client.update(CONFIG_MAPS, name, data, namespace="default")

    async def drop(self, name):
        await self.client.delete(CONFIG_MAPS, name, namespace="default")

    def watching(self, **rest):
        rest = {"namespace": "default", "clock": SystemClock(), "random": Random(1), **rest}
        return Watching(self.client, CONFIG_MAPS, **rest)


@pytest.fixture(params=["https", "in process"])
async def world(request, tmp_path):
    server = ApiServer(SystemClock(), Random(1))
    server.identities.add(TOKEN, "kubernetes-admin", ["system:masters"])
    if request.param == "in process":
        world = World(server, InProcess(server))
        await make_default(world)
        yield world
        return
    async with serving(server, tmp_path) as (url, authority):
        transport = Http(Endpoint.of(url, authority=authority), Files(Credential(token=TOKEN), SystemClock()))
        world = World(server, transport)
        await make_default(world)
        yield world
        transport.close()


async def make_default(world):
    with contextlib.suppress(errors.AlreadyExists):
        await world.client.create(NAMESPACES, {"metadata": {"name": "default"}})


class Small(msgspec.Struct):
    data: dict[str, str] = {}


async def test_an_object_is_made_read_changed_and_deleted(world):
    client = world.client
    made = await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}}, namespace="default")
    assert made["data"] == {"x": "1"}
    read = await client.get(CONFIG_MAPS, "a", namespace="default")
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    changed = await client.patch(CONFIG_MAPS, "a", {"data": {"y": "2"}}, namespace="default")
    assert changed["data"] == {"x": "1", "y": "2"}
    replaced = await client.update(CONFIG_MAPS, "a", {**changed, "data": {"z": "3"}}, namespace="default")
    assert replaced["data"] == {"z": "3"}
    await client.delete(CONFIG_MAPS, "a", namespace="default")
    with pytest.raises(errors.NotFound) as caught:
        await client.get(CONFIG_MAPS, "a", namespace="default")
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert str(caught.value) == 'configmaps "a" not found'


async def test_objects_are_read_as_small_structs_and_sent_as_structs(world):
    small = CONFIG_MAPS.read_as(Small)
    await world.put("a", "7")
    assert await world.client.get(small, "a", namespace="default") == Small({"value": "7"})
    found = await world.client.list(small, namespace="default")
    assert Small({"value": "7"}) in found.items
    changed = await world.client.patch(small, "a", Small({"more": "8"}), namespace="default")
    assert changed == Small({"value": "7", "more": "8"})


async def test_a_list_is_asked_for_in_pages_and_told_whole(world):
    for number in range(7):
        await world.put(f"a{number}")
    found = await world.client.list(CONFIG_MAPS, namespace="default", limit=3)
    assert [item["metadata"]["name"] for item in found.items] == [f"a{number}" for number in range(7)]
    assert int(found.revision) > 0


async def test_selectors_choose(world):
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"})):
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}}, namespace="default")
    by_label = await world.client.list(CONFIG_MAPS, namespace="default", labels="app=x")
    by_field = await world.client.list(CONFIG_MAPS, namespace="default", fields="metadata.name=b")
    assert [one["metadata"]["name"] for one in [*by_label.items, *by_field.items]] == ["a", "b"]


async def test_errors_say_what_to_do(world):
    client = world.client
    await world.put("a")
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")
    stale = {"metadata": {"name": "a", "resourceVersion": "1"}}
    with pytest.raises(errors.Conflict):
        await client.update(CONFIG_MAPS, "a", stale, namespace="default")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace="default", uid="another")
    with pytest.raises(errors.Refused) as caught:
        await client.create(CONFIG_MAPS, {"metadata": {"name": "Not_A_Name"}}, namespace="default")
    assert caught.value.details["causes"][0]["field"] == "metadata.name"
    with pytest.raises(errors.NotFound):
        await client.list(resource("apps.example.com", "v1", "things"))
    with pytest.raises(errors.Refused):
        await client.patch(CONFIG_MAPS, "a", [{"op": "no"}], namespace="default", kind=JSON_PATCH)


async def test_dry_run_changes_nothing(world):
    await world.client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default", dry_run=True)
    await world.put("b")
    await world.client.delete(CONFIG_MAPS, "b", namespace="default", dry_run=True)
    found = await world.client.list(CONFIG_MAPS, namespace="default")
    assert [one["metadata"]["name"] for one in found.items] == ["b"]


# -- watching ----------------------------------------------------------------------------------------------------------


async def told(changes, count):
    async with asyncio.timeout(10):
        return [short(await anext(changes)) for _ in range(count)]


def short(change):
    return (change.kind.value, change.key.name) + ((change.new["data"]["value"],) if change.new else ())


async def test_what_is_there_is_told_first_and_then_what_happens(world):
    await world.put("a")
    watching = world.watching()
    async with contextlib.aclosing(watching.changes()) as changes:
        assert await told(changes, 2) == [("ADDED", "a", "1"), ("SYNCED", "")]
        await world.put("b")
        await world.put("a", "2")
        await world.drop("b")
        assert await told(changes, 3) == [("ADDED", "b", "1"), ("MODIFIED", "a", "2"), ("DELETED", "b", "1")]
        assert set(watching.objects) == {Key("default", "a")}
        assert watching.failure is None


async def test_after_compaction_nothing_is_missed(world):
    for name in ("stays", "goes", "changes", "comes again"):
        await world.put(name.replace(" ", "-"))
    watching = world.watching(inactivity=0.3)
    async with contextlib.aclosing(watching.changes()) as changes:
        assert len(await told(changes, 5)) == 5
        await anext_idle(changes, 0.1)
    async with contextlib.aclosing(watching.changes()) as changes:  # a watch that is given up, and gone on with
        await world.drop("goes")
        await world.put("changes", "2")
        await world.drop("comes-again")
        await world.put("comes-again", "2")
        await world.put("new")
        world.server.store.compact(world.server.store.revision)
        assert await told(changes, 6) == [
            ("DELETED", "comes-again", "1"),
            ("DELETED", "goes", "1"),
            ("MODIFIED", "changes", "2"),
            ("ADDED", "comes-again", "2"),
            ("ADDED", "new", "1"),
            ("SYNCED", ""),
        ]


async def anext_idle(changes, seconds):
    """Lets a watch be opened in which nothing happens."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await anext(changes)


async def test_a_silent_watch_is_opened_anew(world):
    watching = world.watching(inactivity=1.1)
    async with contextlib.aclosing(watching.changes()) as changes:
        assert await told(changes, 1) == [("SYNCED", "")]
        later = asyncio.create_task(told(changes, 1))
        await asyncio.sleep(2.5)
        await world.put("a")
        assert await later == [("ADDED", "a", "1")]


async def test_what_leaves_the_selection_is_deleted(world):
    labels = {"metadata": {"labels": {"app": "x"}}}
    await world.put("a")
    await world.client.patch(CONFIG_MAPS, "a", labels, namespace="default")
    async with contextlib.aclosing(world.watching(labels="app=x").changes()) as changes:
        assert await told(changes, 2) == [("ADDED", "a", "1"), ("SYNCED", "")]
        await world.client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"app": None}}}, namespace="default")
        change = await anext(changes)
        assert (change.kind, change.key) == (Kind.DELETED, Key("default", "a"))


async def test_a_closed_client_says_so(world):
    world.transport.close()
    with pytest.raises(errors.Unavailable):
        await world.client.get(CONFIG_MAPS, "a", namespace="default")
