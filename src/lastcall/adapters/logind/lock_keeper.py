"""Keeps the delay lock where it outlives this process: with a holder process, or in systemd's descriptor store.

The lock is a descriptor; when the last copy closes, logind goes on with the shutdown within milliseconds and grants no
new lock. So a copy is kept by something that does nothing else. If both this process and that are killed, it is gone.
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
"""A holder that cannot be started, or dies young, is replaced no sooner."""

log = logging.getLogger(__name__)


def choose_lock_keeper(state_dir: Path, clock: Clock, *, environ: Mapping[str, str] = os.environ) -> LockKeeper:
    """The store if systemd has started this service with one, else the holder process.

    $FDSTORE (set by systemd since 254; before, the unit sets it beside FileDescriptorStoreMax=) says that there is
    one. A service without it needs KillMode=process, or the holder is killed with the rest of the service.
    """
    if environ.get("NOTIFY_SOCKET") and environ.get("FDSTORE", "0") not in ("", "0"):
        return DescriptorStoreKeeper(clock, environ=environ)
    return HolderProcessKeeper(state_dir, clock)


class HolderProcessKeeper:
    """``ports.LockKeeper`` by a holder process. The directory is only ours; one program at a time may use it.

    A holder without a deadline lets the lock go when this program has been dead for ``patience`` seconds.
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
        """Whether a lock is kept now, by this process or, once ``recover`` has looked, by a holder."""
        return self._own is not None or self._holder is not None

    async def recover(self) -> bool:
        """Takes back what an earlier life of this program left with its holder; True if a lock is held now.

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
                    return self.is_held  # its deadline came while it was asked
                log.warning("the holder of the lock does not answer: the lock is held, but not by this process")
        return self.is_held

    async def keep_lock(self, descriptor: int) -> None:
        """Takes over the descriptor and gives a copy to the holder; the lock before is closed afterwards."""
        os.set_inheritable(descriptor, False)
        before, self._own, self._deadline = self._own, descriptor, math.inf
        if not await self._request_holder("keep", b"kept", [descriptor]):
            await self._replace_holder()
        if before is not None:
            os.close(before)

    async def set_deadline(self, boottime: float) -> None:
        """The holder closes its copy then, whatever becomes of this process; at once if that is past."""
        self._deadline = boottime
        if self._holder and not await self._request_holder(f"close_at {boottime!r}", b"set", []):
            await self._replace_holder()

    async def release(self) -> None:
        """Both copies are closed when this returns: a holder that does not close it is killed.

        Unavailable if it cannot be told for certain which process that holder is: then there is another time.
        """
        if self._retry:
            self._retry.cancel()
        if self._own is not None:
            os.close(self._own)
        self._own = None
        if self._holder and not await self._close_holder(self._holder):
            raise Unavailable(
                "the holder of the lock does not answer, and which process it is cannot be told for certain"
            )
        self._holder = None

    async def _close_holder(self, holder: HolderProcess) -> bool:
        """Whether the holder's copy is closed now."""
        try:
            await holder.ask("release")
        except (OSError, TimeoutError):
            pass  # it has ended, or hangs
        if await holder.wait():
            return True
        log.warning("the holder of the lock does not answer: it is to be killed")
        return await holder.kill()

    async def _request_holder(self, request: str, expected: bytes, descriptors: list[int]) -> bool:
        """Whether the holder did as it was told."""
        if not self._holder:
            return False
        try:
            answer, _ = await self._holder.ask(request, descriptors)
        except (OSError, TimeoutError):
            return False
        return answer == expected

    async def _replace_holder(self) -> None:
        """A new holder instead of one that does not do as it is told; the new one has its copy first."""
        before = self._holder
        if before and not before.is_identified():
            log.warning("the lock would not survive this process: its holder does not answer, and cannot be replaced")
            return  # another one in its place would hide it, and nobody would close its copy
        if self._holder is before:  # else it has just been found to have ended
            self._holder = None
        self._start_holder()
        if before and not before.has_ended:
            before.set_end_callback(lambda: None)
            await before.kill()

    def _start_holder(self) -> None:
        """Starts a holder if there is something to hold. Failing that, the lock is ours alone for a while."""
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
