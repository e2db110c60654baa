"""The volumes of this node's pods while it shuts down: unmounted after their pod's end, then released for other nodes."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from lastcall.aio import OrderedTaskGroup, Signal, wait_first
from lastcall.errors import LastcallError
from lastcall.graceful.cluster import pod_changes
from lastcall.graceful.cluster.pod_changes import ObjectFate
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.graceful.cluster.volume_release import VolumeRelease
from lastcall.graceful.cluster.volume_unmounting import VolumeUnmounting
from lastcall.model.base import Facts
from lastcall.model.node_volumes import MountedVolume
from lastcall.model.pods import Pod, Volume
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock
from lastcall.ports.volumes import NodeVolumes


class VolumesEnd(Facts, frozen=True):
    """The volumes of a pod after its end.

    ``are_free``: none that may be attached is mounted for the pod any more. ``is_proved``: none of any kind is, by what
    the node itself shows.
    """

    are_free: bool
    is_proved: bool = False


class PodVolumes:
    """Unmounts and releases the volumes of pods whose objects are deleted; all others keep theirs for the kubelet.

    ``note`` gets what the report shall say. ``start_write`` starts a write for which the machine waits at the end.
    """

    def __init__(
        self,
        volumes: NodeVolumes,
        objects: NodeObjects,
        *,
        clock: Clock,
        contact: ServerContact,
        note: Callable[[str], None],
        start_write: Callable[[str, Coroutine[Any, Any, None]], None],
    ) -> None:
        self._unmounting = VolumeUnmounting(volumes, clock)
        self._release = VolumeRelease(objects, self._unmounting.is_released, clock=clock, contact=contact)
        self._clock = clock
        self._start_write = start_write
        self._followers = OrderedTaskGroup()
        self._note = note
        self._users: set[str] = set()
        self._changed = Signal()
        self.until = 0.0
        """When the shutdown's time is over, in CLOCK_BOOTTIME seconds."""

    def expect_end(self, pod: Pod) -> None:
        """The pod's termination begins: its volumes, if it has any, will need their drivers."""
        if pod_changes.object_fate(pod) is ObjectFate.DELETED and any(map(_needs_driver, pod.spec.volumes or ())):
            self._users.add(pod.metadata.uid)

    async def wait_for_users(self, until: float) -> None:
        """Returns when no volume of a pod whose termination has begun is mounted any more; at ``until`` in any case."""
        await self._clock.sleep(0)  # pods of the same phase begin at the same time
        while self._users and (left := until - self._clock.boottime()) > 0:
            await wait_first(self._changed.next(), self._clock.sleep(left))

    async def unmount(self, pod: Pod) -> VolumesEnd:
        """Unmounts the volumes of an ended pod, and begins to release them."""
        try:
            ended = await self._unmounting.unmount_pod(pod.metadata.uid, self.until)
        except LastcallError as error:
            names = pod_changes.attachable_volumes(pod)
            if names:
                self._note(f"volumes of {pod.key} stay mounted: {', '.join(names)}: {error}")
            return VolumesEnd(are_free=not names)
        finally:
            self._users.discard(pod.metadata.uid)
            self._changed.set()
        for one in ended:
            if one.problem:
                self._note(f"a volume of {pod.key} stays mounted: {one.volume.title}: {one.problem}")
        if released := [one.volume for one in ended if one.is_released]:
            self._start_write(f"volumes of {pod.key}", self._release_volumes(released))
        return VolumesEnd(
            are_free=not any(one.problem and not one.volume.inline for one in ended),
            is_proved=not any(one.problem for one in ended),
        )

    def note_held_up(self) -> None:
        """Notes the unmounted volumes whose VolumeAttachments still exist after two seconds."""
        for volume in self._release.held_up_volumes:
            self._note(f"volume {volume.title} is unmounted, but its VolumeAttachment to this node still exists")

    async def stop(self) -> None:
        """Ends what is under way; nothing is written afterwards."""
        await self._followers.cancel()
        self._followers = OrderedTaskGroup()
        self._release.reset()
        self._users.clear()

    async def _release_volumes(self, volumes: Sequence[MountedVolume]) -> None:
        await self._release.release(volumes)
        self._followers.start(self._release.follow(volumes), "follow VolumeAttachments")


def _needs_driver(volume: Volume) -> bool:
    return volume.is_attachable or volume.csi is not None
