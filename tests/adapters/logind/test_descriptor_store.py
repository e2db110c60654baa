"""The copy of the lock in systemd's descriptor store: on real descriptors, with systemd's end played by a thread."""

import array
import asyncio
import os
import socket
import subprocess
import sys
import threading

import pytest
from support.host.locks import Lock, a_lock, gone  # noqa: F401  (a fixture)
from support.host.logind import eventually

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.descriptor_store import DescriptorStoreKeeper
from lastcall.adapters.systemd import notification
from lastcall.errors import Unavailable

CLOCK = SystemClock()


class Store(threading.Thread):
    """systemd's end of $NOTIFY_SOCKET, as far as sd_notify(3) describes the descriptor store."""

    def __init__(self, path):
        super().__init__()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.stored = []
        self.messages = []
        self.deaf, self._unheard = False, []

    def wake(self):
        """It hears again; what it was told meanwhile is lost."""
        self.deaf = False
        while self._unheard:
            os.close(self._unheard.pop())

    def run(self):
        while True:
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(64))
            descriptors = array.array("i")
            for _, _, content in ancillary:
                descriptors.frombytes(content)
            if data == b"END":
                break
            self.take(dict(line.split("=", 1) for line in data.decode().splitlines()), descriptors)
        for _, descriptor in self.stored:
            os.close(descriptor)
        self.wake()
        self.socket.close()

    def take(self, message, descriptors):
        if self.deaf:
            self._unheard += descriptors
            return
        self.messages.append(message)
        if message.get("FDSTORE") == "1":
            self.stored += [(message["FDNAME"], descriptor) for descriptor in descriptors]
            return
        if message.get("FDSTOREREMOVE") == "1":
            for name, descriptor in self.stored:
                if name == message["FDNAME"]:
                    os.close(descriptor)
            self.stored = [(name, d) for name, d in self.stored if name != message["FDNAME"]]
        for descriptor in descriptors:  # BARRIER=1: closing it is the answer
            os.close(descriptor)


@pytest.fixture(params=["path", "abstract"])
def store(request, tmp_path):
    abstract = request.param == "abstract"
    name = f"lastcall-test-{os.getpid()}"
    store = Store("\0" + name if abstract else str(tmp_path / "notify"))
    store.environ = {"NOTIFY_SOCKET": "@" + name if abstract else str(tmp_path / "notify"), "FDSTORE": "2"}
    store.start()
    yield store
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.sendto(b"END", "\0" + name if abstract else str(tmp_path / "notify"))
    store.join()


async def test_the_store_holds_the_lock_until_it_is_released(store, lock):
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    assert [name for name, _ in store.stored] == ["shutdown-lock"]
    assert store.messages[0] == {"FDSTORE": "1", "FDNAME": "shutdown-lock", "FDPOLL": "0"}
    assert lock.holders() == [os.getpid()] * 2, "ours and the store's, which is a thread of ours here"
    await keep.release()
    assert lock.gone()
    assert store.stored == []


async def test_the_store_changes_one_lock_for_another_without_a_gap(store, lock):
    other = Lock()
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    await keep.keep_lock(other.writer)
    assert lock.gone()
    kinds = [next(iter(message)) for message in store.messages if "BARRIER" not in message]
    assert kinds == ["FDSTORE", "FDSTORE", "FDSTOREREMOVE"]
    await keep.release()
    assert other.gone()
    assert store.stored == []
    os.close(other.reader)


async def test_the_store_is_emptied_at_the_deadline(store, lock):
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    await keep.set_deadline(CLOCK.boottime() + 0.2)
    assert await gone(lock)

    async def held():
        return keep.is_held  # until systemd's answer has come, too

    assert not await eventually(held, False)


async def test_a_release_that_systemd_did_not_confirm_works_the_next_time(store, lock, monkeypatch):
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    store.deaf = True
    monkeypatch.setattr(notification, "_ENOUGH_SECONDS", 0.2)
    with pytest.raises(Unavailable, match="does not answer"):
        await keep.release()
    assert keep.is_held, "the store's copy still holds the machine"
    store.wake()
    monkeypatch.undo()
    await keep.release()
    assert lock.gone()
    assert store.stored == []
    assert not keep.is_held


async def test_a_new_lock_replaces_one_that_systemd_did_not_drop(store, lock, monkeypatch):
    other = Lock()
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    store.deaf = True
    monkeypatch.setattr(notification, "_ENOUGH_SECONDS", 0.2)
    with pytest.raises(Unavailable):
        await keep.release()
    store.wake()
    monkeypatch.undo()
    await keep.keep_lock(other.writer)
    assert lock.gone()
    assert not other.gone()
    await keep.release()
    assert other.gone()
    assert store.stored == []
    os.close(other.reader)


async def test_a_deadline_at_which_systemd_does_not_answer_leaves_the_lock_held(store, lock, monkeypatch, caplog):
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    store.deaf = True
    monkeypatch.setattr(notification, "_ENOUGH_SECONDS", 0.2)
    await keep.set_deadline(CLOCK.boottime())
    async with asyncio.timeout(10):
        while "has not dropped its copy" not in caplog.text:
            await CLOCK.sleep(0.01)
    assert keep.is_held
    store.wake()
    monkeypatch.undo()
    await keep.release()
    assert lock.gone()


RESTARTED = """
import asyncio, os, sys
os.environ["LISTEN_PID"] = str(os.getpid())
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.descriptor_store import DescriptorStoreKeeper

async def main():
    keeper = DescriptorStoreKeeper(SystemClock())
    print(await keeper.recover(), os.get_inheritable(3))
    await keeper.release()

asyncio.run(main())
"""


async def test_the_lock_comes_back_from_the_store_after_a_restart(store, lock):
    keep = DescriptorStoreKeeper(CLOCK, environ=store.environ)
    await keep.keep_lock(lock.writer)
    os.close(keep._own)  # as the kernel does it for a killed process
    assert not lock.gone()
    [(name, descriptor)] = store.stored
    environ = {**os.environ, **store.environ, "LISTEN_FDS": "1", "LISTEN_FDNAMES": name}
    code = f"exec 3<&{descriptor} {descriptor}<&-; exec {sys.executable} -c '{RESTARTED}'"
    line = ["bash", "-c", code]
    run = await asyncio.to_thread(
        subprocess.run, line, env=environ, pass_fds=[descriptor], capture_output=True, text=True
    )
    assert run.stdout == "True False\n", run.stderr
    assert await gone(lock)
    assert store.stored == []


async def test_a_lock_that_systemd_does_not_take_is_kept_all_the_same(tmp_path, lock, caplog):
    keep = DescriptorStoreKeeper(CLOCK, environ={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    await keep.keep_lock(lock.writer)
    assert keep.is_held
    assert "would not survive this process" in caplog.text
    os.close(keep._own)
