"""The known pods and containers, and the queue of their ends."""

import asyncio
from functools import partial
from pathlib import Path

import msgspec

from lastcall.model import pods as model
from lastcall.model.pods import Pod
from lastcall.ports.node import RunningPod
from lastcall_lab.processes.container import ProcessContainer
from lastcall_lab.processes.process import ForeignProcess, ProcessIdentity
from lastcall_lab.processes.state_files import ContainerFiles, PodState, ProcessStateDirectory


class KnownPod:
    """A pod that is being started, runs, or has ended but not been finished."""

    def __init__(self, state: PodState, directory: Path) -> None:
        self.pod = _with_address(state.pod, state.address)
        self.state = state
        self.directory = directory
        self.containers: dict[str, ProcessContainer] = {}
        self.starting = False
        self.removed = False

    def container_id(self, name: str, attempt: int) -> str:
        """An id that differs for each start of the pod or the container."""
        later = f".{attempt}" if attempt else ""
        return f"{self.pod.metadata.uid}/{name}/{self.state.life}{later}"

    @property
    def running_containers(self) -> dict[str, ProcessContainer]:
        """The containers that have not ended, by name."""
        return {name: one for name, one in self.containers.items() if not one.ended.is_set()}

    @property
    def running_pod(self) -> RunningPod:
        """The pod with its running containers."""
        return RunningPod(pod=self.pod, containers={name: one.id for name, one in self.running_containers.items()})


class KnownPods:
    """``pods`` by uid, ``containers`` by id. Adopts pods of an earlier run of this program at once."""

    def __init__(self, files: ProcessStateDirectory) -> None:
        self._files = files
        self._ended: asyncio.Queue[tuple[str, str, int | None]] = asyncio.Queue()
        self._history: list[ProcessContainer] = []
        self.pods: dict[str, KnownPod] = {}
        self.containers: dict[str, ProcessContainer] = {}
        self._adopt()

    def add(self, state: PodState) -> KnownPod:
        """Adds a pod that has files already."""
        pod = KnownPod(state, self._files.pod_directory(state.pod))
        self.pods[state.pod.metadata.uid] = pod
        return pod

    def track(self, pod: KnownPod, name: str, files: ContainerFiles, shim: ForeignProcess | None) -> ProcessContainer:
        """Tracks a container that was started; its end will be reported."""
        container = ProcessContainer(
            pod.container_id(name, files.attempt),
            files,
            shim=shim,
            on_end=partial(self._queue_end, pod, name),
        )
        pod.containers[name] = container
        self.containers[container.id] = container
        return container

    def forget(self, pod: KnownPod) -> None:
        """Forgets the pod and its containers."""
        self.pods.pop(pod.pod.metadata.uid, None)
        for container in pod.containers.values():
            self.containers.pop(container.id, None)
        self._history = [one for one in self._history if one.id in self.containers]

    async def next_end(self) -> tuple[str, str, int | None]:
        """The next end: uid, container, exit code."""
        return await self._ended.get()

    def repeat_ends(self) -> None:
        """All ends of known containers, in order."""
        self._ended = asyncio.Queue()
        over = [one for one in self._history if one.ended.is_set() and self.containers.get(one.id) is one]
        self._history = []
        for container in over:
            self._queue_end(self.pods[container.id.partition("/")[0]], container.id.split("/")[1], container)

    def _adopt(self) -> None:
        """Adopts an earlier run's pods, and reports the ends since then in order."""
        found: list[tuple[int, KnownPod, str, ContainerFiles, ProcessIdentity]] = []
        for state, names in self._files.load():
            pod = self.add(state)
            for name in names:
                files = ContainerFiles(pod.directory, name)
                files.forbid_start()  # a shim that has not started yet never will
                if identity := files.shim_identity():
                    found.append((files.ended_at(), pod, name, files, identity))
        for _, pod, name, files, identity in sorted(found, key=lambda one: one[0]):
            self.track(pod, name, files, ForeignProcess.find(identity))

    def _queue_end(self, pod: KnownPod, name: str, container: ProcessContainer) -> None:
        if not pod.removed and (pod.state.one_by_one or name in _lasting_containers(pod.pod)):
            self._ended.put_nowait((pod.pod.metadata.uid, name, container.exit_code))
            self._history.append(container)


def _lasting_containers(pod: Pod) -> set[str]:
    """The containers whose end is reported: not init containers, which end before the pod runs."""
    return {one.name for one in (*model.list_sidecars(pod), *pod.spec.containers)}


def _with_address(pod: Pod, address: str) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, pod_ip=address))
