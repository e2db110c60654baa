"""Storage of volumes: as directories, or in memory for virtual time, where no file may be touched."""

import asyncio
import re
import shutil
from pathlib import Path
from typing import Protocol

from lastcall.errors import InvalidInput, Unavailable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class VolumeStore(Protocol):
    """Volumes by their handles, with a path for each node's access. All methods are idempotent.

    Raises InvalidInput for a handle that cannot be the name of a directory, Unavailable for a missing volume or access
    path.
    """

    async def make(self, handle: str) -> None:
        """Makes an empty volume, unless it exists."""
        ...

    async def remove(self, handle: str) -> None:
        """Removes a volume with all of its files."""
        ...

    async def open(self, handle: str, node: str) -> None:
        """Opens the node's access path to the volume."""
        ...

    async def shut(self, handle: str, node: str) -> None:
        """Closes that path: opening a file through it fails from now on. Open files stay open."""
        ...

    async def link(self, handle: str, node: str, path: Path) -> None:
        """Makes the node's access path appear at ``path``."""
        ...

    async def unlink(self, path: Path) -> None:
        """Removes whatever is at ``path``."""
        ...

    async def append(self, handle: str, node: str, name: str, line: bytes) -> None:
        """Appends a line to a file through a node's access path."""
        ...

    async def read(self, handle: str, name: str) -> bytes:
        """Reads a whole file of a volume; empty if there is none."""
        ...


class DirectoryVolumes:
    """A volume is ``root/HANDLE``, an access path the symbolic link ``root/.nodes/NODE/HANDLE``."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def make(self, handle: str) -> None:
        """Makes the directory and those above it."""
        await asyncio.to_thread(self._volume_path(handle).mkdir, parents=True, exist_ok=True)

    async def remove(self, handle: str) -> None:
        """Removes the tree."""
        await asyncio.to_thread(shutil.rmtree, self._volume_path(handle), ignore_errors=True)

    async def open(self, handle: str, node: str) -> None:
        """Makes the link."""
        await asyncio.to_thread(_replace_link, self._door_path(handle, node), self._volume_path(handle))

    async def shut(self, handle: str, node: str) -> None:
        """Removes it."""
        await asyncio.to_thread(self._door_path(handle, node).unlink, missing_ok=True)

    async def link(self, handle: str, node: str, path: Path) -> None:
        """Makes a link to the link, so that it dangles while the access path is closed."""
        await asyncio.to_thread(_replace_link, path, self._door_path(handle, node))

    async def unlink(self, path: Path) -> None:
        """Removes it."""
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def append(self, handle: str, node: str, name: str, line: bytes) -> None:
        """Opens the file for each line."""
        await asyncio.to_thread(_append_line, self._door_path(handle, node), check_name(name), line)

    async def read(self, handle: str, name: str) -> bytes:
        """Reads."""
        return await asyncio.to_thread(_file_content, self._volume_path(handle), check_name(name))

    def _volume_path(self, handle: str) -> Path:
        return self._root / check_name(handle)

    def _door_path(self, handle: str, node: str) -> Path:
        return self._root / ".nodes" / check_name(node) / check_name(handle)


class InMemoryVolumes:
    """Volumes in memory, without any files."""

    def __init__(self) -> None:
        self._volumes: dict[str, dict[str, bytes]] = {}
        self._doors: set[tuple[str, str]] = set()

    async def make(self, handle: str) -> None:
        """Remembers it."""
        self._volumes.setdefault(check_name(handle), {})

    async def remove(self, handle: str) -> None:
        """Forgets it."""
        self._volumes.pop(check_name(handle), None)

    async def open(self, handle: str, node: str) -> None:
        """Remembers it."""
        self._doors.add((check_name(handle), check_name(node)))

    async def shut(self, handle: str, node: str) -> None:
        """Forgets it."""
        self._doors.discard((check_name(handle), check_name(node)))

    async def link(self, handle: str, node: str, path: Path) -> None:
        """Does nothing: there are no files."""

    async def unlink(self, path: Path) -> None:
        """Does nothing: there are no files."""

    async def append(self, handle: str, node: str, name: str, line: bytes) -> None:
        """Adds it."""
        if (check_name(handle), check_name(node)) not in self._doors or handle not in self._volumes:
            raise _missing_volume(handle)
        files = self._volumes[handle]
        files[check_name(name)] = files.get(name, b"") + line + b"\n"

    async def read(self, handle: str, name: str) -> bytes:
        """Reads."""
        if check_name(handle) not in self._volumes:
            raise _missing_volume(handle)
        return self._volumes[handle].get(check_name(name), b"")


def check_name(name: str) -> str:
    """Returns the name if it can be the name of one directory; otherwise raises InvalidInput."""
    if not _NAME.fullmatch(name):
        why = "must consist of letters, digits, '.', '_' and '-' and begin with a letter or digit (128 at most)"
        raise InvalidInput("volume", [f"name: {name!r}: {why}"])
    return name


def _missing_volume(handle: str) -> Unavailable:
    return Unavailable(f"volume {handle} is not there")


def _replace_link(path: Path, target: Path) -> None:
    """Replaces the link atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(path)


def _append_line(directory: Path, name: str, line: bytes) -> None:
    if not directory.is_dir():
        raise _missing_volume(directory.name)
    with (directory / name).open("ab") as file:
        file.write(line + b"\n")


def _file_content(directory: Path, name: str) -> bytes:
    if not directory.is_dir():
        raise _missing_volume(directory.name)
    file = directory / name
    return file.read_bytes() if file.exists() else b""
