"""The lab's node and its agent in one process."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.pods.static_pods import StaticPods
from lastcall.adapters.state.directory import make_writable, refuse_kubelet_directory
from lastcall.aio import OrderedTaskGroup
from lastcall.wiring.agent import AgentProgram, AgentSettings
from lastcall_lab.containerd import LabCriRuntime
from lastcall_lab.processes import ProcessRuntime
from lastcall_lab.static_node.static_pod_node import StaticPodNode, StaticPodRuntime
from lastcall_lab.static_node.status_files import StatusFiles

log = logging.getLogger(__name__)


async def run_node(settings: AgentSettings, *, manifests: Path, endpoint: str | None) -> None:
    """Runs the pods of ``manifests`` as processes, or as containers at a CRI endpoint, until SIGTERM.

    The pods run on then, as with a kubelet; the next run of this program adopts them. Raises LastcallError if the state
    directory is unusable, before anything is written there.
    """
    await asyncio.to_thread(_prepare_state_directory, settings.state_dir)
    async with open_runtime(settings, manifests, endpoint) as started:
        node = StaticPodNode(
            settings.node_name,
            manifests=manifests,
            runtime=started,
            status=StatusFiles(settings.state_dir / "status"),
            clock=SystemClock(),
        )
        program = AgentProgram(settings, runtime=started, node=node)
        group = OrderedTaskGroup()
        group.start(_run_node_after_agent(program, node), "node")
        try:
            await program.run()
        finally:
            await group.cancel()


def _prepare_state_directory(state_dir: Path) -> None:
    refuse_kubelet_directory(state_dir)
    make_writable(state_dir)


@contextlib.asynccontextmanager
async def open_runtime(
    settings: AgentSettings, manifests: Path, endpoint: str | None
) -> AsyncIterator[StaticPodRuntime]:
    """A runtime of processes, or of the CRI at ``endpoint``, for the pods in a directory of manifests."""
    clock = SystemClock()
    if endpoint is None:
        with contextlib.closing(ProcessRuntime(settings.state_dir, clock)) as processes:
            yield processes
        return
    containers = LabCriRuntime(
        endpoint,
        clock,
        directory=settings.state_dir / "containers",
        cgroup=f"/lastcall-{settings.node_name}",
        manifests=StaticPods(manifests, settings.node_name),
    )
    await containers.open()
    try:
        yield containers
    finally:
        await containers.close()


async def _run_node_after_agent(program: AgentProgram, node: StaticPodNode) -> None:
    """Starts pods only after the agent has checked whether a shutdown is under way.

    A bug in the node must not end the agent, which may have pods to terminate.
    """
    await program.wait_for_first_round()
    try:
        await node.run()
    except Exception:
        log.exception("the node's part broke off: no pod is started any more")
