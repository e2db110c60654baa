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
        self.events: list[Event] = []
        """Those of the shutdown whose journal is in use, also if it cannot be written."""

    def use(self, journal: JournalFile | None) -> None:
        """Where the events of another shutdown are written from now on; None for nowhere."""
        self._journal = journal
        self.events = []

    def tell(self, event: Event) -> None:
        """Writes it, and tells the listeners. In the kernel's hands when this returns: it survives this process."""
        if self._journal:
            try:
                self._journal.append(to_line(event))
            except OSError as error:
                log.error("the journal cannot be written, going on without it: %s", error)
                self._journal = None
        self._pass_on(event)

    def remind(self, events: Sequence[Event]) -> None:
        """Tells the listeners what an earlier life of this program has journalled."""
        for event in events:
            self._pass_on(event)

    def sync(self) -> "asyncio.Task[None] | None":
        """Begins to bring what was told to the disk, where it survives the machine."""
        if not self._journal:
            return None
        return self._syncs.start(self._sync(self._journal), "journal sync")

    async def settle(self) -> None:
        """Waits for what ``sync`` began."""
        await self._syncs.join()

    def _pass_on(self, event: Event) -> None:
        self.events.append(event)
        for listener in self._listeners:
            listener(event)

    async def _sync(self, journal: JournalFile) -> None:
        try:
            await journal.sync()
        except OSError as error:
            log.error("the journal cannot be brought to the disk: %s", error)
