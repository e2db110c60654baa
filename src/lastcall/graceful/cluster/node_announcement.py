"""Keeps the Node as a shutdown needs it: not ready, cordoned, with the conditions of KEP-5683, and its Lease renewed.

The kubelet is stopped, so nobody else renews the Lease. Without it the node lifecycle controller sets Ready=Unknown
after 50 seconds and begins to evict pods whose shutdown is under way.
"""

import asyncio
import logging
from collections.abc import Callable

from lastcall.errors import Conflict, LastcallError
from lastcall.graceful.cluster import node_changes
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.model.shutdown_node import ShutdownNode
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

RENEW_SECONDS = 10.0
"""Seconds between two renewals of the Lease, and two checks of the Node, as the kubelet does."""

RETRY_SECONDS = 1.0
"""Seconds before a failed write is repeated."""

_ATTEMPTS = 5
"""Attempts to write a Node that others write at the same time."""

log = logging.getLogger(__name__)


class NodeAnnouncement:
    """The announcement of one boot's shutdowns. ``contact`` is told of each answer and failure."""

    def __init__(self, objects: NodeObjects, *, boot_id: str, clock: Clock, contact: ServerContact) -> None:
        self._objects = objects
        self._boot_id = boot_id
        self._clock = clock
        self._contact = contact
        self._tried = asyncio.Event()

    async def wait_until_tried(self) -> None:
        """Returns when the first attempt has succeeded or failed."""
        await self._tried.wait()

    async def keep(self, until: float) -> None:
        """Writes the announcement, then checks and repeats it and renews the Lease, until ``until`` (boottime).

        Then the machine is released: nobody knows any more whether the node lives.
        """
        self._tried.clear()
        status_written = False
        while self._clock.boottime() < until:
            try:
                if not status_written:
                    await self._write_all()
                    status_written = True
                else:
                    await self._write_what_is_missing()
                self._contact.record_answer()
                pause = RENEW_SECONDS
            except LastcallError as error:
                self._contact.record_failure(error, "the shutdown is not announced on the Node")
                pause = RETRY_SECONDS
            self._tried.set()
            await self._clock.sleep(min(pause, until - self._clock.boottime()))

    async def undo(self) -> None:
        """Removes the conditions, the mark, and the cordon if it is ours. LastcallError if a request fails."""
        node = await self._objects.get_node()
        if patch := node_changes.undo_status_patch(node):
            await self._objects.patch_node_status(patch)
        await self._patch_node(node_changes.undo_patch)

    # ------------------------------------------------------------------------------------------------------------------

    async def _write_all(self) -> None:
        """Writes the status and the cordon at the same time; neither failure keeps the other from being written."""
        status = asyncio.ensure_future(self._objects.patch_node_status(node_changes.status_patch(self._clock.wall())))
        cordon = asyncio.ensure_future(self._cordon())
        try:
            results = await asyncio.gather(status, cordon, return_exceptions=True)
        finally:
            status.cancel()
            cordon.cancel()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write_what_is_missing(self) -> None:
        await self._objects.patch_lease(node_changes.lease_patch(self._clock.wall()))
        node = await self._objects.get_node()
        if not node_changes.is_announced(node):
            log.info("the Node no longer says that it shuts down: writing it again")
            await self._objects.patch_node_status(node_changes.status_patch(self._clock.wall()))
        if node_changes.cordon_patch(node, self._boot_id):
            await self._cordon()

    async def _cordon(self) -> None:
        await self._patch_node(lambda node: node_changes.cordon_patch(node, self._boot_id))

    async def _patch_node(self, patch_for: Callable[[ShutdownNode], node_changes.Patch | None]) -> None:
        """Reads the Node and writes the patch, if there is one; again if somebody else has written in between."""
        for left in reversed(range(_ATTEMPTS)):
            patch = patch_for(await self._objects.get_node())
            try:
                if patch:
                    await self._objects.patch_node(patch)
                break
            except Conflict:
                if not left:
                    raise
