"""Keeps the delay lock beyond this process: in a holder process, or in systemd's file descriptor store.

The lock is a descriptor. When its last copy closes, logind continues the shutdown within milliseconds and grants no new
lock. So a separate process keeps a copy. If both are killed, the lock is lost.
"""

import asyncio
import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path

from lastcall.adapters.logind.descriptor_store import DescriptorStoreKeeper
from lastcall.adapters.logind.holder_process import HolderProcess
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock, LockKeeper

_RETRY_SECONDS = 1.0
"""Seconds between two starts of a holder, if one cannot be started or ends early."""

log = logging.getLogger(__name__)


def choose_lock_keeper(state_dir: Path, clock: Clock, *, environ: Mapping[str, str] = os.environ) -> LockKeeper:
    """The store if systemd has started this service with one, else the holder process.

    $FDSTORE (set by systemd since 254; before, the unit sets it beside FileDescriptorStoreMax=) indicates the store. A
    service without it needs KillMode=process, or the holder is killed with the rest of the service.
    """
    if environ.get("NOTIFY_SOCKET") and environ.get("FDSTORE", "0") not in ("", "0"):
        return DescriptorStoreKeeper(clock, environ=environ)
    return HolderProcessKeeper(state_dir, clock)


class HolderProcessKeeper:
    """``ports.node.LockKeeper`` by a holder process. The directory is private; one program at a time may use it.

    A holder without a deadline releases the lock when this program has been dead for ``patience`` seconds.
    """

    def __init__(self, state_dir: Path, clock: Clock, *, patience: float = 600.0) -> None:
        self._patience = patience
        self._directory = state_dir
        self._clock = clock
        self._own: int | None = None
        self._holder: HolderProcess | None = None
        self._deadline = math.inf
        self._started = -math.inf
        self._retry: asyncio.TimerHandle | None = None

    @property
    def is_held(self) -> bool:
        """Whether a lock is held now, by this process or, after ``recover``, by a holder."""
        return self._own is not None or self._holder is not None

    @property
    def descriptor(self) -> int | None:
        """This process's own copy of the lock, which stays the keeper's; None if it has none."""
        return self._own

    async def recover(self) -> bool:
        """Takes back the lock from an earlier process's holder; True if a lock is held now.

        A holder that does not answer still holds the lock: ``release`` ends it.
        """
        if self.is_held:
            return True
        holder = HolderProcess.find(self._directory)
        self._adopt_holder(holder)
        if holder:
            try:
                answer, descriptors = await holder.ask("give")
                [self._own], self._deadline = descriptors, float(answer)
            except (OSError, TimeoutError, ValueError):
                if await holder.wait():
                    return self.is_held  # its deadline passed during the request
                log.warning("the holder of the lock does not answer: the lock is held, but not by this process")
        return self.is_held

    async def keep_lock(self, descriptor: int) -> None:
        """Takes ownership of the descriptor and gives a copy to the holder; then closes the previous lock."""
        os.set_inheritable(descriptor, False)
        before, self._own, self._deadline = self._own, descriptor, math.inf
        if not await self._request_holder("keep", b"kept", [descriptor]):
            await self._replace_holder()
        if before is not None:
            os.close(before)

    async def set_deadline(self, boottime: float) -> None:
        """Has the holder close its copy then, even if this process dies; at once if that is past."""
        self._deadline = boottime
        if self._holder and not await self._request_holder(f"close_at {boottime!r}", b"set", []):
            await self._replace_holder()

    async def release(self) -> None:
        """Closes both copies before it returns; kills a holder that does not close its own.

        Raises Unavailable if the holder's process cannot be identified for certain; call it again then.
        """
        if self._retry:
            self._retry.cancel()
        if self._own is not None:
            os.close(self._own)
        self._own = None
        if self._holder and not await self._close_holder(self._holder):
            raise Unavailable("the holder of the lock does not answer, and its process cannot be identified")
        self._holder = None

    async def _close_holder(self, holder: HolderProcess) -> bool:
        """Whether the holder's copy is closed now."""
        try:
            await holder.ask("release")
        except (OSError, TimeoutError):
            pass  # the holder has ended, or hangs
        if await holder.wait():
            return True
        log.warning("the holder of the lock does not answer: it is to be killed")
        return await holder.kill()

    async def _request_holder(self, request: str, expected: bytes, descriptors: list[int]) -> bool:
        """Whether the holder answered as expected."""
        if not self._holder:
            return False
        try:
            answer, _ = await self._holder.ask(request, descriptors)
        except (OSError, TimeoutError):
            return False
        return answer == expected

    async def _replace_holder(self) -> None:
        """Replaces a holder that does not respond; the new one gets its copy first."""
        before = self._holder
        if before and not before.is_identified():
            log.warning("the lock would not survive this process: its holder does not answer, and cannot be replaced")
            return  # a new holder in its place would hide it, and its copy would never be closed
        if self._holder is before:  # otherwise it has just been found to have ended
            self._holder = None
        self._start_holder()
        if before and not before.has_ended:
            before.set_end_callback(lambda: None)
            await before.kill()

    def _start_holder(self) -> None:
        """Starts a holder if a lock is held. If that fails, only this process holds the lock for a while."""
        if self._retry:
            self._retry.cancel()
        if self._own is None or self._holder or self._clock.boottime() >= self._deadline:
            return
        self._started = self._clock.boottime()
        try:
            holder = HolderProcess.start(self._directory, self._own, deadline=self._deadline, patience=self._patience)
            self._adopt_holder(holder)
        except OSError as error:
            log.warning("the lock would not survive this process: its holder cannot be started: %s", error)
            self._start_later()

    def _start_later(self) -> None:
        self._retry = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._start_holder)

    def _adopt_holder(self, holder: HolderProcess | None) -> None:
        self._holder = holder
        if holder:
            holder.set_end_callback(self._on_holder_end)

    def _on_holder_end(self) -> None:
        self._holder = None
        if self._own is None or self._clock.boottime() >= self._deadline:
            return
        log.warning("the holder of the lock has died; another one is started")
        if self._clock.boottime() - self._started < _RETRY_SECONDS:
            self._start_later()
        else:
            self._start_holder()
