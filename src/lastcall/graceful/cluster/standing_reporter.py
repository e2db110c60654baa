"""Keeps the Node's annotation up to date that says whether this agent is armed, beside everything else.

Nothing waits for it, and nothing is written while a shutdown is under way.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable

from lastcall.aio import timeout
from lastcall.errors import LastcallError
from lastcall.model.agent_standing import LEAST_SECONDS, AgentStanding, is_write_due, standing_annotations
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Clock

LOOK_SECONDS = 5.0
"""Seconds between two comparisons with what was written."""

REMOVE_SECONDS = 1.0
"""Longest time in seconds for which the end of the agent waits for the annotation's removal."""

log = logging.getLogger(__name__)


class StandingReporter:
    """``observe`` returns the standing now; None while a shutdown is under way, or before it is known."""

    def __init__(
        self, objects: NodeObjects, clock: Clock, observe: Callable[[], Awaitable[AgentStanding | None]]
    ) -> None:
        self._objects = objects
        self._clock = clock
        self._observe = observe
        self._written: AgentStanding | None = None
        self._written_at = 0.0
        self._trouble = ""

    async def run(self) -> None:
        """Writes changes, and an unchanged standing now and then, until it is cancelled. Logs a failure once."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            standing = await self._observe()
            since = self._clock.boottime() - self._written_at
            if standing is None or not self._objects.is_connected() or not is_write_due(standing, self._written, since):
                continue
            try:
                await self._write(standing)
            except LastcallError as error:
                if str(error) != self._trouble:
                    log.warning("the Node does not show whether this agent is armed: %s", error)
                self._trouble = str(error)
                await self._clock.sleep(LEAST_SECONDS)
            else:
                self._written, self._written_at, self._trouble = standing, self._clock.boottime(), ""

    async def remove(self) -> None:
        """Removes the annotation when the agent ends and no shutdown is under way, as far as that is quick."""
        if self._written is not None and await self._observe() is not None:
            with contextlib.suppress(LastcallError, TimeoutError):
                async with timeout(REMOVE_SECONDS):
                    await self._write(None)

    async def _write(self, standing: AgentStanding | None) -> None:
        await self._objects.patch_node({"metadata": {"annotations": standing_annotations(standing)}})
