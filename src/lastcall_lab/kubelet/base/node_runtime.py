"""What the kubelet needs of a runtime beside the roles in ``ports``: containers one by one, probes, logs, programs."""

from collections.abc import Sequence
from typing import Protocol

from lastcall.model.pods import Container, LifecycleHandler, Pod
from lastcall.ports.node import HookResult, PodRuntime, PodStarter, RunningPod
from lastcall_lab.apiserver.subresources.kubelet_api import ExecSession


class ContainerLog(Protocol):
    """What one run of a container has said."""

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """Some lines from ``position`` on, each with its time (seconds since 1970), and the position after them.

        Position 0 is the beginning. No lines: there are no more now, or there is no such log.
        """
        ...


class NodeRuntime(PodRuntime, PodStarter, Protocol):
    """Processes, containers through CRI, or actors. ``create_sandbox`` and ``launch_container`` are for pods that ``start`` has not started.

    Of a created pod ``ended`` tells the end of each run of each container, init containers too.
    """

    mounts: bool
    """Whether it mounts volumes by itself. If not, each mount names its place (``VolumeMount.host_path``)."""
    untimed_logs: bool
    """Whether its logs have no times of their own, so that ``note_log_times`` is to be called about every second."""

    async def create_sandbox(self, pod: Pod) -> RunningPod:
        """Makes what the containers of a pod share, and answers with its ``status.podIP``; no container runs.

        A pod that an earlier life of this program has created is found again, with the containers that run.
        InvalidInput for what this runtime cannot do, Unavailable if it cannot be reached.
        """
        ...

    async def launch_container(self, pod: Pod, container: Container, *, attempt: int) -> str:
        """Starts a container of a created pod that does not run now; the id of this run, which no other has.

        ``attempt`` is 0 for the first run and grows. InvalidInput for what this runtime cannot do, Unavailable if the
        container cannot be started. A call that is cancelled may have started it: ``refresh`` tells.
        """
        ...

    def unmounted_reason(self, run: str) -> str:
        """Why that run of a container does not see its volumes at their mountPaths; empty if it does."""
        ...

    def repeat_ends(self) -> None:
        """A kubelet begins anew: ``ended`` tells what has ended again, of pods that are not finished."""
        ...

    async def probe(self, live: RunningPod, container: str, handler: LifecycleHandler, limit: float) -> HookResult:
        """Asks a running container how it is, by exec, httpGet or tcpSocket, ``limit`` seconds at most. Never raises."""
        ...

    async def wait_for_probe_change(self, container_id: str = "") -> None:
        """Returns when the container's probes may answer otherwise than now, or the runtime be reached otherwise.

        At once if nobody can know. A runtime that knows better spares its kubelet the asking.
        """
        ...

    def open_log(self, pod: Pod, container: str, attempt: int) -> ContainerLog:
        """What the container has said in that run; of the runs but the last and the one before nothing may be left."""
        ...

    async def note_log_times(self) -> None:
        """What has been said since the last call was said about now."""
        ...

    async def execute(
        self, live: RunningPod, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Runs a program in a running container. InvalidInput if it cannot be started, or such a one not at all."""
        ...
