"""The real kubelet's graceful node shutdown, as the baseline for lastcall (``pkg/kubelet/nodeshutdown``, 1.36).

It reproduces that code with its faults: it takes the inhibitor lock once or never, knows nothing after a restart, sees
a cancelled shutdown only after all phases have ended, and runs the phases by timers that do not wait for the pods they
kill. The pauses were measured on a kubelet 1.36.2.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol

from lastcall import names
from lastcall.aio import wait_first
from lastcall.errors import LastcallError, NotPermitted, Unavailable
from lastcall.graceful.planning.phase_assignment import assign_pods
from lastcall.model import decoding
from lastcall.model.duration import format_seconds
from lastcall.model.pods import Pod
from lastcall.model.shutdown import PhasePlan
from lastcall.ports.node import Clock, Logind, LogindChange, LogindSession
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.node.node_face import ORDER
from lastcall_lab.kubelet.pod.pod_terminator import TerminationOrder
from lastcall_lab.kubelet.pod.pod_worker import PodWorker

DROP_IN = "99-kubelet.conf"
"""The name of logind's drop-in; a drop-in with a later name takes precedence."""

WHY = "Kubelet needs time to handle node shutdown"

LIMIT_ATTEMPTS, LIMIT_PAUSE = 5, 0.1
"""Checks of logind's limit; each pause is twice the one before."""

RECONNECT = 1.0
"""Seconds between two attempts to reconnect to the bus (``dbusReconnectPeriod``)."""

FIRST_TERM = 0.03
"""Seconds from the signal, when the first phase's timer starts, to the first SIGTERM."""

AFTER_PODS = 0.6
"""Seconds from the end of a phase's last container to the end of the phase, for the check of its volumes."""

log = logging.getLogger(__name__)


class DelayDropIns(Protocol):
    """logind's drop-ins (``fakes.delay_limit_files.FakeLimitFiles``)."""

    def put(self, name: str, value: str) -> None:
        """Writes a drop-in that sets InhibitDelayMaxSec."""
        ...


class KubeletShutdownManager:
    """``groups`` in ascending priority; without groups it does nothing. ``release`` closes a lock's descriptor."""

    def __init__(
        self,
        kubelet: LabKubelet,
        groups: Sequence[PhasePlan],
        *,
        logind: Logind,
        files: DelayDropIns,
        release: Callable[[int], None],
        clock: Clock,
    ) -> None:
        self._kubelet = kubelet
        self._groups = tuple(groups)
        self._logind = logind
        self._files = files
        self._release = release
        self._clock = clock
        self._lock: int | None = None

    @property
    def is_armed(self) -> bool:
        """Whether it holds an inhibitor lock."""
        return self._lock is not None

    async def run(self) -> None:
        """Runs until cancelled. Never retries a failed start."""
        if not self._groups:
            return
        try:
            session = await self._take_lock()
        except LastcallError as error:
            log.error("Failed to start node shutdown manager: %s", error)
            return
        try:
            while True:
                session = await self._handle_change(session)
        finally:
            session.close()
            self._release_lock()

    # -- arming --------------------------------------------------------------------------------------------------------

    async def _take_lock(self) -> LogindSession:
        """Takes the inhibitor lock. NotPermitted if logind does not grant the time of all phases."""
        session = await self._logind.open()
        try:
            await self._raise_limit(session)
            self._lock = await session.take_lock(WHY)
        except BaseException:
            session.close()
            raise
        return session

    async def _raise_limit(self, session: LogindSession) -> None:
        wanted = sum(group.seconds for group in self._groups)
        if await session.max_delay() >= wanted:
            return
        self._files.put(DROP_IN, str(wanted))
        await session.reload()
        pause = LIMIT_PAUSE
        for attempt in range(LIMIT_ATTEMPTS):
            if await session.max_delay() >= wanted:
                return
            if attempt < LIMIT_ATTEMPTS - 1:
                await self._clock.sleep(pause)
                pause *= 2
        granted = await session.max_delay()
        raise NotPermitted(
            f"node shutdown manager was timed out after {LIMIT_ATTEMPTS} attempts waiting for logind"
            f" InhibitDelayMaxSec to update to {format_seconds(wanted)} (ShutdownGracePeriod), current value is"
            f" {format_seconds(granted)}"
        )

    async def _handle_change(self, session: LogindSession) -> LogindSession:
        """Handles one signal of logind; opens a new session if this one is lost."""
        try:
            change = await session.next_change()
        except Unavailable:
            return await self._reconnect(session)
        if change is LogindChange.PREPARING:
            await self._end_pods()
        elif change is LogindChange.CANCELLED:
            await self._cancel_shutdown(session)
        return session

    async def _reconnect(self, session: LogindSession) -> LogindSession:
        session.close()
        while True:
            await self._clock.sleep(RECONNECT)
            log.info("Restarting watch for node shutdown events")
            try:
                self._release_lock()
                return await self._take_lock()
            except LastcallError as error:
                log.error("Unable to watch the node for shutdown events: %s", error)

    def _release_lock(self) -> None:
        if self._lock is not None:
            lock, self._lock = self._lock, None
            self._release(lock)

    # -- shutdown ------------------------------------------------------------------------------------------------------

    async def _end_pods(self) -> None:
        """Ends the pods without waiting until other components see the node as not ready."""
        began = self._clock.boottime()
        self._log_event("Shutdown manager detected shutdown event")
        self._kubelet.going_down = True
        self._kubelet.node.request_status_write()
        await self._clock.sleep(FIRST_TERM)
        for index, (group, workers) in enumerate(self._plan_phases()):
            if workers:
                await self._run_phase(group, workers, began if index == 0 else self._clock.boottime())
        self._release_lock()
        log.info("Shutdown manager completed processing shutdown event, node will shutdown shortly")

    async def _cancel_shutdown(self, session: LogindSession) -> None:
        self._log_event("Shutdown manager detected shutdown cancellation")
        self._kubelet.going_down = False
        self._kubelet.node.request_status_write()
        if self._lock is None:
            try:
                self._lock = await session.take_lock(WHY)
            except LastcallError as error:
                log.error("the inhibitor lock cannot be taken again: %s", error)

    def _log_event(self, message: str) -> None:
        self._kubelet.events.record_event(self._kubelet.node.known, "Normal", names.SHUTDOWN_EVENT, message)

    def _plan_phases(self) -> list[tuple[PhasePlan, list[PodWorker]]]:
        """Groups the current pods by priority, once."""
        active = [worker for worker in self._kubelet.pods.workers.values() if not worker.over.is_set()]
        pods = {worker.record.uid: decoding.convert(worker.record.pod, Pod, worker.record.uid) for worker in active}
        phases = assign_pods(self._groups, pods.values())
        return [
            (group, [self._kubelet.pods.workers[pod.metadata.uid] for pod in phase])
            for group, phase in zip(self._groups, phases, strict=True)
        ]

    async def _run_phase(self, group: PhasePlan, workers: Sequence[PodWorker], began: float) -> None:
        """Ends all pods of a phase at once.

        Ends when all containers stop and volumes are unmounted, or at the timer.
        """
        for worker in workers:
            asked = worker.record.pod["spec"].get("terminationGracePeriodSeconds", math.inf)
            grace = max(self._kubelet.means.settings.least_grace, min(group.seconds, asked))
            worker.end(TerminationOrder(grace, ORDER.reason, ORDER.message, ORDER.conditions))
        left = began + group.seconds - self._clock.boottime()
        if await wait_first(self._wait_for_ended(workers), self._clock.sleep(max(0.0, left))) == 1:
            log.info("Shutdown manager pod killing time out: %s s, priority %s", group.seconds, group.priority)

    async def _wait_for_ended(self, workers: Sequence[PodWorker]) -> None:
        for worker in workers:
            await worker.cleaned.wait()
        await self._clock.sleep(AFTER_PODS)
