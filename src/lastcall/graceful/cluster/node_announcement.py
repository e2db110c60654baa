"""Keeps the Node as a shutdown needs it: not ready, cordoned, with the conditions of KEP-5683, and its Lease renewed.

The kubelet is stopped, so nobody else renews the Lease. Without it the node lifecycle controller sets Ready=Unknown
after 50 seconds and begins to evict pods whose shutdown is under way.
"""

import asyncio
import logging
from collections.abc import Callable

from lastcall.aio import wait_first
from lastcall.errors import Conflict, LastcallError
from lastcall.graceful.cluster import node_changes
from lastcall.graceful.cluster.server_contact import ServerContact
from lastcall.model.shutdown_node import ShutdownNode
from lastcall.names import SHUTDOWN_EVENT
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
        self._deadline = 0.0
        """When the machine is gone, in seconds since 1970."""
        self._tried = asyncio.Event()
        self._look = asyncio.Event()

    def look_again(self) -> None:
        """Checks the Node now: a kubelet that was still running may have written its own Ready over ours."""
        self._look.set()

    async def wait_until_tried(self) -> None:
        """Returns when the first attempt has succeeded or failed."""
        await self._tried.wait()

    async def keep(self, until: float) -> None:
        """Writes the announcement, then checks and repeats it and renews the Lease, until ``until`` (boottime).

        Then the machine is released: nobody knows any more whether the node lives.
        """
        self._tried.clear()
        self._look.clear()
        self._deadline = self._clock.wall() + until - self._clock.boottime()
        status_written = False
        while self._clock.boottime() < until:
            begun = False
            try:
                if not status_written:
                    begun = await self._write_all()
                    status_written = True
                else:
                    await self._write_what_is_missing()
                self._contact.record_answer()
                pause = RENEW_SECONDS
            except LastcallError as error:
                self._contact.record_failure(error, "the shutdown is not announced on the Node")
                pause = RETRY_SECONDS
            self._tried.set()
            if begun:
                await self._tell("Shutdown manager detected shutdown event")
            await wait_first(self._look.wait(), self._clock.sleep(min(pause, until - self._clock.boottime())))
            self._look.clear()

    async def undo(self) -> bool:
        """Removes the conditions, the mark, and the cordon if it is ours; returns whether there was a mark.

        LastcallError if a request fails.
        """
        node = await self._objects.get_node()
        if patch := node_changes.undo_status_patch(node):
            await self._objects.patch_node_status(patch)
        return await self._patch_node(node_changes.undo_patch)

    async def undo_cancelled(self) -> None:
        """The same after a cancelled shutdown, with the kubelet's Event."""
        if await self.undo():
            await self._tell("Shutdown manager detected shutdown cancellation")

    # ------------------------------------------------------------------------------------------------------------------

    async def _tell(self, message: str) -> None:
        """Writes an Event in the kubelet's words (pkg/kubelet/nodeshutdown); nothing depends on it."""
        try:
            await self._objects.create_event(f"{int(self._clock.wall() * 1000):x}", SHUTDOWN_EVENT, message)
        except LastcallError as error:
            log.debug("no Event of the shutdown: %s", error)

    async def _write_all(self) -> bool:
        """Writes the status, then the cordon; returns whether the Node was not marked by this boot before.

        One after the other, over one connection: the answer to the first write is the Node that the second one needs.
        A failure of the first does not keep the second from being made.
        """
        try:
            node = await self._objects.patch_node_status(node_changes.status_patch(self._clock.wall()))
        except LastcallError:
            await self._cordon()
            raise
        return await self._cordon(node)

    async def _write_what_is_missing(self) -> None:
        """One after the other, over one connection; a failure of the first does not keep the second from being made."""
        try:
            await self._objects.patch_lease(node_changes.lease_patch(self._clock.wall()))
        except LastcallError:
            await self._correct_node()
            raise
        await self._correct_node()

    async def _correct_node(self) -> None:
        node = await self._objects.get_node()
        if not node_changes.is_announced(node):
            log.info("the Node no longer says that it shuts down: writing it again")
            await self._objects.patch_node_status(node_changes.status_patch(self._clock.wall()))
        if node_changes.cordon_patch(node, self._boot_id, self._deadline):
            await self._cordon()

    async def _cordon(self, node: ShutdownNode | None = None) -> bool:
        node = node or await self._objects.get_node()
        was_marked = node_changes.is_marked(node, self._boot_id)
        await self._patch_node(lambda node: node_changes.cordon_patch(node, self._boot_id, self._deadline), node)
        return not was_marked

    async def _patch_node(
        self, patch_for: Callable[[ShutdownNode], node_changes.Patch | None], node: ShutdownNode | None = None
    ) -> bool:
        """Reads the Node, unless it has just been read, and writes the patch, if there is one.

        Again if somebody else has written in between. Returns whether there was a patch.
        """
        for left in reversed(range(_ATTEMPTS)):
            patch, node = patch_for(node or await self._objects.get_node()), None
            try:
                if patch:
                    await self._objects.patch_node(patch)
                return patch is not None
            except Conflict:
                if not left:
                    raise
        return False
