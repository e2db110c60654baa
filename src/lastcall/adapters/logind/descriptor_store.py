"""Keeps the delay lock in systemd's file descriptor store (systemd.service(5), FileDescriptorStoreMax=)."""

import asyncio
import logging
import os
from collections.abc import Mapping

from lastcall.adapters.systemd import notification
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock

_NAMES = ("shutdown-lock", "shutdown-lock-2")
"""The store removes all descriptors of one name together. A new lock gets the other name, so that one lock stays."""

_FIRST = 3
"""SD_LISTEN_FDS_START."""

_TRIES = 50
_PAUSE = 0.02

log = logging.getLogger(__name__)


class DescriptorStoreKeeper:
    """``ports.node.LockKeeper``. The unit needs FileDescriptorStoreMax=2 or more and NotifyAccess=main.

    systemd cannot close a descriptor at a given time. So this process, or the next one, enforces the deadline; between
    the two logind's own limit holds. Call ``recover`` before the first child is started, because systemd passes the
    descriptors inheritable.
    """

    def __init__(self, clock: Clock, *, environ: Mapping[str, str] = os.environ) -> None:
        self._clock = clock
        self._environ = environ
        self._own: int | None = None
        self._name = _NAMES[1]
        self._left = False
        """Whether the store may still have a copy of a lock that this process has closed."""
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_held(self) -> bool:
        """Whether a lock is held now; True also until systemd has confirmed that it has dropped its copy."""
        return self._own is not None or self._left

    async def recover(self) -> bool:
        """Takes back the stored lock; True if a lock is held now."""
        if self._own is None:
            found = self._inherited_descriptors()
            for name in _NAMES:
                if name in found and self._own is None:
                    self._own, self._name = found[name], name
                elif name in found:  # killed while it replaced one lock by another: one is enough
                    os.close(found[name])
                    await self._remove_stored(name)
        return self.is_held

    async def keep_lock(self, descriptor: int) -> None:
        """Takes ownership of the descriptor and stores a copy in systemd; then closes the previous lock."""
        os.set_inheritable(descriptor, False)
        kept, before, self._own, self._left = self.is_held, self._own, descriptor, False
        self._forget_deadline()
        old, self._name = self._name, _NAMES[1 - _NAMES.index(self._name)]
        try:
            await self._store_descriptor(descriptor, instead_of=old if kept else None)
        except Unavailable as error:
            log.warning("the lock would not survive this process: %s", error)
        if before is not None:
            os.close(before)

    async def set_deadline(self, boottime: float) -> None:
        """Releases the lock at that time, as long as this process lives."""
        self._forget_deadline()
        if self.is_held:
            self._closing = asyncio.create_task(self._release_at(boottime), name="the lock's deadline")

    async def release(self) -> None:
        """Closes both copies before it returns. Raises Unavailable if systemd does not answer; call it again then."""
        self._forget_deadline()
        if self._own is not None:
            os.close(self._own)
            self._own, self._left = None, True
        if self._left:
            await self._remove_stored(*_NAMES)
            self._left = False

    async def _release_at(self, boottime: float) -> None:
        await self._clock.sleep(boottime - self._clock.boottime())
        self._closing = None
        try:
            await self.release()
        except Unavailable as error:
            log.warning("systemd has not dropped its copy of the lock at the deadline: %s", error)

    def _forget_deadline(self) -> None:
        if self._closing:
            self._closing.cancel()
            self._closing = None

    async def _store_descriptor(self, descriptor: int, *, instead_of: str | None) -> None:
        """Stores a copy. With FDPOLL=1, systemd would drop the lock when logind restarts (its end hangs up)."""
        await self._notify_systemd(f"FDSTORE=1\nFDNAME={self._name}\nFDPOLL=0", [descriptor])
        await notification.wait_for_systemd(self._environ)
        if instead_of:
            await self._remove_stored(instead_of)

    async def _remove_stored(self, *names: str) -> None:
        """Requests all removals before it waits for systemd: requests that are sent are carried out, however late."""
        for name in names:
            await self._notify_systemd(f"FDSTOREREMOVE=1\nFDNAME={name}", [])
        await notification.wait_for_systemd(self._environ)

    async def _notify_systemd(self, message: str, descriptors: list[int]) -> None:
        """Sends the message; Unavailable if systemd does not take it. Only the barrier confirms its execution."""
        for _ in range(_TRIES):
            if notification.send_notification(message, descriptors, environ=self._environ):
                return
            await self._clock.sleep(_PAUSE)  # its queue is full
        raise Unavailable("systemd cannot be notified: $NOTIFY_SOCKET accepts no messages")

    def _inherited_descriptors(self) -> dict[str, int]:
        """Our descriptors by name (sd_listen_fds_with_names(3)), made non-inheritable; leaves foreign ones."""
        if self._environ.get("LISTEN_PID") != str(os.getpid()):
            return {}
        count = int(self._environ.get("LISTEN_FDS", "0"))
        names = self._environ.get("LISTEN_FDNAMES", "").split(":")
        found = dict(zip(names, range(_FIRST, _FIRST + count), strict=False))
        for descriptor in found.values():
            os.set_inheritable(descriptor, False)
        return {name: found[name] for name in _NAMES if name in found}
