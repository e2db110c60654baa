"""Tells the attach-detach controller which volumes are unmounted, and follows their VolumeAttachments."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lastcall.errors import ApiNotPermitted, Conflict, LastcallError
from lastcall.graceful.cluster import node_changes
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.model.node_volumes import MountedVolume
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

RETRY_SECONDS = 1.0
"""Seconds before a failed write is repeated."""

LOOK_SECONDS = 0.5
"""Seconds between two looks at a VolumeAttachment."""

HELD_UP_SECONDS = 2.0
"""Seconds after its release at which a volume that is still attached is worth a note; usually it takes half of one."""


class VolumeRelease:
    """Removes unmounted volumes from the Node's ``volumesInUse``; those of several pods in one write.

    ``is_released`` is asked before each attempt: a kubelet that somebody has started may have mounted a volume again.
    """

    def __init__(
        self,
        objects: NodeObjects,
        is_released: Callable[[MountedVolume], Awaitable[bool]],
        *,
        clock: Clock,
        contact: ServerContact,
    ) -> None:
        self._objects = objects
        self._is_released = is_released
        self._clock = clock
        self._contact = contact
        self._writing = asyncio.Lock()
        self._pending: dict[str, MountedVolume] = {}
        self._attached: dict[str, tuple[MountedVolume, float]] = {}

    @property
    def held_up_volumes(self) -> Sequence[MountedVolume]:
        """The volumes that are still attached some time after their release, as far as that may be read."""
        latest = self._clock.boottime() - HELD_UP_SECONDS
        return tuple(volume for volume, since in self._attached.values() if since <= latest)

    def reset(self) -> None:
        """Forgets all volumes."""
        self._pending.clear()
        self._attached.clear()

    async def release(self, volumes: Sequence[MountedVolume]) -> None:
        """Removes the volumes from the list; repeats that until the server accepts it."""
        self._pending |= {volume.unique_name: volume for volume in volumes}
        async with self._writing:
            while self._pending:
                try:
                    await self._write_pending()
                except Conflict:
                    continue  # somebody else has written the Node in between
                except LastcallError as error:
                    self._contact.record_failure(error, "unmounted volumes are still listed in volumesInUse")
                    await self._clock.sleep(RETRY_SECONDS)

    async def follow(self, volumes: Sequence[MountedVolume]) -> None:
        """Looks at the volumes' VolumeAttachments until they are gone."""
        self._attached |= {volume.unique_name: (volume, self._clock.boottime()) for volume in volumes}
        for volume in volumes:
            while await self._is_attached(volume):
                await self._clock.sleep(LOOK_SECONDS)
            self._attached.pop(volume.unique_name, None)

    async def _write_pending(self) -> None:
        batch = dict(self._pending)
        released = {name for name, volume in batch.items() if await self._is_released(volume)}
        if patch := node_changes.release_patch(await self._objects.get_node(), released):
            await self._objects.patch_node_status(patch)
        self._contact.record_answer()
        for name in batch:
            del self._pending[name]

    async def _is_attached(self, volume: MountedVolume) -> bool:
        """False also if this identity may not know: then nothing is reported."""
        try:
            return await self._objects.is_attached(volume.driver, volume.handle)
        except ApiNotPermitted:
            return False
        except LastcallError:
            return True
