"""A lock as logind's is one, and who holds it."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.host.logind import eventually

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind import holder_process
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper

CLOCK = SystemClock()


class Lock:
    """A FIFO, as logind's lock is one; ``gone`` when the last copy of its writing end is closed."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.inode = os.fstat(self.writer).st_ino

    def gone(self):
        try:
            return os.read(self.reader, 1) == b""
        except BlockingIOError:
            return False

    def holders(self):
        """The processes that have the writing end, as often as they have it."""
        found = []
        for link in open_files():
            try:
                if str(link.readlink()) == f"pipe:[{self.inode}]" and not is_reader(link):
                    found.append(int(link.parts[2]))
            except OSError:
                pass
        return sorted(found)


def open_files():
    """The links of all descriptors of all processes. Processes that end meanwhile are passed over."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield from list((process / "fd").iterdir())
        except OSError:
            pass


def is_reader(link):
    flags = (link.parent.parent / "fdinfo" / link.name).read_text().split("flags:")[1].split()[0]
    return int(flags, 8) & os.O_ACCMODE == os.O_RDONLY


@pytest.fixture(name="lock")
def a_lock():
    lock = Lock()
    yield lock
    os.close(lock.reader)


@pytest.fixture
def ended_with_test():
    """Has a process ended with the test, whatever becomes of the test; gives back its number."""
    descriptors = []

    def add(pid):
        descriptors.append(os.pidfd_open(pid))
        return pid

    yield add
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


@pytest.fixture
def hang(ended_with_test):
    """Stops a process; it is ended with the test."""
    return lambda pid: os.kill(ended_with_test(pid), signal.SIGSTOP)


async def gone(lock, seconds=60.0):
    async def read():
        return lock.gone()

    return await eventually(read, True, seconds=seconds)


# -- who keeps it ------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def patience(request, monkeypatch):
    """A holder on a busy machine is not taken for one that hangs, but where it does."""
    if "hangs" not in request.node.name:
        monkeypatch.setattr(holder_process, "ANSWER_SECONDS", 60.0)


@pytest.fixture(name="keep")
async def a_keeper(tmp_path):
    """A keeper that is released at the end."""
    keep = HolderProcessKeeper(tmp_path, CLOCK)
    yield keep
    await keep.release()


AGENT = """
import asyncio, os, signal, sys
from pathlib import Path
from lastcall.adapters.logind import holder_process
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.adapters.logind.session import SystemLogind

async def main(directory, lock, deadline, patience, program):
    holder_process.ANSWER_SECONDS = 60.0
    if program:
        holder_process._PROGRAM = Path(program)
    keeper = HolderProcessKeeper(Path(directory), SystemClock(), patience=float(patience))
    if lock.isdecimal():
        lock = int(lock)
    else:
        session = await SystemLogind(lock).open()
        lock = await session.take_lock("because")
    await keeper.keep_lock(lock)
    if not program:
        await keeper._holder.ask("give")  # until it has begun to answer, the kernel names this process in its place
    if deadline:
        await keeper.set_deadline(float(deadline))
    print("kept", flush=True)
    await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


def killed_agent(directory, lock, deadline="", patience=60.0, program=""):
    """An agent that keeps the lock (a descriptor, or logind's at this address) and is killed.

    Its holder answers; but one that runs another ``program`` may be anywhere on its way to that.
    """
    line = [sys.executable, "-c", AGENT, str(directory), str(lock), deadline, str(patience), str(program)]
    descriptors = [lock] if isinstance(lock, int) else []
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, pass_fds=descriptors) as agent:
        assert agent.stdout.readline() == "kept\n"
        agent.kill()
    if descriptors:
        os.close(lock)
