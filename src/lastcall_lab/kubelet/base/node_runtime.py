"""What the kubelet needs from a runtime beyond the roles in ``ports``: single containers, probes, logs, exec."""

from collections.abc import Sequence
from typing import Protocol

from lastcall.model.pods import Container, LifecycleHandler, Pod
from lastcall.ports.node import HookResult, PodRuntime, PodStarter, RunningPod
from lastcall_lab.apiserver.subresources.kubelet_api import ExecSession


class ContainerLog(Protocol):
    """The log of one run of a container."""

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """Reads lines from ``position`` on: each with its time (seconds since 1970), and the position after them.

        Position 0 is the start of the log. An empty result means that the log has no more lines now, or does not exist.
        """
        ...


class NodeRuntime(PodRuntime, PodStarter, Protocol):
    """Processes, containers through CRI, or actors.

    ``create_sandbox`` and ``launch_container`` are for pods that were not started with ``start``. For such a pod,
    ``ended`` reports the end of each run of each container, including init containers.
    """

    mounts: bool
    """Whether it mounts volumes itself. If not, each mount has a host path (``VolumeMount.host_path``)."""
    untimed_logs: bool
    """Whether its logs have no timestamps, so that ``note_log_times`` must be called about every second."""

    async def create_sandbox(self, pod: Pod) -> RunningPod:
        """Creates what the containers of a pod share, and returns its ``status.podIP``. Starts no container.

        If an earlier kubelet process created the pod, finds it again with its running containers. InvalidInput if this
        runtime does not support the pod, Unavailable if the runtime cannot be reached.
        """
        ...

    async def launch_container(self, pod: Pod, container: Container, *, attempt: int) -> str:
        """Starts a container of a created pod that is not running. Returns the unique id of this run.

        ``attempt`` is 0 for the first run and grows. InvalidInput if this runtime does not support the container,
        Unavailable if the container cannot be started. A cancelled call may still have started it; ``refresh`` shows
        whether it did.
        """
        ...

    def unmounted_reason(self, run: str) -> str:
        """Why that run of a container does not see its volumes at their mountPaths. Empty if it does."""
        ...

    def repeat_ends(self) -> None:
        """For a restarted kubelet: ``ended`` reports again the ended containers of unfinished pods."""
        ...

    async def probe(self, live: RunningPod, container: str, handler: LifecycleHandler, limit: float) -> HookResult:
        """Probes a running container by exec, httpGet or tcpSocket, within ``limit`` seconds. Never raises."""
        ...

    async def wait_for_probe_change(self, container_id: str = "") -> None:
        """Returns when the container's probes may answer differently, or the connection to the runtime changes.

        Returns at once if the runtime cannot know. A runtime that can know saves its kubelet the periodic probes.
        """
        ...

    def open_log(self, pod: Pod, container: str, attempt: int) -> ContainerLog:
        """The log of that run of the container. Only the last two runs are certain to have one."""
        ...

    async def note_log_times(self) -> None:
        """Stamps the lines written since the last call with the current time."""
        ...

    async def execute(
        self, live: RunningPod, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Runs a program in a running container. InvalidInput if it cannot start, or if this runtime has no exec."""
        ...
