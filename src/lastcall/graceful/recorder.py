"""Where the events of a shutdown go: into the journal first, then to whoever listens."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from lastcall.aio import Group
from lastcall.model.shutdown import Event, to_line
from lastcall.ports import JournalFile

Listener = Callable[[Event], None]

log = logging.getLogger(__name__)


class Recorder:
    """Appends every event to the journal before anybody acts on it; a journal that cannot be written stops nothing."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._journal: JournalFile | None = None
        self._syncs = Group()

    def use(self, journal: JournalFile | None) -> None:
        """Where the next events are written; None for nowhere."""
        self._journal = journal

    def tell(self, event: Event) -> None:
        """Writes it, and tells the listeners. In the kernel's hands when this returns: it survives this process."""
        if self._journal:
            try:
                self._journal.append(to_line(event))
            except OSError as error:
                log.error("the journal cannot be written, going on without it: %s", error)
                self._journal = None
        for listener in self._listeners:
            listener(event)

    def remind(self, events: Sequence[Event]) -> None:
        """Tells the listeners what an earlier life of this program has journalled."""
        for event in events:
            for listener in self._listeners:
                listener(event)

    def sync(self) -> "asyncio.Task[None] | None":
        """Begins to bring what was told to the disk, where it survives the machine."""
        if not self._journal:
            return None
        return self._syncs.start(self._sync(self._journal), "journal sync")

    async def settle(self) -> None:
        """Waits for what ``sync`` began."""
        await self._syncs.join()

    async def _sync(self, journal: JournalFile) -> None:
        try:
            await journal.sync()
        except OSError as error:
            log.error("the journal cannot be brought to the disk: %s", error)
