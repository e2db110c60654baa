"""Asks one source again and again, and passes on what it says; a source that fails changes nothing."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from lastcall.errors import LastcallError
from lastcall.graceful.deadlines.findings import SourceFinding
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)


class NoticeTaker(Protocol):
    """Who acts on notices: the agent."""

    def put_notice(self, notice: ShutdownNotice) -> bool:
        """The machine goes down; returns whether that is news."""
        ...

    def withdraw_notice(self, source: NoticeSource) -> bool:
        """The machine stays up; returns whether a notice of this source held."""
        ...


class SourceWatch:
    """One source. ``on_look`` gets its warning and why it has not answered, after each look; "" for none."""

    def __init__(
        self,
        source: NoticeSource,
        look: Callable[[], Awaitable[SourceFinding]],
        taker: NoticeTaker,
        *,
        clock: Clock,
        pause: float,
        pause_after_failure: float,
        on_look: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._source = source
        self._look = look
        self._taker = taker
        self._clock = clock
        self._pause = pause
        self._pause_after_failure = pause_after_failure
        self._on_look = on_look
        self._failure = ""
        self._warning = ""

    async def run(self) -> None:
        """Looks until it is cancelled. Logs a failure and a warning when they change."""
        while True:
            worked = await self.look_once()
            await self._clock.sleep(self._pause if worked else self._pause_after_failure)

    async def look_once(self) -> bool:
        """One look; returns whether the source has answered. A notice that held before a failure holds after it."""
        try:
            found = await self._look()
        except LastcallError as error:
            return self._note_failure(str(error))
        except Exception as error:  # a bug of ours must not end the watch, nor begin a shutdown
            log.exception("%s: looking broke off", self._source.value)
            return self._note_failure(f"{type(error).__name__}: {error}")
        if self._failure:
            log.info("%s answers again", self._source.value)
        self._failure = ""
        if found.notice:
            self._taker.put_notice(found.notice)
        else:
            self._taker.withdraw_notice(self._source)
        if found.warning and found.warning != self._warning:
            log.warning("%s: %s", self._source.value, found.warning)
        self._warning = found.warning
        self._on_look(found.warning, "")
        return True

    def _note_failure(self, why: str) -> bool:
        if why != self._failure:
            log.warning("%s cannot be asked whether the machine shuts down: %s", self._source.value, why)
        self._failure = why
        self._on_look(self._warning, why)
        return False
