"""Runs the rounds about EvictionRequests: work of the guard that leads, where it is switched on and the API is served."""

import logging
from collections.abc import Sequence
from typing import Protocol

from lastcall.aio import wait_first
from lastcall.errors import ApiNotPermitted, LastcallError
from lastcall.model.eviction_requests import API_VERSION
from lastcall.ports.eviction_requests import EvictionCluster, EvictionObjects
from lastcall.ports.node import Clock

LOOK_SECONDS = 2.0
"""Between two rounds while an eviction goes on: of pods and budgets nothing is heard."""

IDLE_SECONDS = 15.0
"""The same while none goes on."""

ABSENT_SECONDS = 600.0
"""Between two questions whether the API is served."""

log = logging.getLogger(__name__)


class EvictionRound(Protocol):
    """One part of the work."""

    async def run_round(self) -> None:
        """Looks at all objects once, and does what is due."""
        ...


class EvictionRequestLoop:
    """``parts`` take their rounds one after the other."""

    def __init__(
        self, objects: EvictionObjects, cluster: EvictionCluster, parts: Sequence[EvictionRound], clock: Clock
    ) -> None:
        self._objects = objects
        self._cluster = cluster
        self._parts = parts
        self._clock = clock
        self._told = ""

    async def run(self) -> None:
        """Runs until cancelled. Without the API it only asks for it now and then, and the rest of the guard works."""
        while pause := await self._look_for_api():
            await self._clock.sleep(pause)
        await wait_first(self._objects.run(), self._run_rounds())

    async def _look_for_api(self) -> float:
        """0 if the API is there, else the seconds until the next look."""
        pause = ABSENT_SECONDS
        try:
            if await self._cluster.is_served():
                log.info("EvictionRequests are answered: the API server serves %s", API_VERSION)
                return 0.0
            why = f"the API server does not serve {API_VERSION}, which Kubernetes 1.37 has behind EvictionRequestAPI"
        except ApiNotPermitted as error:
            why = f"the guard may not read them: {error}"
        except LastcallError as error:
            why, pause = str(error), IDLE_SECONDS
        self._tell(f"EvictionRequests are not answered, and all else of the guard works: {why}")
        return pause

    def _tell(self, sentence: str) -> None:
        if sentence != self._told:
            log.warning("%s", sentence)
        self._told = sentence

    async def _run_rounds(self) -> None:
        await self._objects.wait_for_change(-1)
        while True:
            seen = self._objects.changes
            for part in self._parts:
                await part.run_round()
            is_idle = all(one.is_over for one in self._objects.evictions)
            pause = IDLE_SECONDS if is_idle else LOOK_SECONDS
            await wait_first(self._objects.wait_for_change(seen), self._clock.sleep(pause))
