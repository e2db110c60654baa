"""The pods of the bench: their manifests, and what they wrote down."""

import asyncio
import os
import sys
import time
from pathlib import Path

from lastcall_lab.containerd import BUSYBOX

CRITICAL = 2_000_000_000
_STAMP = Path(__file__).with_name("stamp.py")
_STARTING = 120.0
"""Seconds that all pods have to start."""


def _system_directories():
    """What a container needs of the machine in order to run this machine's Python."""
    wanted = [Path("/lib"), Path("/lib64"), Path("/usr"), Path(sys.base_prefix), _STAMP.parent]
    return list(dict.fromkeys(path for path in wanted if path.exists()))


def manifest(name, truth, *, priority=0, in_container):
    """A pod of one container that runs ``stamp.py``."""
    python = os.path.realpath(sys._base_executable)
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": [python, "-I", "-S", str(_STAMP), name, str(truth.path)],
    }
    spec = {"terminationGracePeriodSeconds": 30, "priority": priority, "containers": [container]}
    if in_container:
        paths = [*_system_directories(), truth.path.parent]
        container["volumeMounts"] = [{"name": f"v{i}", "mountPath": str(path)} for i, path in enumerate(paths)]
        spec["volumes"] = [{"name": f"v{i}", "hostPath": {"path": str(path)}} for i, path in enumerate(paths)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def names(count, critical=0):
    """Names with priorities; the last ``critical`` of them are of critical pods."""
    return {f"pod-{i:03d}": CRITICAL if i >= count - critical else 0 for i in range(count)}


class Truth:
    """The file to which the pods append."""

    def __init__(self, directory):
        directory.mkdir()
        self.path = directory / "log"
        self.path.touch()

    def times(self, what):
        """CLOCK_BOOTTIME seconds by pod. A pod that saw the same thing twice fails the measurement."""
        found = {}
        for line in self.path.read_text().splitlines():
            at, pod, seen = line.split()
            if seen == what:
                assert pod not in found, f"{pod} saw {what} twice"
                found[pod] = int(at) / 1e9
        return found

    async def until(self, what, count, seconds=_STARTING):
        """Waits, without much ado, until so many pods have seen it; their times."""
        end = time.monotonic() + seconds
        while len(found := self.times(what)) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(found)} of {count} pods saw {what} within {seconds:g} s")
            await asyncio.sleep(0.1)
        return found
