"""Finds and removes the leftovers of a containerd: shims, processes, mounts, cgroups, sockets."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def shim_processes(socket: Path) -> list[int]:
    """The processes of containerd-shim that belong to the containerd behind ``socket``."""
    return [
        pid for pid, arguments in _all_processes() if "containerd-shim" in arguments[0] and str(socket) in arguments[1:]
    ]


def remove_leftovers(directory: Path, socket: Path, cgroup: str) -> list[int]:
    """Ends and removes all leftovers; returns the processes that had to be killed."""
    sockets = [Path(text.removeprefix("unix://")) for text in _shim_sockets(directory)]
    killed = [*shim_processes(socket), *_processes_in(cgroup)]
    for pid in killed:
        _kill_process(pid)
    _wait_for_end(killed)
    for mount in reversed(mount_points(directory)):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    for path in sockets:
        path.unlink(missing_ok=True)
    remove_cgroup(cgroup)
    return killed


def remove_cgroup(cgroup: str) -> None:
    """Removes the cgroup and its children in every hierarchy; the runtime leaves pods' cgroups to the kubelet."""
    for directory in _cgroup_directories(cgroup):
        try:
            directory.rmdir()
        except OSError:  # gone already, or not empty yet: the next removal gets it
            continue


def cgroup_paths(cgroup: str) -> list[Path]:
    """The paths of the cgroup in every hierarchy where it exists."""
    relative = cgroup.lstrip("/")
    return [path for path in (_CGROUPS / relative, *_CGROUPS.glob(f"*/{relative}")) if path.is_dir()]


def mount_points(directory: Path) -> list[str]:
    """Mount points below a directory, in the order in which they were mounted."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    points = [line.split()[1].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if point.startswith(f"{directory}/")]


def _cgroup_directories(cgroup: str) -> Iterator[Path]:
    for top in cgroup_paths(cgroup):
        inside = [path for path in top.rglob("*") if path.is_dir()]
        yield from sorted(inside, key=lambda path: len(path.parts), reverse=True)
        yield top


def _processes_in(cgroup: str) -> list[int]:
    found: dict[int, None] = {}
    for directory in _cgroup_directories(cgroup):
        try:
            found.update(dict.fromkeys(int(line) for line in (directory / "cgroup.procs").read_text().split()))
        except OSError:
            continue
    return list(found)


def _all_processes() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            yield int(entry.name), arguments


def _shim_sockets(directory: Path) -> list[str]:
    """The shims' sockets, which are always in /run/containerd/s, whatever containerd's configuration says."""
    found = []
    for file in directory.glob("state/io.containerd.runtime.v2.task/*/*/address"):
        try:
            found.append(file.read_text().strip())
        except OSError:
            continue
    return found


def _kill_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _wait_for_end(pids: list[int]) -> None:
    """Polls for the end: they are not this process's children."""
    for _ in range(1500):
        if not any(_is_alive(pid) for pid in pids):
            return
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
