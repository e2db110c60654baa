"""Asks the runtime what runs while a shutdown goes on, without holding it up."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lastcall.aio import cancel_and_wait, wait_any, wait_first
from lastcall.graceful.shutdown.roster import Roster
from lastcall.ports.node import Clock, PodRuntime, RunningPod

LOOK_AFTER = 0.05
"""How long the first fresh list of pods waits, unless it is needed: asked for at once, it would delay the SIGTERMs."""

LOOK_SECONDS = 1.0
"""How long one fresh list is waited for, in all, before the one at hand has to do: the phases' time is worth more."""

LAST_LOOK_SECONDS = 5.0
"""The same, where nothing but the first fresh list is left to wait for: what only it has would get no SIGTERM."""


class PodRefresher:
    """Keeps the roster up to date. ``note`` is told why a list could not be had, ``found`` is called after each look."""

    def __init__(
        self,
        runtime: PodRuntime,
        roster: Roster,
        *,
        clock: Clock,
        note: Callable[[str], None],
        found: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._roster = roster
        self._clock = clock
        self._note = note
        self._found = found
        self._needed = asyncio.Event()
        self._look: asyncio.Task[None] | None = None
        self._asked = 0.0
        self._noted = ""
        self.seen = False
        """Whether a fresh list has come."""

    async def read_cached(self) -> bool:
        """Takes the list that the runtime has ready; False if it does not answer."""
        return await self._update_roster(self._runtime.list_pods())

    def start_refresh(self, *, after: float = 0.0) -> None:
        """Begins to get a fresh list, in so many seconds or when it is needed, if that is not under way already."""
        if self._look is None or self._look.done():
            self._asked = self._clock.boottime()
            self._look = asyncio.create_task(self._refresh_list(after), name="look for pods")

    async def wait_for_refresh(self, within: float = LOOK_SECONDS) -> None:
        """Waits for the list that ``start_refresh`` asks for, until so many seconds after it was asked for."""
        self._needed.set()
        left = self._asked + within - self._clock.boottime()
        if self._look and left > 0:
            await wait_first(wait_any(self._look), self._clock.sleep(left))

    async def close(self) -> None:
        """Asks no more."""
        if self._look:
            await cancel_and_wait(self._look)

    async def _refresh_list(self, after: float) -> None:
        if after:
            await wait_first(self._needed.wait(), self._clock.sleep(after))
        self.seen = await self._update_roster(self._runtime.refresh_pods()) or self.seen
        self._found()

    async def _update_roster(self, asked: Awaitable[Sequence[RunningPod]]) -> bool:
        """Whatever goes wrong, the pods that are known are ended."""
        try:
            self._roster.update(await asked)
        except Exception as error:
            if str(error) != self._noted:
                self._note(f"the runtime does not say what runs: {error}")
            self._noted = str(error)
            return False
        self._noted = ""
        return True
