"""``ports.node.PodRuntime`` and ``ports.node.PodStarter`` with plain processes."""

import asyncio
import logging
import math
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from lastcall import aio
from lastcall.adapters.pods import hooks
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model import pods as model
from lastcall.model.pods import LifecycleHandler, Pod
from lastcall.ports.node import Clock, HookResult, RunningPod
from lastcall_lab.processes import command_spec, exec_hook, pod_addresses
from lastcall_lab.processes.container import ProcessContainer, spawn_container
from lastcall_lab.processes.execution import ProcessExecution
from lastcall_lab.processes.known_pods import KnownPod, KnownPods
from lastcall_lab.processes.log_file import LogFile, note_times
from lastcall_lab.processes.state_files import ContainerFiles, PodState, ProcessStateDirectory, boot_id, log_path

log = logging.getLogger(__name__)


class ProcessRuntime:
    """The pods with files in one state directory; adopts those of an earlier run of this program.

    Make it in a running event loop, and only one at a time for each directory. Call ``close`` at the end of the
    program: the containers run on.
    """

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._clock = clock
        self._files = ProcessStateDirectory(state_dir)
        self._node = str(state_dir)
        self._known = KnownPods(self._files)

    # -- PodRuntime ----------------------------------------------------------------------------------------------------

    async def list_pods(self) -> Sequence[RunningPod]:
        """The pods with a running container."""
        return [pod.running_pod for pod in self._known.pods.values() if pod.running_containers]

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """As ``list_pods``, but checks each container with the kernel first."""
        for container in list(self._known.containers.values()):
            container.notice_end()
        return await self.list_pods()

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """The pod's current state: ends of processes are reported at once."""
        pod = self._known.pods.get(live.pod.metadata.uid)
        return pod.running_pod if pod and pod.running_containers else None

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs a program beside the container, in its environment and as its user."""
        known = self._known.containers.get(live.containers.get(container, ""))
        if not known or known.ended.is_set():
            return HookResult(ok=False, message=f'no container "{container}" runs')
        pod = self._known.pods[live.pod.metadata.uid].pod
        described = next(one for one in _all_containers(pod) if one.name == container)
        if hook.exec:
            return await exec_hook.run_exec_hook(
                self._command_beside(pod, described, known, hook.exec.command), known, limit=limit, clock=self._clock
            )
        if hook.http_get:
            return await hooks.run_http_get(
                hook.http_get, pod_ip=pod.status.pod_ip, container=described, limit=limit, clock=self._clock
            )
        if hook.tcp_socket:
            return await hooks.run_tcp_socket(
                hook.tcp_socket, pod_ip=pod.status.pod_ip, container=described, limit=limit, clock=self._clock
            )
        if hook.sleep:
            return await hooks.run_sleep(hook.sleep, limit=limit, clock=self._clock)
        return HookResult(ok=True)

    async def ping(self) -> None:
        """Returns at once: the kernel is the runtime."""

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """Sends SIGTERM to the main process alone. Each call kills after its own grace period: the shortest counts.

        A cancelled call kills no more.
        """
        container = self._known.containers.get(container_id)
        if container is None:
            return None
        await container.wait_until_started(self._clock)
        container.terminate()
        await asyncio.sleep(0)  # of a hundred concurrent calls each sends its SIGTERM before the first one waits
        if await aio.wait_first(container.ended.wait(), self._clock.sleep(math.ceil(grace))) == 1:
            container.kill()
            await container.ended.wait()
        return container.exit_code

    async def kill_container(self, container_id: str) -> None:
        """Sends SIGKILL to the main process; its shim then kills all of its descendants."""
        container = self._known.containers.get(container_id)
        if container:
            await container.wait_until_started(self._clock)
            container.kill()

    async def forget_container(self, container_id: str) -> None:
        """Does nothing: the lab's kubelet runs all init containers of a pod that it starts again."""

    async def tear_down_pod(self, live: RunningPod) -> None:
        """Frees the pod's address and name, and deletes its files but the logs, which ``remove_pod`` deletes."""
        pod = self._known.pods.get(live.pod.metadata.uid)
        if not pod:
            return
        if pod.running_containers:
            log.warning("pod %s: not torn down: %s still runs", pod.pod.key, ", ".join(pod.running_containers))
            return
        self._files.forget(pod.pod)
        self._known.forget(pod)

    def reserve_stop(self) -> float:
        """No wait: a signal to a process is one system call."""
        return 0.0

    def kill_seconds(self, containers: int) -> float:
        """Three times the measurement: 110 containers were killed and confirmed in 0.14 s on two busy cores."""
        return 0.1 + 0.003 * containers

    # -- PodStarter ----------------------------------------------------------------------------------------------------

    async def start_pod(self, pod: Pod) -> RunningPod:
        """Starts a pod. Unavailable if an init container fails or a process cannot start; leaves nothing then."""
        command_spec.check_manifest(pod)
        before = self._known.pods.get(pod.metadata.uid)
        if before and (before.starting or before.running_containers):
            raise InvalidInput(f"pod {pod.key}", [f'metadata.uid: "{pod.metadata.uid}": this pod runs already'])
        if before:
            self._known.forget(before)
        started = self._create_pod(pod, one_by_one=False)
        started.starting = True
        try:
            for container in pod.spec.init_containers or ():
                await self._start_init(started, container)
            for container in pod.spec.containers:
                await self._start_container(started, container)
        except BaseException:
            if not started.removed:
                await asyncio.shield(self.remove_pod(pod.metadata.uid))
            raise
        finally:
            started.starting = False
        return started.running_pod

    async def remove_pod(self, uid: str) -> None:
        """Removes the pod, its logs too."""
        pod = self._known.pods.get(uid)
        if pod:
            pod.removed = True
            for container in pod.running_containers.values():
                await container.wait_until_started(self._clock)
                container.kill()
            for container in pod.running_containers.values():
                await container.ended.wait()
            self._known.forget(pod)
        self._files.delete(uid)

    async def next_ended(self) -> tuple[str, str, int | None]:
        """The next end of a main container or sidecar; after an adoption, ends of unfinished pods come (again)."""
        return await self._known.next_end()

    # -- containers one by one -----------------------------------------------------------------------------------------

    mounts = False
    """False: mounts name paths of this machine, where processes find their volumes, too."""
    untimed_logs = True

    async def create_sandbox(self, pod: Pod) -> RunningPod:
        """Makes its address and its directory. A known pod is left as it is."""
        known = self._known.pods.get(pod.metadata.uid)
        if known is None:
            command_spec.check_pod(pod)
            known = self._create_pod(pod, one_by_one=True)
        return known.running_pod

    async def launch_container(self, pod: Pod, container: model.Container, *, attempt: int) -> str:
        """Launches the container, and deletes the logs of the attempts before the last one."""
        known = self._known.pods.get(pod.metadata.uid)
        if known is None:
            raise Unavailable(f"pod {pod.key}: it was not created")
        before = known.containers.get(container.name)
        if before and not before.ended.is_set():
            raise InvalidInput(f"pod {pod.key}", [f"container {container.name}: runs already"])
        command_spec.check_container(known.pod, container)
        self._files.forget_logs(known.pod, container.name, before=attempt - 1)
        if before:
            self._known.containers.pop(before.id, None)
        return (await self._start_container(known, container, attempt)).id

    def unmounted_reason(self, run: str) -> str:
        """Why the main process does not see its volumes at their mountPaths; empty if it does."""
        known = self._known.containers.get(run)
        return known.files.unmounted_reason() if known else ""

    def repeat_ends(self) -> None:
        """All ends, in order."""
        self._known.repeat_ends()

    async def probe(self, live: RunningPod, container: str, handler: LifecycleHandler, limit: float) -> HookResult:
        """Runs a probe the way hooks are run."""
        return await self.run_hook(live, container, handler, limit)

    def open_log(self, pod: Pod, container: str, attempt: int) -> LogFile:
        """Opens the log. The output of processes has no times; ``note_log_times`` adds them."""
        return LogFile(log_path(self._files.pod_directory(pod), container, attempt), self._clock)

    async def wait_for_probe_change(self, container_id: str = "") -> None:
        """Never returns: a program's answers to probes are unpredictable."""

    async def note_log_times(self) -> None:
        """Notes the current time for the output since the last call."""
        logs = [one.files.log for pod in self._known.pods.values() for one in pod.running_containers.values()]
        await asyncio.to_thread(note_times, logs, self._clock.wall())

    async def execute(
        self, live: RunningPod, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ProcessExecution:
        """Runs a process beside the container's, in its environment and as its user."""
        known = self._known.containers.get(live.containers.get(container, ""))
        if not known or known.ended.is_set():
            raise InvalidInput(f"pod {live.pod.key}", [f"container {container}: does not run"])
        pod = self._known.pods[live.pod.metadata.uid].pod
        described = next(one for one in _all_containers(pod) if one.name == container)
        try:
            return ProcessExecution(self._command_beside(pod, described, known, command), stdin=stdin, tty=tty)
        except OSError as error:
            raise InvalidInput(f"exec {command[0]}", [error.strerror or str(error)]) from error

    def close(self) -> None:
        """Releases everything; the containers run on."""
        for container in self._known.containers.values():
            container.close()

    # -- within --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _command_beside(
        pod: Pod, described: model.Container, running: ProcessContainer, argv: Sequence[str]
    ) -> command_spec.ContainerCommand:
        """A program with the environment, user and mounts of the container's main process."""
        made = command_spec.container_command(pod, described)
        return made._replace(argv=tuple(argv), env=running.files.environment(), inside=running.namespace_pid)

    def _create_pod(self, pod: Pod, *, one_by_one: bool) -> KnownPod:
        taken = {other.state.address for other in self._known.pods.values()}
        state = PodState(
            pod=pod,
            address=pod_addresses.choose_address(self._node, pod.key, taken),
            boot_id=boot_id(),
            life=secrets.token_hex(4),
            one_by_one=one_by_one,
        )
        self._files.create(state)
        return self._known.add(state)

    async def _start_init(self, pod: KnownPod, container: model.Container) -> None:
        """Leaves a sidecar running (KEP-753), and waits for any other init container."""
        running = await self._start_container(pod, container)
        if container.restart_policy == "Always":
            return
        await running.ended.wait()
        if running.exit_code != 0:
            message = f'pod {pod.pod.key}: init container "{container.name}" ended with exit code {running.exit_code}'
            raise Unavailable(message)

    async def _start_container(self, pod: KnownPod, container: model.Container, attempt: int = 0) -> ProcessContainer:
        if pod.removed:
            raise Unavailable(f"pod {pod.pod.key}: removed while it was being started")
        files = ContainerFiles(pod.directory, container.name, attempt)
        try:
            shim = spawn_container(
                pod.container_id(container.name, attempt), files, command_spec.container_command(pod.pod, container)
            )
        except OSError as error:
            raise Unavailable(f'pod {pod.pod.key}: container "{container.name}" cannot be started: {error}') from error
        started = self._known.track(pod, container.name, files, shim)
        await started.wait_until_started(self._clock)
        if files.main_identity() is None:
            raise Unavailable(f'pod {pod.pod.key}: container "{container.name}" cannot be started')
        return started


def _all_containers(pod: Pod) -> Iterable[model.Container]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)
