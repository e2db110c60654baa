"""The watches of the Kubernetes client: at the lab within the process, at the lab over TLS, at any cluster."""

import asyncio
import contextlib

import pytest

from lastcall import errors
from lastcall.adapters.kube.informer import ChangeKind, ObjectKey
from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, dict_resource


async def told(changes, count):
    async with asyncio.timeout(60):
        return [short(await anext(changes)) for _ in range(count)]


def short(change):
    return (change.kind.value, change.key.name) + ((change.new["data"]["value"],) if change.new else ())


@contextlib.asynccontextmanager
async def listening(cluster, *names, **rest):
    """A watch that goes on while the test does other things: what it tells, and the watch; ``names`` are there."""
    for name in names:
        await cluster.put(name)
    watching, heard = cluster.watching(**rest), asyncio.Queue()

    async def listen():
        async with contextlib.aclosing(watching.changes()) as changes:
            async for change in changes:
                heard.put_nowait(change)

    class Heard:
        def __aiter__(self):
            return self

        async def __anext__(self):
            return await heard.get()

    task = asyncio.create_task(listen())
    try:
        changes = Heard()
        first = await told(changes, len(names) + 1)
        assert first == [*(("ADDED", name, "1") for name in sorted(names)), ("SYNCED", "")]
        await opened(cluster, 1)
        yield changes, watching
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def opened(cluster, count):
    """Until so many watches have been answered."""
    async with asyncio.timeout(60):
        while cluster.line.opened < count:
            await asyncio.sleep(0.01)


async def test_what_is_there_is_told_first_and_then_what_happens(cluster):
    async with listening(cluster, "a") as (changes, watching):
        await cluster.put("b")
        await cluster.put("a", "2")
        await cluster.drop("b")
        assert await told(changes, 3) == [("ADDED", "b", "1"), ("MODIFIED", "a", "2"), ("DELETED", "b", "1")]
        assert set(watching.objects) == {ObjectKey(cluster.namespace, "a")}
        assert watching.failure is None


async def missed(cluster):
    """What happens while nobody looks; what is to be told of it by a list."""
    await cluster.drop("goes")
    await cluster.put("changes", "2")
    await cluster.drop("replaced")
    await cluster.put("replaced", "2")
    await cluster.put("new")


BEFORE = ("changes", "goes", "replaced", "stays")
AS_LISTED = [
    ("DELETED", "goes", "1"),
    ("DELETED", "replaced", "1"),
    ("MODIFIED", "changes", "2"),
    ("ADDED", "new", "1"),
    ("ADDED", "replaced", "2"),
    ("SYNCED", ""),
]
AS_WATCHED = [
    ("DELETED", "goes", "1"),
    ("MODIFIED", "changes", "2"),
    ("DELETED", "replaced", "1"),
    ("ADDED", "replaced", "2"),
    ("ADDED", "new", "1"),
]


async def as_listed(changes):
    """That all that was missed is told as a list tells it: first what is gone, then what is there."""
    heard = await told(changes, len(AS_LISTED))
    assert sorted(heard) == sorted(AS_LISTED)
    assert [kind for kind, *_ in heard] == [kind for kind, *_ in AS_LISTED]


async def test_after_gone_it_lists_again_and_tells_what_was_deleted(cluster):
    async with listening(cluster, *BEFORE) as (changes, watching):
        await cluster.trouble.down()
        await missed(cluster)
        cluster.line.gone = 1
        await cluster.trouble.up()
        await as_listed(changes)
        await cluster.put("stays", "2")
        assert await told(changes, 1) == [("MODIFIED", "stays", "2")]
        assert watching.failure is None


async def test_a_revision_that_the_server_has_forgotten(cluster):
    if cluster.server is None:
        pytest.skip("the API of a cluster cannot take its history away")
    async with listening(cluster, *BEFORE) as (changes, _):
        await cluster.trouble.down()
        await missed(cluster)
        cluster.server.store.compact(cluster.server.store.revision)
        await cluster.trouble.up()
        await as_listed(changes)


async def test_a_server_that_is_restarted_is_watched_on_from_where_it_was(cluster):
    async with listening(cluster, *BEFORE) as (changes, watching):
        await cluster.trouble.down()
        await missed(cluster)
        await asyncio.sleep(0.5)
        await cluster.trouble.up()
        assert await told(changes, 5) == AS_WATCHED
        assert watching.failure is None


async def test_broken_connections_lose_nothing(cluster):
    async with listening(cluster) as (changes, _):
        for number in range(3):
            await cluster.put(f"a{number}")
            await cluster.trouble.cut()
        await cluster.put("b")
        assert await told(changes, 4) == [*(("ADDED", f"a{number}", "1") for number in range(3)), ("ADDED", "b", "1")]


async def test_a_line_that_is_cut_in_its_middle_is_told_once_and_whole(cluster):
    async with listening(cluster, "a") as (changes, _):
        cluster.line.torn = 2
        await cluster.put("a", "2")
        await cluster.put("b")
        assert await told(changes, 2) == [("MODIFIED", "a", "2"), ("ADDED", "b", "1")]
        assert cluster.line.torn == 0


async def test_a_silent_watch_is_opened_anew(cluster):
    async with listening(cluster, inactivity=1.1) as (changes, _):
        cluster.trouble.stall()
        await opened(cluster, 2)
        await cluster.put("a")
        assert await told(changes, 1) == [("ADDED", "a", "1")]


async def test_bookmarks_move_on_where_a_watch_goes_on_from(cluster):
    cluster.line.seconds = 20
    elsewhere = {"metadata": {"name": "other"}, "spec": {"holderIdentity": "x"}}
    async with listening(cluster) as (_, watching):
        begun = cluster.line.watches[0]
        made = await cluster.client.create(LEASES, elsewhere, namespace=cluster.namespace)
        await cluster.put("a")
        await cluster.drop("a")
        patch = {"spec": {"holderIdentity": "y"}}
        await cluster.client.patch(LEASES, "other", patch, namespace=cluster.namespace)
        await opened(cluster, 2)
        assert cluster.line.watches[1] > int(made["metadata"]["resourceVersion"]) > begun
        assert int(watching.revision) >= cluster.line.watches[1]


async def test_the_server_sends_a_bookmark_before_it_ends_a_watch(cluster):
    """A real server sends none that says no more than the revision from which the watch began (``cacheWatcher.process``)."""
    _, revision = await cluster.client.list_raw(CONFIG_MAPS, namespace=cluster.namespace)
    chunks = await cluster.client.watch(CONFIG_MAPS, revision, namespace=cluster.namespace, seconds=20)
    async with asyncio.timeout(60), contextlib.aclosing(chunks):
        await cluster.put("a")
        said = b"".join([chunk async for chunk in chunks])
    assert said.index(b'"type":"ADDED"') < said.index(b'"type":"BOOKMARK"')


async def test_what_leaves_the_selection_is_deleted(cluster):
    await cluster.put("a")
    labels = {"metadata": {"labels": {"app": "x"}}}
    await cluster.client.patch(CONFIG_MAPS, "a", labels, namespace=cluster.namespace)
    async with contextlib.aclosing(cluster.watching(labels="app=x").changes()) as changes:
        assert await told(changes, 2) == [("ADDED", "a", "1"), ("SYNCED", "")]
        off = {"metadata": {"labels": {"app": None}}}
        await cluster.client.patch(CONFIG_MAPS, "a", off, namespace=cluster.namespace)
        change = await anext(changes)
        assert (change.kind, change.key) == (ChangeKind.DELETED, ObjectKey(cluster.namespace, "a"))


async def test_a_watch_of_what_there_is_not_is_an_error(cluster):
    with pytest.raises(errors.NotFound):
        await cluster.client.watch(dict_resource("apps.example.com", "v1", "things"), "1")
