"""Unmounts the volumes of ended pods, as the kubelet would if it ran."""

import asyncio
from collections.abc import Sequence

from lastcall.aio import OrderedTaskGroup
from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.cluster.volume_steps import VolumeStep, next_step
from lastcall.model.base import Facts
from lastcall.model.node_volumes import Filesystem, MountedVolume, VolumeState
from lastcall.ports.node import Clock
from lastcall.ports.volumes import NodeVolumes

RETRY_SECONDS = 1.0
"""Seconds before a step is repeated."""

PATIENCE_SECONDS = 10.0
"""Seconds without progress after which a volume is given up; a call that the driver does not answer has its own limit."""

CALL_SECONDS = 120.0
"""Seconds for a driver's answer at most (the kubelet's csiTimeout): it may have to write a full page cache."""

_LAST_STEPS = (VolumeStep.FORGET, VolumeStep.FORGET_ALL, VolumeStep.GIVE_UP)


class UnmountedVolume(Facts, frozen=True):
    """One volume after the attempt to unmount it from a pod.

    ``problem`` says why it counts as mounted, "" if it is unmounted. ``is_released``: no pod of the node uses it, and it
    is not mounted anywhere.
    """

    volume: MountedVolume
    problem: str = ""
    is_released: bool = False


class VolumeUnmounting:
    """Unmounts volumes; pods at the same time. A volume that two pods use is handled for one of them at a time."""

    def __init__(self, volumes: NodeVolumes, clock: Clock) -> None:
        self._volumes = volumes
        self._clock = clock
        self._locks: dict[str, asyncio.Lock] = {}

    async def unmount_pod(self, uid: str, until: float) -> Sequence[UnmountedVolume]:
        """Unmounts all volumes of a pod whose containers have ended; gives up at ``until`` (CLOCK_BOOTTIME seconds).

        Raises Unavailable if the pod's volumes are not known.
        """
        found = await self._volumes.list_volumes(uid)
        group = OrderedTaskGroup()
        try:
            tasks = [group.start(self._unmount(one, until), f"unmount {one.title}") for one in found]
            await group.join()
        finally:
            await group.cancel()
        return [task.result() for task in tasks]

    async def is_released(self, volume: MountedVolume) -> bool:
        """Whether the volume is still used by no pod of the node; False also if that is not known."""
        try:
            state = await self._volumes.read_state(volume)
        except LastcallError:
            return False
        return not (state.users or state.has_stage or state.target or state.stage or state.elsewhere)

    async def _unmount(self, volume: MountedVolume, until: float) -> UnmountedVolume:
        lock = self._locks.setdefault(volume.unique_name or volume.path, asyncio.Lock())
        attempt = _VolumeAttempt(volume, self._volumes, self._clock, until)
        while True:
            async with lock:
                if over := await attempt.take_step():
                    return over
            if attempt.problem:
                left = attempt.give_up_at - self._clock.boottime()
                if left <= RETRY_SECONDS:
                    return UnmountedVolume(volume=volume, problem=attempt.problem)
                await self._clock.sleep(RETRY_SECONDS)


class _VolumeAttempt:
    """The steps on one volume for one pod. ``problem`` is the reason why the last step failed, "" if it succeeded."""

    def __init__(self, volume: MountedVolume, volumes: NodeVolumes, clock: Clock, until: float) -> None:
        self._volume = volume
        self._volumes = volumes
        self._clock = clock
        self._until = until
        self._answered: set[VolumeStep] = set()
        self._known: frozenset[Filesystem] = frozenset()
        self._progress = clock.boottime()
        self.problem = ""

    @property
    def give_up_at(self) -> float:
        """When the volume is given up unless a step succeeds before, in CLOCK_BOOTTIME seconds."""
        return min(self._until, self._progress + PATIENCE_SECONDS)

    async def take_step(self) -> UnmountedVolume | None:
        """Takes the next step; returns the result if it was the last one."""
        try:
            state = await self._volumes.read_state(self._volume, self._known)
            self._known |= state.filesystems
            now = next_step(self._volume, state, self._answered)
            await self._perform(now.step, state)
        except LastcallError as error:
            self.problem = str(error)
            return None
        self._answered.add(now.step)
        self.problem = now.problem
        if not now.problem:
            self._progress = self._clock.boottime()
        if now.step in _LAST_STEPS:
            released = now.step is VolumeStep.FORGET_ALL and bool(self._volume.unique_name)
            return UnmountedVolume(volume=self._volume, problem=now.problem, is_released=released)
        return None

    async def _perform(self, step: VolumeStep, state: VolumeState) -> None:
        volume, within = self._volume, min(CALL_SECONDS, self._until - self._clock.boottime())
        match step:
            case VolumeStep.UNMOUNT_SUBPATHS:
                await self._volumes.unmount_subpaths(state.subpaths)
            case VolumeStep.UNPUBLISH | VolumeStep.UNSTAGE if within <= 0:
                raise Unavailable("the time of the shutdown is over")
            case VolumeStep.UNPUBLISH:
                await self._volumes.unpublish(volume, within)
            case VolumeStep.UNSTAGE:
                await self._volumes.unstage(volume, within)
            case VolumeStep.FORGET | VolumeStep.FORGET_ALL:
                await self._volumes.forget(volume, staged=step is VolumeStep.FORGET_ALL)
            case VolumeStep.WAIT | VolumeStep.GIVE_UP:
                pass
