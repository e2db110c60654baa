"""The mount table of this process, /proc/self/mountinfo (pure; proc(5))."""

import re
from collections.abc import Iterable, Iterator

from lastcall.model.base import Facts
from lastcall.model.node_volumes import Filesystem

_ESCAPED = re.compile(r"\\([0-7]{3})")


class MountPoint(Facts, frozen=True):
    """One mount: where, and what of which file system."""

    path: str
    filesystem: Filesystem


def parse_mounts(text: str) -> list[MountPoint]:
    """The mounts of a mountinfo file, in its order. Raises ValueError if a line has too few fields."""
    return [_parse_line(line) for line in text.splitlines()]


def mounts_at(mounts: Iterable[MountPoint], path: str) -> Iterator[MountPoint]:
    """The mounts at this path, one upon the other."""
    return (mount for mount in mounts if mount.path == path)


def mounts_below(mounts: Iterable[MountPoint], path: str) -> Iterator[MountPoint]:
    """The mounts at this path and below."""
    return (mount for mount in mounts if is_below(mount.path, path))


def shares_filesystem(mount: MountPoint, known: Iterable[Filesystem]) -> bool:
    """Whether the mount shows one of these directories of a file system, or a part of one."""
    mine = mount.filesystem
    return any(mine.device == one.device and is_below(mine.root, one.root) for one in known)


def is_below(path: str, directory: str) -> bool:
    """Whether an absolute path is the directory or below it."""
    return path == directory or path.startswith(directory if directory == "/" else f"{directory}/")


def _parse_line(line: str) -> MountPoint:
    fields = line.split(" ")
    if len(fields) < 5:
        raise ValueError(f"this is no line of mountinfo: {line!r}")
    return MountPoint(path=_unescape(fields[4]), filesystem=Filesystem(device=fields[2], root=_unescape(fields[3])))


def _unescape(path: str) -> str:
    """Space, tab, newline and backslash are written in octal."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 8)), path)
