"""The lab's data in a file: nothing that was acknowledged or shown is lost when the process is killed."""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.storage import database
from lastcall_lab.apiserver.storage.database import FILE, Database
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values.request import Request

MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SUPPORT = Path(__file__).parents[2] / "support"
WRITER, SMALL_DISK = SUPPORT / "lab/persistent_writer.py", SUPPORT / "lab/small_disk_server.py"


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
                stored = server.store.get(StorageKey("configmaps", "default", name))
                if stored is None:  # its deletion was under way, and got there
                    assert last[name.split("-")[0]] == name
                    del there[name]
                else:
                    assert stored.to_object()["metadata"]["resourceVersion"] == revision == str(stored.revision)
            assert not [name for name in gone if server.store.get(StorageKey("configmaps", "default", name))]
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
        await server.store.wait_durable(server.store.revision)
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
        await server.store.wait_durable(server.store.revision)
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


# -- a full disk -------------------------------------------------------------------------------------------------------


def fill(server, pages=2):
    """No more than so many pages are left in the file."""
    connection = server.store.journal._connection
    there = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {there + pages}")


def make_room(server):
    server.store.journal._connection.execute("PRAGMA max_page_count = 1000000")


async def put(server, name, size):
    body = json.dumps({"metadata": {"name": name}, "data": {"x": "z" * size}}).encode()
    response = await server.handle(Request.of("PUT", f"{MAPS}/{name}", body=body))
    return response.status


async def test_a_full_disk_refuses_writes_and_nothing_else(tmp_path):
    async with opened(tmp_path) as server:
        _, before = await create(server, "before", 100)
        await create(server, "small")
        fill(server)
        code, answer = await create(server, "large", 100_000)
        assert code == 500
        assert answer["message"] == f"{tmp_path / FILE} cannot be written: database or disk is full"
        assert (await get(server, "large"))[0] == 404, "what is not on the disk is not shown"
        assert await put(server, "before", 100_000) == 500
        code, now = await get(server, "before")
        assert (code, now["data"]) == (200, before["data"])
        assert {one["metadata"]["name"] for one in (await get(server))[1]["items"]} == {"before", "small"}
        make_room(server)
        assert (await create(server, "large", 100_000))[0] == 201
        assert await put(server, "before", 100_000) == 200
    async with opened(tmp_path) as server:
        assert (await get(server, "large"))[0] == 200
        assert (await get(server, "before"))[1]["data"]["x"] == "z" * 100_000


async def test_what_waits_behind_a_write_that_fails_is_refused_with_it(tmp_path, monkeypatch):
    """The file has neither, and says so too when it is opened again: what waits may build on what has failed."""
    go, write = threading.Event(), database._write

    def full(*_):
        monkeypatch.setattr(database, "_write", write)
        go.wait(60)
        raise sqlite3.OperationalError("database or disk is full")

    async def check(server):
        assert (await get(server, "there"))[1]["data"]["x"] == "y" * 10
        assert {one["metadata"]["name"] for one in (await get(server))[1]["items"]} == {"there", "after"}

    async with opened(tmp_path) as server:
        await create(server, "there")
        journal = server.store.journal
        monkeypatch.setattr(database, "_write", full)
        first = asyncio.create_task(put(server, "there", 20))
        while journal._waiting or journal._writing.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        behind = [asyncio.create_task(put(server, "there", 30)), asyncio.create_task(put(server, "there", 40))]
        other = asyncio.create_task(create(server, "other"))
        while len(journal._waiting) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
        go.set()
        assert [await first, *[await one for one in behind], (await other)[0]] == [500] * 4
        assert (await create(server, "after"))[0] == 201
        await check(server)
    async with opened(tmp_path) as server:
        await check(server)


async def test_a_transaction_that_could_not_be_rolled_back_is_rolled_back_by_the_next_write(tmp_path):
    async with opened(tmp_path) as server:
        await create(server, "a")
        connection = server.store.journal._connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM objects")
        assert (await create(server, "b"))[0] == 201
    async with opened(tmp_path) as server:
        assert {one["metadata"]["name"] for one in (await get(server))[1]["items"]} == {"a", "b"}


async def test_watches_hear_nothing_of_what_was_taken_back(tmp_path):
    async with opened(tmp_path) as server:
        await create(server, "there")
        watch = await server.handle(Request.of("GET", f"{MAPS}?watch=1&resourceVersion={server.store.revision}"))
        event = asyncio.create_task(anext(watch.body))
        fill(server)
        assert (await create(server, "large", 100_000))[0] == 500
        make_room(server)
        assert (await create(server, "after"))[0] == 201
        said = [json.loads(line) for line in (await event).splitlines()]
        while said[-1]["object"]["metadata"]["name"] != "after":
            said += [json.loads(line) for line in (await anext(watch.body)).splitlines()]
        assert not [one for one in said if one["type"] == "ADDED" and one["object"]["metadata"]["name"] == "large"]
        await watch.body.aclose()


async def test_a_deletion_that_cannot_be_written_is_taken_back(tmp_path, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    async with opened(tmp_path) as server:
        await create(server, "a")
        with monkeypatch.context() as patched:
            patched.setattr(database, "_write", full)
            assert (await server.handle(Request.of("DELETE", f"{MAPS}/a"))).status == 500
            assert (await get(server, "a"))[0] == 200
        assert (await server.handle(Request.of("DELETE", f"{MAPS}/a"))).status == 200
        assert (await get(server, "a"))[0] == 404


async def test_a_definition_that_cannot_be_written_is_not_served(tmp_path, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "bells", "singular": "bell", "kind": "Bell", "listKind": "BellList"}
    spec = {"group": "e.com", "scope": "Cluster", "names": names, "versions": [version]}
    async with opened(tmp_path) as server:
        await server.store.wait_durable(server.store.revision)
        with monkeypatch.context() as patched:
            patched.setattr(database, "_write", full)
            assert await post(server, DEFINITIONS, {"metadata": {"name": "bells.e.com"}, "spec": spec}) == 500
            assert (await server.handle(Request.of("GET", "/apis/e.com/v1/bells"))).status == 404
        assert await post(server, DEFINITIONS, {"metadata": {"name": "bells.e.com"}, "spec": spec}) == 201
        assert (await server.handle(Request.of("GET", "/apis/e.com/v1/bells"))).status == 200


def test_a_small_disk_that_is_really_full(tmp_path):
    """A tmpfs of its own, in namespaces: it runs full while eight clients write, and gets room again."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run(["unshare", *user, "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs root or unprivileged user namespaces, to mount a small disk")
    done = subprocess.run(
        ["unshare", *user, "--mount", sys.executable, SMALL_DISK, tmp_path],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("no disk can be mounted here")
    assert done.returncode == 0, done.stderr


# -- who may read it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o277], ids=oct)
async def test_the_files_are_their_owners_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        async with opened(tmp_path) as server:
            await create(server, "a", 100_000)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {FILE: 0o600, f"{FILE}-wal": 0o600}


async def test_the_files_of_an_older_version_become_private(tmp_path):
    async with opened(tmp_path) as server:
        await create(server, "a")
        for path in tmp_path.iterdir():
            path.chmod(0o644)
        leftover = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name, content in leftover.items():  # as a killed lab leaves them
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o644)
    async with opened(tmp_path) as server:
        assert (await get(server, "a"))[0] == 200
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


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
    assert await refused(tmp_path) == "has format 9; this version of lastcall supports formats up to 1"


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
