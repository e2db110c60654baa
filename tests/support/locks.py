"""A lock as logind's is one, and who holds it."""

import os
from pathlib import Path

import pytest

from support.logind import eventually


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
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            try:
                if str(link.readlink()) == f"pipe:[{self.inode}]" and not is_reader(link):
                    found.append(int(link.parts[2]))
            except OSError:
                pass
        return sorted(found)


def is_reader(link):
    flags = (link.parent.parent / "fdinfo" / link.name).read_text().split("flags:")[1].split()[0]
    return int(flags, 8) & os.O_ACCMODE == os.O_RDONLY


@pytest.fixture(name="lock")
def a_lock():
    lock = Lock()
    yield lock
    os.close(lock.reader)


async def gone(lock, seconds=60.0):
    async def read():
        return lock.gone()

    return await eventually(read, True, seconds=seconds)
