"""The pod runtime of a lab machine: plain processes, or containers of a private containerd."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from lastcall.errors import LastcallError
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.node_runtime import NodeRuntime
from lastcall_lab.processes import ProcessRuntime

CONTAINERD = "containerd"


def check_runtime(kind: str) -> None:
    """Raises LastcallError if this machine cannot provide that runtime."""
    if kind != CONTAINERD:
        return
    from lastcall_lab.containerd import unavailable_reason  # noqa: PLC0415  (see ``open_runtime``)

    if reason := unavailable_reason():
        raise LastcallError(f"--runtime containerd: {reason}")


@contextlib.asynccontextmanager
async def open_runtime(kind: str, directory: Path, node: str, clock: Clock) -> AsyncIterator[NodeRuntime]:
    """A runtime for one boot of a machine; it adopts processes that a killed lab has left running."""
    if kind != CONTAINERD:
        with contextlib.closing(ProcessRuntime(directory / "runtime", clock)) as processes:
            yield processes
        return
    # gRPC is a seventh of all modules of ``lab up``, and only containers need it.
    from lastcall_lab.containerd import LabCriRuntime, PrivateContainerd  # noqa: PLC0415

    containerd = await asyncio.to_thread(PrivateContainerd)
    try:
        await asyncio.to_thread(containerd.start)
        containers = LabCriRuntime(
            containerd.endpoint, clock, directory=directory / "runtime", cgroup=f"{containerd.cgroup}/{node}"
        )
        await containers.open()
        try:
            yield containers
        finally:
            await containers.close()
    finally:
        await asyncio.to_thread(containerd.clean_up)
