"""Where the events of a shutdown go: into the journal first, then to whoever listens."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from lastcall.aio import OrderedTaskGroup
from lastcall.model.shutdown import JournalEvent, to_line
from lastcall.ports.node import JournalFile

Listener = Callable[[JournalEvent], None]

log = logging.getLogger(__name__)


class JournalRecorder:
    """Appends every event to the journal before anybody acts on it; a journal that cannot be written stops nothing."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._journal: JournalFile | None = None
        self._syncs = OrderedTaskGroup()
        self.events: list[JournalEvent] = []
        """Those of the shutdown whose journal is in use, also if it cannot be written."""

    def switch_journal(self, journal: JournalFile | None) -> None:
        """Where the events of another shutdown are written from now on; None for nowhere."""
        self._journal = journal
        self.events = []

    def record(self, event: JournalEvent) -> None:
        """Writes it, and tells the listeners. In the kernel's hands when this returns: it survives this process."""
        if self._journal:
            try:
                self._journal.append(to_line(event))
            except OSError as error:
                log.error("the journal cannot be written, going on without it: %s", error)
                self._journal = None
        self._notify_listeners(event)

    def replay(self, events: Sequence[JournalEvent]) -> None:
        """Tells the listeners what an earlier life of this program has journalled."""
        for event in events:
            self._notify_listeners(event)

    def start_sync(self) -> "asyncio.Task[None] | None":
        """Begins to bring what was told to the disk, where it survives the machine."""
        if not self._journal:
            return None
        return self._syncs.start(self._sync_journal(self._journal), "journal sync")

    async def wait_for_sync(self) -> None:
        """Waits for what ``start_sync`` began."""
        await self._syncs.join()

    def _notify_listeners(self, event: JournalEvent) -> None:
        self.events.append(event)
        for listener in self._listeners:
            listener(event)

    async def _sync_journal(self, journal: JournalFile) -> None:
        try:
            await journal.sync()
        except OSError as error:
            log.error("the journal cannot be brought to the disk: %s", error)
