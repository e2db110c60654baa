"""The pods on the disk, and what can go wrong there."""

import asyncio
import logging
import os
import signal
import stat
import subprocess
import sys
import time

import msgspec
import pytest

from lastcall.adapters.state import pod_checkpoint
from lastcall.adapters.state.pod_checkpoint import NAME, PodCheckpoint
from lastcall.aio import OrderedTaskGroup
from lastcall.model.pods import Pod
from lastcall.model.shutdown import ShutdownMode, ShutdownStarted

WRITER = """
import pathlib, sys
from lastcall.adapters.state.directory import replace_file
path = pathlib.Path(sys.argv[1])
print("begun", flush=True)
for number in range(10**9):
    replace_file(path, b'{"pods":[{"metadata":{"name":"a","uid":"%d"}}]}' % number)
"""


def pod(name, priority=0):
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": {"priority": priority}}, Pod)


class Paced:
    """A clock that moves by what was slept; a second takes a millisecond, so that the thread that writes is real."""

    def __init__(self):
        self.slept, self._now = [], 100.0

    def boottime(self):
        return self._now

    def wall(self):
        return 0.0

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await asyncio.sleep(seconds / 1000)
        self._now += seconds


class World:
    def __init__(self, directory):
        self.directory, self.path = directory, directory / NAME
        self.clock, self.pods = Paced(), {"a": pod("a", 5)}
        self.tasks = OrderedTaskGroup()
        self.checkpoint = self.made()

    def made(self):
        return PodCheckpoint(self.directory, self.clock, lambda: self.pods)

    def start(self):
        self.tasks.start(self.checkpoint.run(), "checkpoint")
        self.checkpoint.note_change()

    async def until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end
            await asyncio.sleep(0.002)

    async def until_written(self):
        end = time.monotonic() + 60
        while await self.read() != self.pods:
            assert time.monotonic() < end
            await asyncio.sleep(0.002)

    async def read(self):
        return await asyncio.to_thread(self.made().read)


@pytest.fixture
async def world(tmp_path):
    made = World(tmp_path)
    yield made
    await made.tasks.cancel()


async def test_a_change_is_written_for_its_owner_only_and_read_again(world):
    world.start()
    await world.until(world.path.exists)
    assert await world.read() == world.pods
    assert stat.S_IMODE(world.path.stat().st_mode) == 0o600
    world.pods = {"b": pod("b")}
    world.checkpoint.note_change()
    await world.until_written()
    assert world.clock.slept[0] == pod_checkpoint.SETTLE_SECONDS


async def test_what_has_not_changed_is_not_written_again(world):
    world.start()
    await world.until(world.path.exists)
    first = world.path.stat().st_ino
    world.checkpoint.note_change()
    await world.until(lambda: len(world.clock.slept) == 2)
    await asyncio.sleep(0.1)
    assert world.path.stat().st_ino == first


async def test_nothing_is_written_while_a_shutdown_begins(world):
    began = ShutdownStarted(
        at=0, id="i", node="n", boot_id="b", wall=0, how="", mode=ShutdownMode.ENFORCE, requested=1, granted=1,
        deadline=1, lock=True, phases=(),
    )  # fmt: skip
    world.start()
    await world.until(lambda: world.clock.slept)
    world.checkpoint.record_event(began)  # within the settle time
    begun = world.clock.boottime()
    await world.until(world.path.exists)
    assert world.clock.boottime() >= begun + pod_checkpoint.QUIET_SECONDS
    assert world.clock.slept[1] == pod_checkpoint.QUIET_SECONDS - pod_checkpoint.SETTLE_SECONDS


async def test_without_a_file_nothing_is_known_and_nothing_is_told(world, caplog):
    assert await world.read() == {}
    assert caplog.records == []


WRONG = {
    "empty": (lambda path: path.write_bytes(b""), "truncated"),
    "truncated": (lambda path: path.write_bytes(b'{"pods":[{"metadata":{"na'), "truncated"),
    "other": (lambda path: path.write_bytes(b'{"pods":{}}'), "Expected"),
    "binary": (lambda path: path.write_bytes(bytes(range(256))), "malformed"),
    "writable by others": (lambda path: path.chmod(0o622), "can write it"),
    "another user's": (lambda path: os.chown(path, 4711, 4711), "can write it"),
    "a link": (lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")), "symbolic links"),
    "a directory": (lambda path: (path.unlink(), path.mkdir()), "Is a directory"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "not a file"),
    "endless": (lambda path: os.truncate(path, 2**33), "more than"),
}


@pytest.mark.parametrize("fault", WRONG)
async def test_a_file_that_is_not_to_be_trusted_is_told_and_ignored(world, caplog, fault):
    if fault == "another user's" and os.geteuid():
        pytest.skip("only root may give a file away")
    world.path.write_bytes(b'{"pods":[{"metadata":{"name":"a","uid":"a"}}]}')
    world.path.chmod(0o600)
    assert list(await world.read()) == ["a"]
    spoil, why = WRONG[fault]
    spoil(world.path)
    assert await world.read() == {}
    [record] = caplog.records
    assert str(world.path) in record.getMessage()
    assert why in record.getMessage()


async def test_it_is_readable_by_others_only_until_the_next_write(world):
    world.path.write_bytes(b'{"pods":[]}')
    world.path.chmod(0o644)
    world.start()
    await world.until_written()
    assert stat.S_IMODE(world.path.stat().st_mode) == 0o600


async def test_a_full_disk_is_told_once_and_tried_again(world, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    world.path.write_bytes(b'{"pods":[{"metadata":{"name":"old","uid":"old"}}]}')
    world.path.chmod(0o600)
    full, real, attempts = True, os.fsync, []

    def fsync(descriptor):
        attempts.append(descriptor)
        if full:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    world.start()
    await world.until(lambda: len(attempts) >= 3)
    assert [record.getMessage() for record in caplog.records] == [
        f"the checkpoint of pods cannot be written: {world.path}: No space left on device"
    ]
    assert pod_checkpoint.RETRY_SECONDS in world.clock.slept
    assert list(await world.read()) == ["old"], "the old file stays"
    full = False
    await world.until_written()
    assert len(caplog.records) == 1
    assert [path.name for path in world.directory.iterdir()] == [NAME]


async def test_a_process_that_is_killed_while_it_writes_leaves_a_whole_file(world):
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", WRITER, world.path], stdout=subprocess.PIPE) as writer:
            assert await asyncio.to_thread(writer.stdout.readline) == b"begun\n"
            await asyncio.to_thread(time.sleep, 0.02)
            writer.send_signal(signal.SIGKILL)
    assert len(await world.read()) == 1
    (world.directory / f".tmp-{NAME}left").write_bytes(b"x")
    world.start()
    await world.until_written()
    assert [path.name for path in world.directory.iterdir()] == [NAME], "leftovers are removed"
