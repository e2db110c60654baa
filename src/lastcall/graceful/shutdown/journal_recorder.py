"""Records a shutdown's events: first in the journal, then with the listeners."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from lastcall.aio import OrderedTaskGroup
from lastcall.model.shutdown import JournalEvent, to_line
from lastcall.ports.node import JournalFile

Listener = Callable[[JournalEvent], None]

log = logging.getLogger(__name__)


class JournalRecorder:
    """Appends every event to the journal before anything acts on it; a write error never stops the shutdown."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._journal: JournalFile | None = None
        self._syncs = OrderedTaskGroup()
        self.events: list[JournalEvent] = []
        """The events of the current journal's shutdown, kept even if the journal cannot be written."""

    def switch_journal(self, journal: JournalFile | None) -> None:
        """Switches to another shutdown's journal; None for no journal."""
        self._journal = journal
        self.events = []

    def record(self, event: JournalEvent) -> None:
        """Appends the event and notifies the listeners. On return the kernel has it: it survives this process."""
        if self._journal:
            try:
                self._journal.append(to_line(event))
            except OSError as error:
                log.error("the journal cannot be written, continuing without it: %s", error)
                self._journal = None
        self._notify_listeners(event)

    def replay(self, events: Sequence[JournalEvent]) -> None:
        """Passes the events of an earlier process to the listeners, without writing them again."""
        for event in events:
            self._notify_listeners(event)

    def start_sync(self) -> "asyncio.Task[None] | None":
        """Starts an fsync of the events recorded so far, so that they survive a crash of the machine."""
        if not self._journal:
            return None
        return self._syncs.start(self._sync_journal(self._journal), "journal sync")

    async def wait_for_sync(self) -> None:
        """Waits for the syncs that ``start_sync`` started."""
        await self._syncs.join()

    def _notify_listeners(self, event: JournalEvent) -> None:
        self.events.append(event)
        for listener in self._listeners:
            listener(event)

    async def _sync_journal(self, journal: JournalFile) -> None:
        try:
            await journal.sync()
        except OSError as error:
            log.error("the journal cannot be synced to disk: %s", error)
