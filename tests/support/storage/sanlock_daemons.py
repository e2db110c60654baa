"""Private sanlock daemons on one lockspace in a file: each is a host of its own. None of them touches a watchdog."""

import asyncio
import contextlib
import errno
import grp
import os
import pwd
import shutil
from pathlib import Path

import pytest

from lastcall.adapters.host import sanlock
from lastcall.adapters.host.sanlock import Sanlock
from lastcall_lab.fakes.sanlock import FakeLockspace

IO_TIMEOUT = 2
"""Seconds: the lease is renewed every four, and lost after 16 of a disk that is too slow."""

LOCKSPACE = "demo"

PATIENCE = 60.0
"""Seconds for a command of sanlock on a machine that is slow: what it says is tested, not how soon."""

missing = not shutil.which("sanlock") and "the package sanlock is not installed"
"""Why there is none."""


async def run(*command, **environment):
    """What a command prints; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


class Daemon:
    """One host."""

    def __init__(self, directory: Path, storage: Path, host_id: int):
        self.environment = {"SANLOCK_RUN_DIR": str(directory), "SANLOCK_PRIVILEGED": "0"}
        self.leases = Sanlock(environment=self.environment)
        self._directory, self._storage, self._host_id = directory, storage, host_id
        self._place = f"{LOCKSPACE}:{host_id}:{storage}:0"
        self._process = None

    async def start(self):
        self._directory.mkdir(exist_ok=True)
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
        with (self._directory / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *("sanlock", "daemon", "-D", "-w", "0", "-h", "0", "-l", "0"),
                *("-U", user, "-G", group, "-e", f"host{self._host_id}"),
                env={**os.environ, **self.environment},
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(30):
            while not (self._directory / "sanlock.sock").exists():
                await asyncio.sleep(0.05)

    async def join(self):
        """A disk that is too slow for once, or a lockspace that is still being left, makes it fail.

        One that failed may have written its generation by then: what the host has in the end is in ``leases`` alone.
        """
        for _ in range(3):
            with contextlib.suppress(AssertionError):
                await self._join()
                return
            await asyncio.sleep(1)
        await self._join()

    async def _join(self):
        await self._client("add_lockspace", "-s", self._place, "-o", str(IO_TIMEOUT))

    async def leave(self):
        await self._client("rem_lockspace", "-s", self._place)

    async def mark_used(self):
        await self._client("set_config", "-s", LOCKSPACE, "-u", "1")

    async def die(self):
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
            (self._directory / "sanlock.sock").unlink(missing_ok=True)

    async def _client(self, *arguments):
        await run("sanlock", "client", *arguments, **self.environment)


def _direct(path):
    """Whether the file can be opened past the page cache, which a tmpfs of older kernels refuses."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


class RealStorage:
    """The lockspace in a file of a directory."""

    io_timeout = IO_TIMEOUT

    def __init__(self, directory: Path):
        self._directory = directory
        self._file = directory / "lockspace"
        self._daemons = []

    async def open(self):
        self._file.write_bytes(bytes(1 << 20))
        if not _direct(self._file):
            pytest.skip(f"the file system of {self._directory} has no O_DIRECT, by which sanlock reads and writes")
        await run("sanlock", "direct", "init", "-s", f"{LOCKSPACE}:0:{self._file}:0", "-o", str(IO_TIMEOUT))

    async def host(self, host_id):
        daemon = Daemon(self._directory / f"host{host_id}", self._file, host_id)
        self._daemons.append(daemon)
        await daemon.start()
        return daemon

    async def wait(self):
        await asyncio.sleep(0.2)

    async def close(self):
        for daemon in self._daemons:
            await daemon.die()


class FakeHost:
    """A host of the fake with the verbs of a daemon."""

    def __init__(self, host):
        self.leases = self._host = host

    async def join(self):
        self._host.join()

    async def leave(self):
        self._host.leave()

    async def mark_used(self):
        self._host.used = True

    async def die(self):
        self._host.die()


class PretendedStorage:
    """The fake with the verbs of a real lockspace."""

    io_timeout = IO_TIMEOUT

    def __init__(self):
        self._storage = FakeLockspace(LOCKSPACE, IO_TIMEOUT)

    async def host(self, host_id):
        return FakeHost(self._storage.host(host_id, f"host{host_id}"))

    async def wait(self):
        self._storage.advance(1)

    async def close(self):
        """Nothing is open."""


@contextlib.asynccontextmanager
async def storage(kind, directory):
    """A lockspace that nobody has joined; kind is real or fake."""
    opened = PretendedStorage() if kind == "fake" else RealStorage(directory)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sanlock, "SECONDS", PATIENCE)
        try:
            if isinstance(opened, RealStorage):
                await opened.open()
            yield opened
        finally:
            await opened.close()
