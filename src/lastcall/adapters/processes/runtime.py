"""``ports.PodRuntime`` and ``ports.PodStarter`` with plain processes."""

import asyncio
import logging
import math
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from lastcall import aio
from lastcall.adapters import hooks
from lastcall.adapters.processes import addresses, exec_hook, spec
from lastcall.adapters.processes.container import Container, spawn
from lastcall.adapters.processes.files import ContainerFiles, PodState, StateDir, boot_id
from lastcall.adapters.processes.process import Identity, Process
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model import pods as model
from lastcall.model.pods import Handler, Pod
from lastcall.ports import Clock, HookResult, LivePod

log = logging.getLogger(__name__)


class _Pod:
    """A pod that is known: being started, running, or ended and not yet finished."""

    def __init__(self, state: PodState, directory: Path) -> None:
        self.pod = _with_address(state.pod, state.address)
        self.state = state
        self.directory = directory
        self.containers: dict[str, Container] = {}
        self.starting = False
        self.removed = False

    def container_id(self, name: str) -> str:
        """Different each time that the pod is started."""
        return f"{self.pod.metadata.uid}/{name}/{self.state.life}"

    @property
    def running(self) -> dict[str, Container]:
        return {name: one for name, one in self.containers.items() if not one.ended.is_set()}

    @property
    def live(self) -> LivePod:
        return LivePod(pod=self.pod, containers={name: one.id for name, one in self.running.items()})


class ProcessRuntime:
    """The pods whose files are in one state directory; those of an earlier life of this program are adopted.

    It is made in a running event loop, and there is one at a time for each directory. ``close`` is for the end of the
    program: the containers live on.
    """

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._clock = clock
        self._files = StateDir(state_dir)
        self._node = str(state_dir)
        self._pods: dict[str, _Pod] = {}
        self._containers: dict[str, Container] = {}
        self._ended: asyncio.Queue[tuple[str, str, int | None]] = asyncio.Queue()
        self._adopt()

    # -- PodRuntime ----------------------------------------------------------------------------------------------------

    async def pods(self) -> Sequence[LivePod]:
        """Those with a running container."""
        return [pod.live for pod in self._pods.values() if pod.running]

    async def refresh(self) -> Sequence[LivePod]:
        """The same, asking the kernel about each container."""
        for container in list(self._containers.values()):
            container.check()
        return await self.pods()

    async def run_hook(self, live: LivePod, container: str, hook: Handler, limit: float) -> HookResult:
        """A program runs beside the container, in its environment and as its user."""
        known = self._containers.get(live.containers.get(container, ""))
        if not known or known.ended.is_set():
            return HookResult(ok=False, message=f'no container "{container}" runs')
        pod = self._pods[live.pod.metadata.uid].pod
        described = next(one for one in _all(pod) if one.name == container)
        if hook.exec:
            command = spec.command(pod, described)._replace(argv=hook.exec.command)
            return await exec_hook.run(command, known, limit=limit, clock=self._clock)
        if hook.http_get:
            return await hooks.http_get(
                hook.http_get, pod_ip=pod.status.pod_ip, container=described, limit=limit, clock=self._clock
            )
        if hook.sleep:
            return await hooks.sleep(hook.sleep, limit=limit, clock=self._clock)
        return HookResult(ok=True)

    async def stop(self, container_id: str, grace: float) -> int | None:
        """SIGTERM goes to the main process alone. Each call kills when its own grace is over, so the shortest counts.

        A call that is cancelled kills no more.
        """
        container = self._containers.get(container_id)
        if container is None:
            return None
        await container.until_started(self._clock)
        container.terminate()
        await asyncio.sleep(0)  # of a hundred calls at once each sends its SIGTERM before the first begins to wait
        if await aio.first(container.ended.wait(), self._clock.sleep(math.ceil(grace))) == 1:
            container.kill()
            await container.ended.wait()
        return container.exit_code

    async def kill(self, container_id: str) -> None:
        """The main process gets it; its shim then kills all that is left, wherever it has moved to."""
        container = self._containers.get(container_id)
        if container:
            await container.until_started(self._clock)
            container.kill()

    async def finish(self, live: LivePod) -> None:
        """Frees the pod's address and name, and deletes its files but for the logs, which ``remove`` deletes."""
        pod = self._pods.get(live.pod.metadata.uid)
        if not pod:
            return
        if pod.running:
            log.warning("pod %s: not torn down: %s still runs", pod.pod.key, ", ".join(pod.running))
            return
        self._files.forget(pod.pod)
        self._forget(pod)

    def kill_seconds(self, containers: int) -> float:
        """Three times what was measured: 110 containers were killed and confirmed in 0.14 s on two busy cores."""
        return 0.1 + 0.003 * containers

    # -- PodStarter ----------------------------------------------------------------------------------------------------

    async def start(self, pod: Pod) -> LivePod:
        """Unavailable if an init container fails or a process cannot be started; nothing of the pod is left then."""
        spec.check(pod)
        before = self._pods.get(pod.metadata.uid)
        if before and (before.starting or before.running):
            raise InvalidInput(f"pod {pod.key}", [f'metadata.uid: "{pod.metadata.uid}": this pod runs already'])
        if before:
            self._forget(before)
        started = self._create(pod)
        started.starting = True
        try:
            for container in pod.spec.init_containers or ():
                await self._start_init(started, container)
            for container in pod.spec.containers:
                await self._start(started, container)
        except BaseException:
            if not started.removed:
                await asyncio.shield(self.remove(pod.metadata.uid))
            raise
        finally:
            started.starting = False
        return started.live

    async def remove(self, uid: str) -> None:
        """Logs are deleted too."""
        pod = self._pods.get(uid)
        if pod:
            pod.removed = True
            for container in pod.running.values():
                await container.until_started(self._clock)
                container.kill()
            for container in pod.running.values():
                await container.ended.wait()
            self._forget(pod)
        self._files.delete(uid)

    async def ended(self) -> tuple[str, str, int | None]:
        """Main containers and sidecars; what had ended before an adoption is told (again) until the pod is finished."""
        return await self._ended.get()

    def close(self) -> None:
        """Lets go of everything; the containers live on."""
        for container in self._containers.values():
            container.close()

    # -- within --------------------------------------------------------------------------------------------------------

    def _create(self, pod: Pod) -> _Pod:
        taken = {other.state.address for other in self._pods.values()}
        state = PodState(
            pod=pod, address=addresses.choose(self._node, pod.key, taken), boot_id=boot_id(), life=secrets.token_hex(4)
        )
        self._files.create(state)
        return self._know(state)

    async def _start_init(self, pod: _Pod, container: model.Container) -> None:
        """A sidecar is left running (KEP-753), any other init container is waited for."""
        running = await self._start(pod, container)
        if container.restart_policy == "Always":
            return
        await running.ended.wait()
        if running.exit_code != 0:
            message = f'pod {pod.pod.key}: init container "{container.name}" ended with exit code {running.exit_code}'
            raise Unavailable(message)

    async def _start(self, pod: _Pod, container: model.Container) -> Container:
        if pod.removed:
            raise Unavailable(f"pod {pod.pod.key}: removed while it was being started")
        files = ContainerFiles(pod.directory, container.name)
        try:
            shim = spawn(pod.container_id(container.name), files, spec.command(pod.pod, container))
        except OSError as error:
            raise Unavailable(f'pod {pod.pod.key}: container "{container.name}" cannot be started: {error}') from error
        started = self._track(pod, container.name, shim)
        await started.until_started(self._clock)
        if files.main() is None:
            raise Unavailable(f'pod {pod.pod.key}: container "{container.name}" cannot be started')
        return started

    def _adopt(self) -> None:
        """What has ended meanwhile is told in its order."""
        found: list[tuple[int, _Pod, str, Identity]] = []
        for state, names in self._files.load():
            pod = self._know(state)
            for name in names:
                files = ContainerFiles(pod.directory, name)
                files.forbid()  # a shim that has not started yet never will
                if identity := files.shim():
                    found.append((files.ended_at(), pod, name, identity))
        for _, pod, name, identity in sorted(found, key=lambda one: one[0]):
            self._track(pod, name, Process.find(identity))

    def _know(self, state: PodState) -> _Pod:
        pod = _Pod(state, self._files.directory(state.pod))
        self._pods[state.pod.metadata.uid] = pod
        return pod

    def _track(self, pod: _Pod, name: str, shim: Process | None) -> Container:
        container = Container(
            pod.container_id(name),
            ContainerFiles(pod.directory, name),
            shim=shim,
            on_end=partial(self._tell, pod, name),
        )
        pod.containers[name] = container
        self._containers[container.id] = container
        return container

    def _tell(self, pod: _Pod, name: str, container: Container) -> None:
        if not pod.removed and name in _lasting(pod.pod):
            self._ended.put_nowait((pod.pod.metadata.uid, name, container.exit_code))

    def _forget(self, pod: _Pod) -> None:
        self._pods.pop(pod.pod.metadata.uid, None)
        for container in pod.containers.values():
            self._containers.pop(container.id, None)


def _all(pod: Pod) -> Iterable[model.Container]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)


def _lasting(pod: Pod) -> set[str]:
    """The containers whose end matters to others: not the init containers, which end before the pod runs."""
    return {one.name for one in (*model.sidecars(pod), *pod.spec.containers)}


def _with_address(pod: Pod, address: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, pod_ip=address))
