"""The lab's data in a file: nothing that was acknowledged or shown is lost when the process is killed."""

import asyncio
import contextlib
import json
import signal
import sqlite3
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from lastcall.adapters.clock import SystemClock
from lastcall.errors import InvalidInput, Unavailable
from lastcall.lab.apiserver import ApiServer, database
from lastcall.lab.apiserver.database import FILE, Database
from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.store import Key

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WRITER = Path(__file__).parent.parent / "support" / "lab_writer.py"


@contextlib.asynccontextmanager
async def opened(directory):
    """A server on the directory's data."""
    data = await Database.open(directory)
    try:
        yield ApiServer(SystemClock(), Random(1), store=data.store)
    finally:
        await data.close()


async def create(server, name, size=10):
    body = json.dumps({"metadata": {"name": name, "labels": {"app": name}}, "data": {"x": "y" * size}}).encode()
    response = await server.handle(Request.of("POST", MAPS, body=body))
    return response.status, json.loads(response.body)


async def post(server, path, obj):
    response = await server.handle(Request.of("POST", path, body=json.dumps(obj).encode()))
    return response.status


async def get(server, name=""):
    response = await server.handle(Request.of("GET", f"{MAPS}/{name}" if name else MAPS))
    return response.status, json.loads(response.body)


# -- killed ------------------------------------------------------------------------------------------------------------


async def life(directory, acknowledgements, writers=8):
    """Lets a process write until it has said so much, and kills it in the middle; its first line, and the others."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, WRITER, directory, str(writers)), stdout=asyncio.subprocess.PIPE
    )
    try:
        first = await process.stdout.readline()
        said = [await process.stdout.readline() for _ in range(acknowledgements)]
    finally:
        process.send_signal(signal.SIGKILL)
        rest, _ = await process.communicate()
    whole = [line for line in (b"".join(said) + rest).decode().splitlines(keepends=True) if line.endswith("\n")]
    return int(first), [line.split() for line in whole]


async def test_a_killed_server_has_lost_nothing_that_it_had_acknowledged(tmp_path):
    there, gone, newest = {}, set(), 0
    for acknowledgements in (40, 1, 160):
        began, said = await life(tmp_path, acknowledgements)
        assert began >= newest
        last = {}
        for name, what in said:
            last[name.split("-")[0]] = name
            if what == "gone":
                gone.add(name)
                del there[name]
            else:
                there[name] = what
                newest = max(newest, int(what))
        async with opened(tmp_path) as server:
            assert server.store.revision >= newest
            for name, revision in list(there.items()):
                stored = server.store.get(Key("configmaps", "default", name))
                if stored is None:  # its deletion was under way, and got there
                    assert last[name.split("-")[0]] == name
                    del there[name]
                else:
                    assert stored.object()["metadata"]["resourceVersion"] == revision == str(stored.revision)
            assert not [name for name in gone if server.store.get(Key("configmaps", "default", name))]
            newest = server.store.revision


# -- within one process ------------------------------------------------------------------------------------------------


async def test_it_goes_on_where_it_was(tmp_path):
    async with opened(tmp_path / "new" / "directory") as server:
        assert (await create(server, "b"))[0] == 201
        _, a = await create(server, "a")
        await server.handle(Request.of("DELETE", f"{MAPS}/b"))
        revision, namespaces = server.store.revision, server.store.objects("namespaces")
    async with opened(tmp_path / "new" / "directory") as server:
        assert server.store.revision == revision
        assert await get(server, "a") == (200, a)
        assert (await get(server, "b"))[0] == 404
        assert server.store.objects("namespaces") == namespaces
        listed = await server.handle(Request.of("GET", f"{MAPS}?labelSelector=app%3Da&fieldSelector=metadata.name%3Da"))
        assert len(json.loads(listed.body)["items"]) == 1
        old = await server.handle(Request.of("GET", f"{MAPS}?watch=1&resourceVersion={revision - 1}"))
        [line] = [line async for line in old.body]
        assert json.loads(line)["object"]["code"] == 410
        assert int((await create(server, "c"))[1]["metadata"]["resourceVersion"]) == revision + 1


async def test_kinds_that_are_defined_are_there_again(tmp_path):
    schema = {"type": "object", "properties": {"size": {"type": "string"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "bells", "singular": "bell", "kind": "Bell", "listKind": "BellList"}
    version["selectableFields"] = [{"jsonPath": ".size"}]
    spec = {"group": "e.com", "scope": "Cluster", "names": names, "versions": [version]}
    bells, bell = "/apis/e.com/v1/bells", {"apiVersion": "e.com/v1", "kind": "Bell"}
    async with opened(tmp_path) as server:
        await post(server, DEFINITIONS, {"metadata": {"name": "bells.e.com"}, "spec": spec})
        assert await post(server, bells, {**bell, "metadata": {"name": "big"}, "size": "9"}) == 201
    async with opened(tmp_path) as server:
        listed = await server.handle(Request.of("GET", f"{bells}?fieldSelector=size%3D9"))
        assert [one["metadata"]["name"] for one in json.loads(listed.body)["items"]] == ["big"]
        assert await post(server, bells, {**bell, "metadata": {"name": "small"}, "size": "1"}) == 201


async def test_many_writers_share_few_syncs(tmp_path):
    async with opened(tmp_path) as server:
        statements = []
        await asyncio.sleep(0)
        await server.store.durable(server.store.revision)
        server.store.journal._connection.set_trace_callback(statements.append)
        answers = await asyncio.gather(*(create(server, f"m{number}") for number in range(100)))
        assert {status for status, _ in answers} == {201}
        assert 1 <= statements.count("COMMIT") <= 10


async def test_nothing_is_told_before_it_is_on_the_disk(tmp_path, monkeypatch):
    go, write = threading.Event(), database._write

    def slow(*arguments):
        go.wait(60)
        write(*arguments)

    async with opened(tmp_path) as server:
        await server.store.durable(server.store.revision)
        watch = await server.handle(Request.of("GET", f"{MAPS}?watch=1&resourceVersion={server.store.revision}"))
        monkeypatch.setattr(database, "_write", slow)
        creating, reading = asyncio.create_task(create(server, "a")), asyncio.create_task(get(server, "a"))
        listing, event = asyncio.create_task(get(server)), asyncio.create_task(anext(watch.body))
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in (creating, reading, listing, event))
        go.set()
        assert ((await creating)[0], (await reading)[0]) == (201, 200)
        assert len((await listing)[1]["items"]) == 1
        assert json.loads(await event)["type"] == "ADDED"
        await watch.body.aclose()


async def test_without_a_file_nothing_is_waited_for():
    server = ApiServer(SystemClock(), Random(1))
    asking = server.handle(Request.of("GET", MAPS))
    with pytest.raises(StopIteration) as answer:
        asking.send(None)
    assert answer.value.value.status == 200


async def test_a_full_disk_is_told_to_everybody(tmp_path):
    async with opened(tmp_path) as server:
        await server.store.durable(server.store.revision)
        pages = server.store.journal._connection.execute("PRAGMA page_count").fetchone()[0]
        server.store.journal._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        code, answer = await create(server, "large", 100_000)
        assert code == 500
        assert answer["message"].endswith(f"{tmp_path / FILE} cannot be written: database or disk is full")
        assert (await get(server, "large"))[0] == 500  # what is not on the disk is not shown
    async with opened(tmp_path) as server:
        assert (await get(server, "large"))[0] == 404
        assert (await create(server, "small"))[0] == 201


# -- files that are not what they should be ----------------------------------------------------------------------------


async def refused(directory):
    with pytest.raises(InvalidInput) as error:
        await Database.open(directory)
    [violation] = error.value.violations
    assert error.value.source == str(directory / FILE)
    return violation


async def test_only_one_lab_uses_a_directory(tmp_path):
    async with opened(tmp_path):
        with pytest.raises(Unavailable, match=f"{FILE} is in use by another lab"):
            await Database.open(tmp_path)
    async with opened(tmp_path):
        pass


async def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / FILE).write_text("something else, and long enough to be looked at " * 50)
    assert "no database at all (file is not a database): move it away" in await refused(tmp_path)
    assert (tmp_path / FILE).read_text().startswith("something else")


def made(directory, *statements):
    with contextlib.closing(sqlite3.connect(directory / FILE)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


async def test_a_database_of_somebody_else(tmp_path):
    made(tmp_path, "CREATE TABLE theirs (x)")
    before = (tmp_path / FILE).read_bytes()
    assert "is a database of another program" in await refused(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


async def test_a_database_of_the_future(tmp_path):
    async with opened(tmp_path):
        pass
    made(tmp_path, "PRAGMA user_version = 9")
    assert await refused(tmp_path) == "has format 9; this version of lastcall knows 1 at most"


@pytest.mark.parametrize("damage", ["half", "page", "object", "table"])
async def test_a_damaged_file(tmp_path, damage):
    async with opened(tmp_path) as server:
        for number in range(30):
            await create(server, f"m{number}", 2000)
    content = (tmp_path / FILE).read_bytes()
    assert len(content) > 5 * 4096
    if damage == "half":
        (tmp_path / FILE).write_bytes(content[: len(content) // 2])
    elif damage == "page":
        (tmp_path / FILE).write_bytes(content[:4096] + b"\xff" * 3 * 4096 + content[4 * 4096 :])
    elif damage == "object":
        made(tmp_path, "UPDATE objects SET data = '{' WHERE name = 'm3'")
    else:
        made(tmp_path, "DROP TABLE state")
    assert "is damaged" in await refused(tmp_path)


async def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be opened: " in await refused(tmp_path / "file" / "below")
