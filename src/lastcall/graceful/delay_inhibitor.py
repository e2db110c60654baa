"""The delay inhibitor: holds the lock and raises logind's limit; a lower limit is reported, and used as it is."""

import logging
import math
from collections.abc import Callable

from lastcall.aio import OrderedTaskGroup
from lastcall.errors import LastcallError, NotPermitted, ShutdownUnderWay
from lastcall.graceful import delay_limit
from lastcall.names import LOCK_WHO
from lastcall.ports.node import Clock, DelayLimitFiles, LockKeeper, LogindSession

WHY = "Ends the pods of this node in order"
"""The reason in the output of ``systemd-inhibit --list``."""

RELOAD_SECONDS = 5.0
"""How long logind may take to apply a new limit; no signal announces it, because the property is constant."""

RETRY_SECONDS = 60.0
"""Seconds before the next attempt to raise the limit after a failed one."""

CLOSELY_SECONDS = 60.0
"""Seconds after a change of a file during which the limit is read often: a reload of logind usually follows soon."""

log = logging.getLogger(__name__)


class DelayInhibitor:
    """The delay lock and the delay limit. ``granted`` is logind's limit in seconds, None while it is unknown."""

    def __init__(self, *, keeper: LockKeeper, files: DelayLimitFiles, clock: Clock, wake: Callable[[], None]) -> None:
        self._keeper = keeper
        self._files = files
        self._clock = clock
        self._wake = wake
        self._raising = OrderedTaskGroup()
        self._next_raise = 0.0
        self._raised_to = 0.0
        self._outdated = False
        self._requested = 0.0
        self._closely_until = 0.0
        self.granted: float | None = None
        self.degraded = ""
        """Why logind grants less than requested, as one sentence with the remedy; "" if it grants enough."""
        self.problem = ""
        """Why no lock is held, as one sentence."""

    @property
    def is_held(self) -> bool:
        """Whether a lock is held."""
        return self._keeper.is_held

    @property
    def is_usable(self) -> bool:
        """Whether a lock is held that does not need to be replaced."""
        return self._keeper.is_held and not self._outdated

    @property
    def limit_may_change(self) -> bool:
        """Whether the limit may change soon."""
        return self._clock.boottime() < self._closely_until

    async def watch_files(self) -> None:
        """Until cancelled: when a file changes, warns about the limit after a reload and has the limit read often."""
        while True:
            await self._files.wait_for_change()
            self._next_raise = 0.0
            self._closely_until = self._clock.boottime() + CLOSELY_SECONDS
            try:
                said = delay_limit.explain_limit_after_reload(self._files.list_drop_ins(), self._requested)
            except (LastcallError, OSError) as error:
                said = str(error)
            if said and not self.degraded:
                log.warning("%s", said)
            self._wake()

    async def recover(self) -> None:
        """Recovers the lock of an earlier process, which may have set a deadline on it."""
        self._outdated = await self._keeper.recover()

    def invalidate(self) -> None:
        """Marks the held lock for replacement: a cancelled shutdown left its deadline on it."""
        self._outdated = True

    async def acquire(self, session: LogindSession) -> bool:
        """Ensures that a lock is held that logind knows; replaces an outdated one. False if none can be taken."""
        if self.is_usable and await self._is_known_to_logind(session):
            return True
        try:
            descriptor = await session.take_lock(WHY)
        except (ShutdownUnderWay, NotPermitted) as error:
            if str(error) != self.problem and not self._keeper.is_held:
                log.warning("no delay lock can be taken: %s", error)
            self.problem = str(error)
            return self._keeper.is_held
        await self._keeper.keep_lock(descriptor)
        self._outdated = False
        self.problem = ""
        return True

    async def release(self) -> None:
        """Releases the lock; every copy of it is closed when this returns."""
        await self._keeper.release()

    async def set_deadline(self, boottime: float) -> None:
        """Sets when the keeper closes the lock by itself, even if this process is gone (CLOCK_BOOTTIME seconds)."""
        await self._keeper.set_deadline(boottime)

    def update_limit(self, session: LogindSession, granted: float, requested: float) -> None:
        """Records the granted limit; starts to raise it if it is below ``requested``."""
        self.granted, self._requested = granted, requested
        if not delay_limit.grants_too_little(requested, granted):
            self.degraded = ""
        elif not self._raising.running_count and (
            requested != self._raised_to or self._clock.boottime() >= self._next_raise
        ):
            self._raised_to = requested
            self._next_raise = self._clock.boottime() + RETRY_SECONDS
            self._raising = OrderedTaskGroup()
            self._raising.start(self._raise_limit(session, requested), "raise the delay limit")

    async def close(self) -> None:
        """Cancels the background work; leaves the lock as it is."""
        await self._raising.cancel()

    async def _is_known_to_logind(self, session: LogindSession) -> bool:
        return any(i.who == LOCK_WHO and i.mode == "delay" for i in await session.list_inhibitors())

    async def _raise_limit(self, session: LogindSession, requested: float) -> None:
        try:
            self._files.write_limit(math.ceil(requested))
            await session.reload()
            granted = await self._wait_for_limit(session, requested)
        except (LastcallError, OSError) as error:
            granted = self.granted or 0.0
            reason = str(error)
        else:
            reason = delay_limit.explain_limit(self._files.list_drop_ins(), requested, granted)
        self.granted = granted
        if delay_limit.grants_too_little(requested, granted):
            if reason != self.degraded:
                log.warning("armed with less than asked for: %s", reason)
            self.degraded = reason
        else:
            log.info("logind now grants %g s", granted)
            self.degraded = ""
        self._wake()

    async def _wait_for_limit(self, session: LogindSession, requested: float) -> float:
        end = self._clock.boottime() + RELOAD_SECONDS
        while True:
            granted = await session.max_delay()
            if not delay_limit.grants_too_little(requested, granted) or self._clock.boottime() >= end:
                return granted
            await self._clock.sleep(0.1)
