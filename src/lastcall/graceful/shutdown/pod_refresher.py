"""Refreshes the list of running pods during a shutdown, without holding it up."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from lastcall.aio import cancel_and_wait, wait_any, wait_first
from lastcall.graceful.shutdown.roster import Roster
from lastcall.ports.node import Clock, PodRuntime, RunningPod

LOOK_AFTER = 0.05
"""Delay before the first fresh list, unless it is needed earlier: an immediate request would delay the SIGTERMs."""

LOOK_SECONDS = 1.0
"""How long to wait for one fresh list in all before the current one must do: the phases need the time more."""

LAST_LOOK_SECONDS = 5.0
"""The same limit when only the first fresh list is still awaited: pods that only it shows would get no SIGTERM."""


class PodRefresher:
    """Keeps the roster up to date. ``note`` gets the reason of a failed refresh; ``found`` is called after each one."""

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
        """Whether a fresh list has arrived."""

    async def read_cached(self) -> bool:
        """Reads the runtime's cached list; False if the runtime does not answer."""
        return await self._update_roster(self._runtime.list_pods())

    def start_refresh(self, *, after: float = 0.0) -> None:
        """Requests a fresh list after that many seconds or when it is needed, unless a request is under way."""
        if self._look is None or self._look.done():
            self._asked = self._clock.boottime()
            self._look = asyncio.create_task(self._refresh_list(after), name="look for pods")

    async def wait_for_refresh(self, within: float = LOOK_SECONDS) -> None:
        """Waits for the requested list, until ``within`` seconds after its request."""
        self._needed.set()
        left = self._asked + within - self._clock.boottime()
        if self._look and left > 0:
            await wait_first(wait_any(self._look), self._clock.sleep(left))

    async def close(self) -> None:
        """Cancels the request under way."""
        if self._look:
            await cancel_and_wait(self._look)

    async def _refresh_list(self, after: float) -> None:
        if after:
            await wait_first(self._needed.wait(), self._clock.sleep(after))
        self.seen = await self._update_roster(self._runtime.refresh_pods()) or self.seen
        self._found()

    async def _update_roster(self, asked: Awaitable[Sequence[RunningPod]]) -> bool:
        """Updates the roster. Any error leaves it as it is, so that the known pods are terminated all the same."""
        try:
            self._roster.update(await asked)
        except Exception as error:
            if str(error) != self._noted:
                self._note(f"the container runtime cannot list its pods: {error}")
            self._noted = str(error)
            return False
        self._noted = ""
        return True
