"""Pods that write to their volumes and remember each acknowledged line, to check whether the storage kept it.

They write as long as they live, whatever their kubelet does: a writer belongs to the world, begins and ends with its
container, and ends without a word when the power of its machine goes.
"""

import asyncio
import contextvars
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.node import Clock
from lastcall_lab.simulation.scenario import ScenarioWorkload
from lastcall_lab.simulation.truth import ContainerEvent, MachineEvent, Truth
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_events import VolumeEvent, VolumeEventType
from lastcall_lab.volumes.volume_store import VolumeStore


class WriteAttempt(NamedTuple):
    """A line that a pod (by its uid) has written at ``at``; ``volume`` is empty if none was mounted for it."""

    at: float
    pod: str
    node: str
    volume: str
    file: str
    line: bytes
    acknowledged: bool = False


class VolumeWriters:
    """Of all pods of workloads that write; ``workload_of`` tells whose a pod is."""

    def __init__(
        self,
        storage: Storage,
        shelf: VolumeStore,
        clock: Clock,
        truth: Truth,
        workload_of: Callable[[Pod], ScenarioWorkload | None],
    ) -> None:
        self._storage = storage
        self._shelf = shelf
        self._clock = clock
        self._truth = truth
        self._workload_of = workload_of
        self._home = contextvars.copy_context()
        self._writing: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.attempts: list[WriteAttempt] = []
        """In order."""
        self.lost: list[WriteAttempt] = []
        """Acknowledged, and not kept; after ``stop``."""
        truth.listeners.append(self._on_event)

    async def stop(self) -> None:
        """They write no more, and the volumes are read."""
        await cancel_and_wait(*self._writing.values())
        self._writing.clear()
        taken = stale_writes(self._storage.records)
        kept: dict[tuple[str, str], frozenset[bytes]] = {}
        for one in self.attempts:
            if one.acknowledged:
                place = one.volume, one.file
                if place not in kept:
                    kept[place] = await self._volume_lines(*place)
                if one.line not in kept[place] or (one.at, one.node, one.volume) in taken:
                    self.lost.append(one)

    async def _volume_lines(self, volume: str, file: str) -> frozenset[bytes]:
        """None, if the volume is not there any more."""
        try:
            return frozenset((await self._shelf.read(volume, file)).splitlines())
        except Unavailable:
            return frozenset()

    # -- while it goes on ----------------------------------------------------------------------------------------------

    def _on_event(self, one: ContainerEvent | MachineEvent) -> None:
        if isinstance(one, MachineEvent):
            if one.what == "off":
                for key in [key for key in self._writing if key[0] == one.node]:
                    self._writing.pop(key).cancel()
        elif one.what == "start":
            self._start_writer(one)
        elif one.what == "exit" and (writing := self._writing.pop((one.node, one.uid), None)):
            writing.cancel()

    def _start_writer(self, one: ContainerEvent) -> None:
        pod = self._truth.pods[one.uid]
        workload = self._workload_of(pod)
        if workload and workload.volume and workload.writes:
            name = f"writer of {pod.key} on {one.node}"
            work = self._write_lines(one.node, pod, 1 / workload.writes)
            self._writing[one.node, one.uid] = asyncio.create_task(work, name=name, context=self._home)

    async def _write_lines(self, node: str, pod: Pod, every: float) -> None:
        """The line's time makes it the only one."""
        uid, volume = pod.metadata.uid, ""
        while True:
            await self._clock.sleep(every)
            at = self._clock.boottime()
            volume = volume or self._mounted_volume(node, uid)
            attempt = WriteAttempt(at, uid, node, volume, pod.metadata.name, f"{uid} {at!r}".encode())
            self.attempts.append(attempt._replace(acknowledged=await self._try_write(attempt)))

    def _mounted_volume(self, node: str, uid: str) -> str:
        return next((volume for volume, pod in self._storage.mounts_of(node) if pod == uid), "")

    async def _try_write(self, one: WriteAttempt) -> bool:
        if not one.volume:
            return False
        try:
            await self._storage.write(one.volume, one.node, one.pod, one.file, one.line)
        except Unavailable:
            return False
        return True


def stale_writes(records: Iterable[VolumeEvent]) -> set[tuple[float, str, str]]:
    """When which node has written which volume although the storage had given it to another one since.

    A volume for one machine at a time belongs to the last that it was attached to: what another one writes then
    destroys what is there, or is never seen.
    """
    attached: dict[str, list[str]] = {}
    found = set()
    for one in records:
        nodes = attached.setdefault(one.volume, [])
        if one.what is VolumeEventType.ATTACHED and not one.shared:
            nodes.append(one.node)
        elif one.what is VolumeEventType.DETACHED and one.node in nodes:
            nodes.remove(one.node)
        elif one.what is VolumeEventType.WROTE and nodes and nodes[-1] != one.node:
            found.add((one.at, one.node, one.volume))
    return found
