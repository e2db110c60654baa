"""The kubelet process of a host; ``root`` is the directory that contains proc and the kubelet's files."""

import os
from collections.abc import Sequence
from pathlib import Path

from lastcall.adapters.doctor.file_facts import read_regular_file, read_regular_files
from lastcall.adapters.doctor.probes import run_probe
from lastcall.adapters.host.kubelet_process import KubeletProcess, find_kubelet_process, flag_value, path_below
from lastcall.doctor.facts import HostFile, KubeletFacts
from lastcall.model import decoding
from lastcall.names import KUBELET_STATE_FILE

_ROOT_DIR = "/var/lib/kubelet"
"""The default of --root-dir."""

_START_TIME = 19
"""Index of the start time in a process's stat, counted after its name (proc_pid_stat(5): field 22)."""


def find_kubelet(root: Path) -> KubeletFacts | None:
    """The kubelet with the lowest pid; None if none runs."""
    process = find_kubelet_process(root)
    try:
        return _describe_kubelet(root, process) if process else None
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has just ended


def read_static_manifests(root: Path, arguments: Sequence[str], config: Sequence[HostFile]) -> tuple[HostFile, ...]:
    """Reads the manifests of static pods from the place that the flag or else the last configuration file names."""
    path = flag_value(arguments, "pod-manifest-path")
    for file in config if not path else ():
        for document in decoding.parse_documents(file.data, file.path):
            if isinstance(document, dict):
                path = str(document.get("staticPodPath") or path)
    return read_regular_files(path_below(root, path)) if path else ()


def _describe_kubelet(root: Path, process: KubeletProcess) -> KubeletFacts:
    arguments = process.arguments
    return KubeletFacts(
        pid=int(process.directory.name),
        started=_start_time(root, process.directory),
        arguments=arguments,
        config=run_probe(lambda: _config_files(root, arguments)),
        state=run_probe(lambda: _shutdown_state(root, arguments)),
    )


def _start_time(root: Path, directory: Path) -> float:
    ticks = int((directory / "stat").read_text().rpartition(")")[2].split()[_START_TIME])
    times = dict(line.split(maxsplit=1) for line in (root / "proc/stat").read_text().splitlines())
    return int(times["btime"]) + ticks / os.sysconf("SC_CLK_TCK")


def _config_files(root: Path, arguments: Sequence[str]) -> tuple[HostFile, ...]:
    """The file of --config, then those of --config-dir that end in .conf, by name (kubelet drop-ins)."""
    main, directory = flag_value(arguments, "config"), flag_value(arguments, "config-dir")
    files = [path_below(root, main)] if main else []
    if directory:
        files += sorted(path_below(root, directory).rglob("*.conf"))
    return tuple(read_regular_file(file) for file in files)


def _shutdown_state(root: Path, arguments: Sequence[str]) -> HostFile | None:
    try:
        return read_regular_file(path_below(root, flag_value(arguments, "root-dir") or _ROOT_DIR) / KUBELET_STATE_FILE)
    except FileNotFoundError:
        return None
