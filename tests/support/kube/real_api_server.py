"""A real etcd and kube-apiserver for a test's own use, from programs that variables name (``real_control_plane``).

As a program this module runs them in a directory, says so on standard output, and ends them when its input ends.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from support.kube import real_control_plane

_READY = "ready"


def why_not():
    """Why there is none; empty if there is one."""
    return real_control_plane.why_not("etcd", "kube-apiserver")


class RealApiServer:
    """``enter`` it, until it is ready. ``directory`` is empty, and has a short name."""

    def __init__(self, directory):
        self._directory = directory

    def __enter__(self):
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._directory], stdin=pipe, stdout=pipe, text=True
        )
        said = self._process.stdout.readline()
        if said.strip() != _READY:
            self.__exit__()
            raise AssertionError(f"kube-apiserver does not start: {said}")
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def kubeconfig(self, who):
        """The file with which ``admin`` or ``kubelet``, that of the node ``bench``, reaches it."""
        return self._directory / f"{who}.kubeconfig"


async def _serve(directory):
    plane = real_control_plane.RealControlPlane(directory)
    async with plane.running():
        for who in ("admin", "kubelet"):
            plane.kubeconfig(who)
        sys.stdout.write(f"{_READY}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
