"""Facts from files of a host, read without changing anything."""

import errno
import os
import stat
from pathlib import Path

from lastcall.adapters.state.directory import make_writable, refuse_kubelet_directory
from lastcall.doctor.facts import AttemptResult, HostFile, StateDirFacts, WatchdogFacts
from lastcall.errors import LastcallError
from lastcall.names import LOGIND_DROP_IN

_MOST_BYTES = 10 * 2**20
"""The most bytes that the kubelet reads of a manifest (pkg/kubelet/config/file.go)."""

_IN_MEMORY = ("tmpfs", "ramfs")


def read_regular_file(path: Path) -> HostFile:
    """Reads a regular file; OSError for anything else, so that this does not block on a pipe."""
    with open(path, "rb", opener=_open_nonblocking) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return HostFile(path=str(path), data=file.read(_MOST_BYTES))


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_regular_files(path: Path) -> tuple[HostFile, ...]:
    """Reads the file, or the directory's regular files by name without hidden ones, as the kubelet reads manifests."""
    if not path.is_dir():
        return (read_regular_file(path),)
    return tuple(
        read_regular_file(entry)
        for entry in sorted(path.iterdir())
        if entry.is_file() and not entry.name.startswith(".")
    )


def probe_drop_in(root: Path) -> AttemptResult:
    """Checks whether our drop-in for logind could be written; does not write it."""
    path = root / "etc/systemd/logind.conf.d" / LOGIND_DROP_IN
    shown = f"/{path.relative_to(root)}"
    nearest = _nearest_existing(path.parent)
    if os.access(nearest, os.W_OK | os.X_OK):
        return AttemptResult(works=True, message=f"{shown} can be written")
    return AttemptResult(works=False, message=f"{shown} cannot be written by this user, or on this file system")


def probe_state_dir(path: Path) -> StateDirFacts:
    """Checks the agent's state directory, or the file system on which it would be created."""
    nearest = _nearest_existing(path)
    room = os.statvfs(nearest)
    return StateDirFacts(
        usable=_probe_writable(path, nearest),
        free_bytes=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,
        volatile=_file_system_type(nearest) in _IN_MEMORY,
    )


def list_watchdogs(root: Path) -> tuple[WatchdogFacts, ...]:
    """The watchdog devices in sysfs. Drivers that bypass the kernel's watchdog core do not appear there."""
    return tuple(_read_watchdog(entry) for entry in sorted((root / "sys/class/watchdog").glob("watchdog*")))


def _read_watchdog(entry: Path) -> WatchdogFacts:
    def read_attribute(name: str) -> str:
        path = entry / name
        return path.read_text("ascii").strip() if path.exists() else ""

    def seconds(name: str) -> int:
        return int(read_attribute(name)) if read_attribute(name).isdecimal() else 0

    return WatchdogFacts(
        name=entry.name,
        identity=read_attribute("identity"),
        nowayout=read_attribute("nowayout") == "1",
        shortest=seconds("min_timeout"),
        longest=seconds("max_timeout"),
    )


def agent_pid(directory: Path) -> int | None:
    """The process that holds agent.lock (AgentLock); None if it is free, 0 if the pid is unknown.

    Reads /proc/locks: trying the lock itself could refuse an agent that starts at the same moment.
    """
    try:
        descriptor = os.open(directory / "agent.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        file, said = os.fstat(descriptor), os.pread(descriptor, 32, 0).strip()
    finally:
        os.close(descriptor)
    pid = int(said) if said.isdigit() else 0
    device = (os.major(file.st_dev), os.minor(file.st_dev))
    for line in Path("/proc/locks").read_text().splitlines():
        kind, holder, place = _parse_lock(line)
        if kind == "FLOCK" and place[2] == file.st_ino and (place[:2] == device or holder == pid):
            return pid
    return None


def _parse_lock(line: str) -> tuple[str, int, tuple[int, int, int]]:
    """Kind, holder and file (major, minor, inode) of a line of /proc/locks (proc_locks(5)); None for a waiting lock."""
    words = line.split()
    if len(words) < 6 or words[1] == "->":
        return "", 0, (0, 0, 0)
    major, minor, inode = words[5].split(":")
    return words[1], int(words[4]), (int(major, 16), int(minor, 16), int(inode))


def _probe_writable(path: Path, nearest: Path) -> AttemptResult:
    try:
        refuse_kubelet_directory(path)
        if path.is_dir():
            make_writable(path)
            return AttemptResult(works=True, message=f"{path} can be written")
    except LastcallError as error:
        return AttemptResult(works=False, message=str(error))
    if not nearest.is_dir():
        return AttemptResult(works=False, message=f"{path} cannot be made: {nearest} is not a directory")
    if not os.access(nearest, os.W_OK | os.X_OK):
        return AttemptResult(works=False, message=f"{path} cannot be made: {nearest} cannot be written by this user")
    return AttemptResult(works=True, message=f"{path} will be made when the agent starts")


def _nearest_existing(path: Path) -> Path:
    """The path itself or its nearest existing parent."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())


def _file_system_type(path: Path) -> str:
    """The type of the file system; "" if unknown (proc_pid_mountinfo(5))."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, source = line.partition(" - ")
        if place.split()[2] == number:
            return source.split()[0]
    return ""
