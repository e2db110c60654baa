"""Watches, by requests in virtual time."""

import asyncio
import json

import pytest
from support.lab.config_maps import MAPS, lab

from lastcall_lab.apiserver.registry.watches import WatchSchedule

INF = float("inf")


class Watch:
    """One open watch; ``events`` are (type, name or code)."""

    def __init__(self, maps, query="", path=MAPS, accept="application/json"):
        self.maps, self.query, self.path, self.accept = maps, query, path, accept
        self.events, self.objects, self.over = [], [], None

    async def __aenter__(self):
        target = f"{self.path}?{self.query}"
        status, headers, self.stream = await self.maps.api.ask("GET", target, {"accept": self.accept}, b"", None)
        assert status == 200, self.stream
        assert headers["content-type"] == "application/json"
        self._reading = asyncio.create_task(self._read())
        await settled()
        return self

    async def __aexit__(self, *_):
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self):
        async for line in self.stream:
            event = json.loads(line)
            obj = event["object"]
            self.objects.append(obj)
            self.events.append((event["type"], obj.get("code") or obj["metadata"].get("name", "")))
        self.over = asyncio.get_running_loop().time()

    async def heard(self):
        """What has come since this was asked last."""
        await settled()
        events, self.events = self.events, []
        return events


class Disk:
    """A journal whose changes are durable when the test says so."""

    def __init__(self, store):
        self.store, self.reached, self.moved = store, store.revision, asyncio.Condition()
        store.journal = self

    def append(self, change):
        pass

    async def wait_durable(self, revision):
        async with self.moved:
            await self.moved.wait_for(lambda: self.reached >= revision)

    def is_lost(self, revision):
        return False

    async def catches_up(self):
        async with self.moved:
            self.reached = self.store.revision
            self.moved.notify_all()


async def settled():
    await asyncio.sleep(0.001)


async def patch(maps, name, **labels):
    headers = {"content-type": "application/merge-patch+json"}
    body = json.dumps({"metadata": {"labels": labels}}).encode()
    status, _, answer = await maps.api.ask("PATCH", f"{MAPS}/{name}", headers, body, None)
    assert status == 200, answer


@lab
async def test_what_enters_and_leaves_a_selection(maps):
    since = await maps.create("a", app="x")
    async with Watch(maps, f"watch=1&labelSelector=app%3Dx&resourceVersion={since}") as watch:
        await maps.create("b", app="y")
        assert await watch.heard() == []
        await patch(maps, "b", app="x")
        await patch(maps, "b", more="z")
        await patch(maps, "b", app="y")
        await maps.remove("b")
        await maps.remove("a")
        assert await watch.heard() == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b"), ("DELETED", "a")]
        left = watch.objects[2]["metadata"]
        assert left["labels"] == {"app": "x", "more": "z"}  # as it was, with the revision of the change
        revisions = [int(obj["metadata"]["resourceVersion"]) for obj in watch.objects]
        assert revisions == sorted(set(revisions))


@lab
async def test_where_a_watch_begins(maps):
    first = await maps.create("a")
    await maps.create("b")
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    for query, expected in [
        ("", ["a", "b"]),
        ("resourceVersion=0", ["a", "b"]),
        (f"resourceVersion={first}", ["b"]),
        (initial, ["a", "b"]),
        (f"{initial}&resourceVersion={first}", ["a", "b"]),
        (initial.replace("true", "false"), []),
        (f"{initial.replace('true', 'false')}&resourceVersion={first}", ["b"]),
    ]:
        async with Watch(maps, f"watch=true&{query}") as watch:
            assert await watch.heard() == [("ADDED", name) for name in expected], query


@lab
async def test_initial_events_end_with_a_bookmark(maps):
    await maps.create("a")
    async with Watch(maps, "watch=1&allowWatchBookmarks=true") as watch:
        assert await watch.heard() == [("ADDED", "a"), ("BOOKMARK", "")]
        bookmark = watch.objects[1]
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert (bookmark["kind"], int(bookmark["metadata"]["resourceVersion"])) == (
            "ConfigMap",
            maps.api.server.store.revision,
        )


@lab
async def test_a_watch_of_the_future(maps):
    now = await maps.create("a")
    async with Watch(maps, f"watch=1&resourceVersion={now + 1}") as watch:
        await maps.create("b", "c")
        assert await watch.heard() == [("ADDED", "c")]
    query = f"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={now + 9}"
    async with Watch(maps, query) as watch:
        assert await watch.heard() == [("ERROR", 504)]


@lab
async def test_a_watch_of_the_future_hears_of_no_revision_before_it(maps):
    """A client that knew more than a server which was restored would take up what it has missed as heard."""
    now = await maps.create("a")
    async with Watch(maps, f"watch=1&allowWatchBookmarks=true&resourceVersion={now + 2}") as watch:
        await asyncio.sleep(61)
        assert await watch.heard() == []
        await maps.create("b", "c")
        await asyncio.sleep(61)
        assert await watch.heard() == [("BOOKMARK", "")]


@lab
async def test_what_is_compacted_is_an_event_of_the_stream(maps):
    since = await maps.create("a")
    await maps.create("b")
    maps.api.compact()
    async with Watch(maps, f"watch=1&resourceVersion={since}") as watch:
        assert await watch.heard() == [("ERROR", 410)]
        assert watch.objects[0]["message"] == f"too old resource version: {since} ({since + 1})"
        assert watch.over is not None


@lab
async def test_a_reader_that_is_too_slow_is_ended(maps):
    maps.api.server.store.history = 10
    await maps.create("a")
    target = f"{MAPS}?watch=1&resourceVersion={maps.api.server.store.revision}"
    _, _, stream = await maps.api.ask("GET", target, {}, b"", None)
    for number in range(1100):
        await patch(maps, "a", n=str(number))
    events = [json.loads(line) async for line in stream]
    assert [event["type"] for event in events] == ["ERROR"]
    assert events[0]["object"]["reason"] == "Expired"


@lab
async def test_a_watch_ends_when_its_time_is_over(maps):
    async with Watch(maps, "watch=1&timeoutSeconds=7&allowWatchBookmarks=1") as watch:
        await asyncio.sleep(20)
        assert watch.over == pytest.approx(7, abs=0.01)
        assert [kind for kind, _ in watch.events] == ["BOOKMARK"] * 3
    async with Watch(maps, "watch=1") as endless:
        await asyncio.sleep(1790)
        assert endless.over is None
        await asyncio.sleep(1820)
        assert endless.over is not None


@lab
async def test_bookmarks_come_every_minute_and_tell_how_far_the_reader_has_come(maps):
    query = f"watch=1&allowWatchBookmarks=1&timeoutSeconds=200&resourceVersion={maps.api.server.store.revision}"
    async with Watch(maps, query) as watch:
        await asyncio.sleep(59)
        now = await maps.create("a")
        assert await watch.heard() == [("ADDED", "a")]
        await asyncio.sleep(2)
        assert await watch.heard() == [("BOOKMARK", "")]
        assert watch.objects[-1]["metadata"] == {"resourceVersion": str(now)}
        await asyncio.sleep(138)
        assert await watch.heard() == [("BOOKMARK", "")] * 3


@lab
async def test_nothing_is_told_before_it_is_durable(maps):
    disk = Disk(maps.api.server.store)
    async with Watch(maps, "watch=1") as watch:
        making = asyncio.create_task(maps.create("a"))
        assert await watch.heard() == []
        assert not making.done()
        await disk.catches_up()
        assert await watch.heard() == [("ADDED", "a")]
        await making


@lab
async def test_a_bookmark_never_tells_more_than_the_events_before_it(maps):
    """What happens while a bookmark waits for the disk comes after it."""
    disk = Disk(maps.api.server.store)
    query = f"watch=1&allowWatchBookmarks=1&timeoutSeconds=200&resourceVersion={disk.reached}"
    async with Watch(maps, query) as watch:
        await asyncio.sleep(59)
        body = {"metadata": {"name": "elsewhere"}}
        writes = [asyncio.create_task(maps.ask("POST", "/api/v1/namespaces", body))]
        await settled()
        known = maps.api.server.store.revision
        await asyncio.sleep(2)
        writes.append(asyncio.create_task(maps.create("a")))
        assert await watch.heard() == []
        await disk.catches_up()
        assert await watch.heard() == [("BOOKMARK", ""), ("ADDED", "a")]
        assert watch.objects[0]["metadata"] == {"resourceVersion": str(known)}
        await asyncio.gather(*writes)


@lab
async def test_old_paths(maps):
    await maps.create("a", "b")
    old = MAPS.replace("/v1/", "/v1/watch/")
    async with Watch(maps, path=old) as every, Watch(maps, path=f"{old}/a") as one:
        await patch(maps, "b", x="y")
        await patch(maps, "a", x="y")
        assert await every.heard() == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("MODIFIED", "a")]
        assert await one.heard() == [("ADDED", "a"), ("MODIFIED", "a")]
    status, body = await maps.refused("fieldSelector=metadata.name%3Db", f"{old}/a")
    assert (status, body["message"]) == (400, "fieldSelector metadata.name doesn't match requested name")
    status, body = await maps.ask("GET", f"{MAPS}/a?watch=1")
    assert (status, body["kind"]) == (200, "ConfigMap")  # the path of an object has no watch


@lab
async def test_other_forms(maps):
    await maps.create("a")
    form = "application/json;as=%s;g=meta.k8s.io;v=v1"
    async with (
        Watch(maps, "watch=1&allowWatchBookmarks=1", accept=form % "PartialObjectMetadata") as partial,
        Watch(maps, "watch=1", accept=form % "Table") as table,
    ):
        await maps.create("b")
        await settled()
        assert {obj["kind"] for obj in partial.objects} == {"PartialObjectMetadata"}
        assert await partial.heard() == [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")]
        assert [bool(obj["columnDefinitions"]) for obj in table.objects] == [True, False]
        assert [obj["rows"][0]["cells"][0] for obj in table.objects] == ["a", "b"]
    status, body = await maps.ask("GET", f"{MAPS}?watch=1", accept="application/yaml")
    assert (status, body["reason"]) == (406, "NotAcceptable")


@lab
async def test_many_readers_see_the_same(maps):
    watches = [Watch(maps, "watch=1") for _ in range(30)]
    for watch in watches:
        await watch.__aenter__()
    await maps.create("a", "b")
    await maps.remove("a")
    for watch in watches:
        assert await watch.heard() == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
        await watch.__aexit__()


@pytest.mark.parametrize(
    ("seconds", "initial", "expected"),
    [
        (3, True, [0.5, 1]),
        (5, True, [0.5, 3]),
        (5, False, [3]),
        (2, False, []),
        (100, False, [60, 98]),
        (150, True, [0.5, 60.5, 120.5, 148]),
    ],
)
def test_when_bookmarks_are_due(seconds, initial, expected):
    table = WatchSchedule(1000, 1000 + seconds, bookmarks=True, initial=initial)
    due = []
    while table.bookmark < INF:
        due.append(table.bookmark - 1000)
        table.schedule_bookmark(table.bookmark)
    assert due == expected
    assert WatchSchedule(0, 100, bookmarks=False, initial=initial).bookmark == INF
