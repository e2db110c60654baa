"""The agent's line to logind: opened again whenever it is lost, for ever, a second later at the most.

A shutdown that begins as soon as the bus is back is seen so much later, and logind's time runs from its beginning.
"""

import asyncio
import logging
from collections.abc import Callable

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock, Logind, LogindChange, LogindSession

BACKOFF = (0.25, 0.5, 1.0)
"""Seconds between attempts; the last one for ever."""

log = logging.getLogger(__name__)


class LogindConnection:
    """At most one session. ``wake`` is called whenever something was heard or the line was lost."""

    def __init__(self, logind: Logind, clock: Clock, wake: Callable[[], None]) -> None:
        self._logind = logind
        self._clock = clock
        self._wake = wake
        self._session: LogindSession | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._failures = 0
        self._next_try = 0.0
        self.doubtful = True
        """Set when logind or the line began anew, until the reader has checked that the lock is still known."""
        self.problem = ""
        """Why there is no session, in one sentence."""

    @property
    def is_up(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    @property
    def retry_count(self) -> int:
        """Attempts that failed since the line was last up."""
        return self._failures

    @property
    def seconds_to_retry(self) -> float:
        """Seconds until the next attempt makes sense; 0 with a session."""
        return 0.0 if self.is_up else max(0.0, self._next_try - self._clock.boottime())

    async def get_session(self) -> LogindSession | None:
        """The session, opened if need be; None while logind cannot be reached or it is too early to try again."""
        if self._session is None and self.seconds_to_retry <= 0:
            try:
                self._session = await self._logind.open()
            except Unavailable as error:
                self._record_failure(error)
            else:
                self._failures, self.problem, self.doubtful = 0, "", True
                self._hearing = asyncio.create_task(self._listen_for_changes(self._session), name="hear logind")
        return self._session

    async def wait_for_change(self) -> None:
        """Returns when the session may answer otherwise than now; at once if nobody can know, or there is none."""
        if self._session:
            await self._session.wait_for_change()

    async def drop_session(self, error: Unavailable) -> None:
        """The session has failed: close it; the next one is tried soon."""
        await self.close()
        self._record_failure(error)

    async def close(self) -> None:
        """Leaves the bus; a lock that is kept stays."""
        if self._hearing:
            await cancel_and_wait(self._hearing)
        if self._session:
            self._session.close()
        self._session = self._hearing = None

    def _record_failure(self, error: Unavailable) -> None:
        if str(error) != self.problem:
            log.warning("logind cannot be reached: %s", error)
        self.problem = str(error)
        self._next_try = self._clock.boottime() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    async def _listen_for_changes(self, session: LogindSession) -> None:
        """Only wakes the loop, which reads the properties: a signal is not proof, a lost line is found by reading."""
        try:
            while True:
                if await session.next_change() is LogindChange.RESTARTED:
                    self.doubtful = True
                self._wake()
        except Unavailable:
            self._wake()
