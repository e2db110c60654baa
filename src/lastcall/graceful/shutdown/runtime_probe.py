"""Probes whether the container runtime answers during a shutdown.

A stop call takes as long as the container takes to end, so its silence says nothing about the runtime. The probe
therefore sends a separate request, repeatedly, that the runtime can answer at once.
"""

import asyncio

from lastcall.aio import cancel_and_wait, wait_any, wait_first
from lastcall.errors import LastcallError
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.model.shutdown import RuntimeAnswered, RuntimeSilent
from lastcall.ports.node import Clock, PodRuntime

FIRST_SECONDS = 0.25
"""Seconds from the beginning to the first request: an immediate one would delay the SIGTERMs."""

EVERY_SECONDS = 1.0
"""Seconds between an answer and the next request."""

SILENT_SECONDS = 2.0
"""The runtime counts as silent after so many seconds without an answer: a restart takes less."""


class RuntimeProbe:
    """Probes the runtime while ``run`` runs, and reports when it falls silent and when it answers again."""

    def __init__(self, runtime: PodRuntime, *, clock: Clock, tell: Tell) -> None:
        self._runtime = runtime
        self._clock = clock
        self._tell = tell
        self._since: float | None = None
        self._why = "no answer"
        self.silent = False
        """Whether the runtime has not answered for ``SILENT_SECONDS``."""

    async def run(self) -> None:
        """Probes until cancelled."""
        wait = FIRST_SECONDS
        while True:
            await self._clock.sleep(wait)
            wait = EVERY_SECONDS if await self._ping_runtime() else FIRST_SECONDS

    async def _ping_runtime(self) -> bool:
        """Waits for an answer, however late. Returns whether one came; reports silence after SILENT_SECONDS."""
        began = self._clock.boottime()
        since = self._since = began if self._since is None else self._since
        asking = asyncio.ensure_future(self._runtime.ping())
        try:
            if await wait_first(wait_any(asking), self._clock.sleep(since + SILENT_SECONDS - began)):
                self._report_silence(since)
                await wait_any(asking)
            asking.result()
        except LastcallError as error:
            self._why = str(error)
            if self._clock.boottime() >= since + SILENT_SECONDS:
                self._report_silence(since)
            return False
        finally:
            await cancel_and_wait(asking)
        self._report_answer(since)
        return True

    def _report_silence(self, since: float) -> None:
        if not self.silent:
            self.silent, now = True, self._clock.boottime()
            self._tell(RuntimeSilent(at=now, seconds=round(now - since, 3), why=self._why))

    def _report_answer(self, since: float) -> None:
        self._since, self._why = None, "no answer"
        if self.silent:
            self.silent, now = False, self._clock.boottime()
            self._tell(RuntimeAnswered(at=now, seconds=round(now - since, 3)))
