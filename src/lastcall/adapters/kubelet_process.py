"""The kubelet that runs on a host, found by its process; ``root`` is where proc and the kubelet's files lie."""

import os
from collections.abc import Sequence
from pathlib import Path

from lastcall.adapters.host_files import read, read_all
from lastcall.adapters.probes import known
from lastcall.host import File, Kubelet
from lastcall.model import decode
from lastcall.names import KUBELET_STATE_FILE

_ROOT_DIR = "/var/lib/kubelet"
"""The default of --root-dir."""

_START_TIME = 19
"""Where a process's start stands in its stat, counted from behind its name (proc_pid_stat(5): field 22)."""


def find(root: Path) -> Kubelet | None:
    """The kubelet with the lowest pid; None if none runs."""
    for directory in sorted((root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if (directory / "comm").read_text().strip() == "kubelet":
                return _describe(root, directory)
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return None


def manifests(root: Path, arguments: Sequence[str], config: Sequence[File]) -> tuple[File, ...]:
    """The manifests of static pods, wherever the flag or else the last configuration file puts them."""
    path = _flag(arguments, "pod-manifest-path")
    for file in config if not path else ():
        for document in decode.documents(file.data, file.path):
            if isinstance(document, dict):
                path = str(document.get("staticPodPath") or path)
    return read_all(_below(root, path)) if path else ()


def _describe(root: Path, directory: Path) -> Kubelet:
    arguments = tuple((directory / "cmdline").read_text(errors="replace").split("\0")[:-1])
    return Kubelet(
        pid=int(directory.name),
        started=_started(root, directory),
        arguments=arguments,
        config=known(lambda: _config(root, arguments)),
        state=known(lambda: _state(root, arguments)),
    )


def _started(root: Path, directory: Path) -> float:
    ticks = int((directory / "stat").read_text().rpartition(")")[2].split()[_START_TIME])
    times = dict(line.split(maxsplit=1) for line in (root / "proc/stat").read_text().splitlines())
    return int(times["btime"]) + ticks / os.sysconf("SC_CLK_TCK")


def _config(root: Path, arguments: Sequence[str]) -> tuple[File, ...]:
    """The file of --config, then those of --config-dir that end in .conf, by name (kubelet drop-ins)."""
    main, directory = _flag(arguments, "config"), _flag(arguments, "config-dir")
    files = [_below(root, main)] if main else []
    if directory:
        files += sorted(_below(root, directory).rglob("*.conf"))
    return tuple(read(file) for file in files)


def _state(root: Path, arguments: Sequence[str]) -> File | None:
    try:
        return read(_below(root, _flag(arguments, "root-dir") or _ROOT_DIR) / KUBELET_STATE_FILE)
    except FileNotFoundError:
        return None


def _flag(arguments: Sequence[str], name: str) -> str:
    """The last value of ``--name=value`` or ``--name value``, "" if there is none."""
    value = ""
    for index, argument in enumerate(arguments):
        if argument == f"--{name}":
            value = "".join(arguments[index + 1 : index + 2])
        elif argument.startswith(f"--{name}="):
            value = argument.partition("=")[2]
    return value


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
