"""Connects the agent to the annotation of its Node that says whether it is armed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.cluster.standing_reporter import StandingReporter
from lastcall.graceful.standing import agent_standing, is_kubelet_lock
from lastcall.model.agent_standing import RENEW_SECONDS, AgentStanding
from lastcall.ports.cluster import NodeObjects
from lastcall.ports.node import Logind


class StandingReport:
    """What the annotation says. ``pod_uid`` is the agent's own pod, "" outside one."""

    def __init__(self, objects: NodeObjects, logind: Logind, *, pod_uid: str) -> None:
        self._objects = objects
        self._logind = logind
        self._pod_uid = pod_uid
        self._clock = SystemClock()
        self._lost: set[str] = set()
        self._kubelet_lock = False
        self._next_look = 0.0

    def set_identity(self, name: str, usable: bool) -> None:
        """Records whether an identity for the API server suffices, after a check of it."""
        (self._lost.discard if usable else self._lost.add)(name)

    @contextlib.asynccontextmanager
    async def keep(self, status: Callable[[], AgentStatus | None], observes: Callable[[], bool]) -> AsyncIterator[None]:
        """Writes the annotation while the context lasts, and removes it afterwards if the machine stays up."""

        async def observe() -> AgentStanding | None:
            if self._standing(status(), observes=observes()) is not None:
                await self._look_at_locks()
            return self._standing(status(), observes=observes())

        reporter = StandingReporter(self._objects, self._clock, observe)
        running = asyncio.create_task(reporter.run(), name="standing on the Node")
        try:
            yield
        finally:
            await cancel_and_wait(running)
            await reporter.remove()

    def _standing(self, status: AgentStatus | None, *, observes: bool) -> AgentStanding | None:
        return agent_standing(
            status,
            observes=observes,
            boot_id=boot_id(),
            pod_uid=self._pod_uid,
            kubelet_lock=self._kubelet_lock,
            lost_identities=sorted(self._lost),
            wall=self._clock.wall(),
        )

    async def _look_at_locks(self) -> None:
        """Asks logind now and then whether the kubelet holds a lock, too; without an answer the last one holds."""
        if self._clock.boottime() < self._next_look:
            return
        self._next_look = self._clock.boottime() + RENEW_SECONDS
        with contextlib.suppress(LastcallError):
            session = await self._logind.open()
            try:
                self._kubelet_lock = any(map(is_kubelet_lock, await session.list_inhibitors()))
            finally:
                session.close()
