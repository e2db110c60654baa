"""The agent's connection to logind: reopened whenever it is lost, without limit, at most one second apart.

logind's delay runs from the beginning of a shutdown, so a late reconnection costs that much of the pods' time.
"""

import asyncio
import logging
from collections.abc import Callable

from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock, Logind, LogindChange, LogindSession

BACKOFF = (0.25, 0.5, 1.0)
"""Seconds between attempts; the last one repeats."""

log = logging.getLogger(__name__)


class LogindConnection:
    """At most one session. ``wake`` is called at every change that logind signals and when the connection is lost."""

    def __init__(self, logind: Logind, clock: Clock, wake: Callable[[], None]) -> None:
        self._logind = logind
        self._clock = clock
        self._wake = wake
        self._session: LogindSession | None = None
        self._listening: asyncio.Task[None] | None = None
        self._failures = 0
        self._next_try = 0.0
        self.doubtful = True
        """Set when logind or the connection restarts, until the agent has verified that logind knows the lock."""
        self.problem = ""
        """Why there is no session, as one sentence."""

    @property
    def is_up(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    @property
    def retry_count(self) -> int:
        """Failed attempts since the connection was last up."""
        return self._failures

    @property
    def seconds_to_retry(self) -> float:
        """Seconds until the next attempt is due; 0 with a session."""
        return 0.0 if self.is_up else max(0.0, self._next_try - self._clock.boottime())

    async def get_session(self) -> LogindSession | None:
        """The session, opened if necessary; None while logind cannot be reached or the next attempt is not due."""
        if self._session is None and self.seconds_to_retry <= 0:
            try:
                self._session = await self._logind.open()
            except Unavailable as error:
                self._record_failure(error)
            else:
                self._failures, self.problem, self.doubtful = 0, "", True
                self._listening = asyncio.create_task(self._listen_for_changes(self._session), name="listen to logind")
        return self._session

    async def wait_for_change(self) -> None:
        """Returns when the session's answers may have changed; at once if that is unknown or there is no session."""
        if self._session:
            await self._session.wait_for_change()

    async def drop_session(self, error: Unavailable) -> None:
        """Closes a session that failed, and schedules the next attempt."""
        await self.close()
        self._record_failure(error)

    async def close(self) -> None:
        """Leaves the bus; a lock that is held stays held."""
        if self._listening:
            await cancel_and_wait(self._listening)
        if self._session:
            self._session.close()
        self._session = self._listening = None

    def _record_failure(self, error: Unavailable) -> None:
        if str(error) != self.problem:
            log.warning("logind cannot be reached: %s", error)
        self.problem = str(error)
        self._next_try = self._clock.boottime() + BACKOFF[min(self._failures, len(BACKOFF) - 1)]
        self._failures += 1

    async def _listen_for_changes(self, session: LogindSession) -> None:
        """Only wakes the loop: a signal is no proof. The loop reads the properties, and so finds a lost connection."""
        try:
            while True:
                if await session.next_change() is LogindChange.RESTARTED:
                    self.doubtful = True
                self._wake()
        except Unavailable:
            self._wake()
