"""Whether the container runtime answers while a shutdown goes on.

A call that ends a container takes as long as the container does: that nothing comes back from it says nothing of the
runtime. So the runtime is asked beside it, again and again, for what it can answer at once.
"""

import asyncio

from lastcall.aio import cancel_and_wait, wait_any, wait_first
from lastcall.errors import LastcallError
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.model.shutdown import RuntimeAnswered, RuntimeSilent
from lastcall.ports.node import Clock, PodRuntime

FIRST_SECONDS = 0.25
"""When the first question is asked, in seconds after the beginning: asked at once, it would delay the SIGTERMs."""

EVERY_SECONDS = 1.0
"""Between an answer and the next question."""

SILENT_SECONDS = 2.0
"""After so long without an answer the runtime counts as silent: a restart is over sooner."""


class RuntimeProbe:
    """Asks the runtime while ``run`` runs, and tells when it falls silent and when it answers again."""

    def __init__(self, runtime: PodRuntime, *, clock: Clock, tell: Tell) -> None:
        self._runtime = runtime
        self._clock = clock
        self._tell = tell
        self._since: float | None = None
        self._why = "no answer"
        self.silent = False
        """Whether the runtime has not answered for ``SILENT_SECONDS``."""

    async def run(self) -> None:
        """Until cancelled."""
        wait = FIRST_SECONDS
        while True:
            await self._clock.sleep(wait)
            wait = EVERY_SECONDS if await self._ping_runtime() else FIRST_SECONDS

    async def _ping_runtime(self) -> bool:
        """Whether an answer has come, however late. What takes longer than SILENT_SECONDS is told meanwhile."""
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
