"""The NodeFace of a node whose pods a kubelet runs: the kubelet is stopped, or it would restart what we end.

A kubelet restarts a container that was stopped through the CRI 0.7 s later. It also writes the status of the node and
the pods, which would overwrite ours within ten seconds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.aio import Signal, cancel_and_wait, wait_any, wait_first
from lastcall.errors import TimedOut
from lastcall.model.shutdown import ShutdownRecord
from lastcall.names import KUBELET_START, KUBELET_TIMER
from lastcall.ports.node import ApplicationReadiness, Clock, RunningPod
from lastcall.ports.units import OpenUnits, Units

MARGIN = 60.0
"""Seconds after the shutdown's deadline at which the kubelet is started again if the machine still runs."""

BACK_SECONDS = 2.0
"""Seconds that ``mark_ready`` waits; unfinished work continues in the background."""

_PATIENCE = 60.0
"""Seconds for which stopping and starting are retried."""

LOOK_SECONDS = 0.1
"""Seconds between two looks whether a stopped kubelet runs: it starts pods within a second."""

_RETRY = 0.5
_LOOK, _LATE_LOOK = 0.001, 0.015
"""Seconds between two looks at systemd's jobs, for which all SIGTERMs wait: at first, and at most."""

_LOOK_PART = 20
"""A job that takes longer is looked at less often, after another twentieth of its time: each look costs systemd and us."""

_JOB_SECONDS = 10.0
"""Seconds for a job of systemd."""

_STOP_SECONDS, _STOP_ATTEMPTS = 1.0, 10
"""Seconds for the job that stops the kubelet, which ends within a tenth of a second of its SIGTERM; attempts."""

log = logging.getLogger(__name__)


class KubeletService:
    """``ports.node.KubeletFace`` of an agent beside a kubelet that runs as ``unit``; "" if there is none to stop.

    The death of the agent never leaves the machine without a kubelet: before it is stopped, systemd gets a timer that
    starts it again. The timer is the only state. While it exists, this agent (or an earlier run of it) has stopped the
    kubelet. If the timer cannot be created, the kubelet is not stopped. Failures are logged, not raised.
    """

    def __init__(self, unit: str, clock: Clock, open_units: OpenUnits = SystemdUnits.open) -> None:
        self._unit = unit
        self._clock = clock
        self._open_units = open_units
        self._work: asyncio.Task[None] | None = None
        self._guard: asyncio.Task[None] | None = None
        self._notes: list[str] = []
        self._ending = asyncio.Event()
        self._stopped_again = Signal()

    def refuse_pods(self) -> None:
        """Does nothing: the kubelet admits pods, and a stopped one admits none."""

    async def begin_shutdown(self, deadline: float) -> None:
        """Arms the kubelet's restart, then stops the kubelet and waits for that; leaves an inactive one alone.

        A kubelet that somebody starts before ``mark_ready`` is stopped again, and the report says so.
        """
        self._ending.clear()
        if self._unit:
            await self._stop_guard()
            otherwise = f"{self._unit} is not stopped and will start again what is ended"
            work = self._replace_work(partial(self._stop_kubelet, deadline), otherwise)
            await wait_any(work)
            if self._work is work:  # else a newer intention counts
                self._guard = asyncio.create_task(self._keep_stopped(deadline), name="kubelet stays stopped")
        self._ending.set()

    async def wait_until_ending(self) -> None:
        """``ports.node.KubeletFace``."""
        await self._ending.wait()

    async def wait_until_stopped_again(self) -> None:
        """``ports.node.KubeletFace``."""
        await self._stopped_again.next()

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Does nothing."""

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Returns None: ``graceful.cluster`` waits."""
        return None

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Returns False at once: ``graceful.cluster`` announces pods."""
        return False

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Returns False: the volumes stay mounted, because the kubelet, which unmounts them, is stopped."""
        return False

    async def report_finished(self) -> None:
        """Returns None; ``RecordingNodeFace`` (``kube.node_shutdown_recorder``) writes the record."""

    def take_notes(self) -> Sequence[str]:
        """The kubelet's starts by others."""
        notes, self._notes = tuple(self._notes), []
        return notes

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Begins to start a kubelet that an earlier run of the agent has stopped in this boot: no shutdown is under way.

        That run's journal is gone, or was never written because the disk was full; the timer would take until the
        deadline, and a minute more.
        """
        if self._unit:
            self._replace_work(self._start_kubelet, self._not_started_text)

    async def mark_ready(self) -> None:
        """Starts the kubelet if the agent has stopped it, and removes the timer."""
        self._ending.clear()
        if self._unit:
            await self._stop_guard()
            work = self._replace_work(self._start_kubelet, self._not_started_text)
            await wait_first(wait_any(work), self._clock.sleep(BACK_SECONDS))

    async def close(self) -> None:
        """Ends the work under way; the timer stays."""
        await self._stop_guard()
        if self._work:
            await cancel_and_wait(self._work)

    # ------------------------------------------------------------------------------------------------------------------

    @property
    def _not_started_text(self) -> str:
        return f"{self._unit} is not started yet; {KUBELET_TIMER} will do it at the latest"

    async def _stop_guard(self) -> None:
        if self._guard:
            await cancel_and_wait(self._guard)
            self._guard = None

    async def _keep_stopped(self, deadline: float) -> None:
        """Stops the kubelet whenever somebody has started it.

        Ends when the timer is due: the kubelet that it starts stays.
        """
        while self._clock.boottime() + LOOK_SECONDS < deadline + MARGIN:
            try:
                async with self._open_units() as systemd:
                    await self._wait_for_start(systemd, deadline)
                await self._stop_again(deadline)
            except Exception as error:  # the next look tries again; pods are ended whatever happens here
                log.debug("whether %s runs is not known: %s", self._unit, error)
                await self._clock.sleep(_RETRY)

    async def _wait_for_start(self, systemd: Units, deadline: float) -> None:
        """Returns when the kubelet runs or is about to, or when the timer is due."""
        while self._clock.boottime() + LOOK_SECONDS < deadline + MARGIN:
            await self._clock.sleep(LOOK_SECONDS)
            [kubelet] = await systemd.unit_states(self._unit)
            if not kubelet.is_at_rest:
                return

    async def _stop_again(self, deadline: float) -> None:
        if self._clock.boottime() + LOOK_SECONDS < deadline + MARGIN:
            await self._stop_kubelet(deadline)
            self._notes.append(f"{self._unit} was started during the shutdown and is stopped again")
            self._stopped_again.set()

    def _replace_work(self, attempt: Callable[[], Awaitable[None]], otherwise: str) -> "asyncio.Task[None]":
        """Cancels the previous work, then starts this: only the newest intention counts."""
        before = self._work
        if before:
            before.cancel()
        self._work = asyncio.create_task(self._retry_until_done(attempt, otherwise, before), name="kubelet")
        return self._work

    async def _retry_until_done(
        self, attempt: Callable[[], Awaitable[None]], otherwise: str, before: "asyncio.Task[None] | None"
    ) -> None:
        """Retries until success or until patience ends; logs the first failure."""
        if before:
            await cancel_and_wait(before)
        end = self._clock.boottime() + _PATIENCE
        logged = False
        while True:
            try:
                return await attempt()
            except Exception as error:  # a bug of ours, too, must not keep pods from being ended
                if not logged:
                    log.warning("%s: %s", otherwise, error)
                logged = True
            if self._clock.boottime() >= end:
                return None
            await self._clock.sleep(_RETRY)

    async def _stop_kubelet(self, deadline: float) -> None:
        async with self._open_units() as systemd:
            kubelet, timer = await systemd.unit_states(self._unit, KUBELET_TIMER)
            if kubelet.is_at_rest:
                log.debug("%s does not run: there is nothing to stop", self._unit)
                return
            if timer.is_at_rest:
                await self._arm_timer(systemd, deadline)
            await self._stop_unit(systemd)
        log.info("%s is stopped; %s starts it again unless the machine shuts down", self._unit, KUBELET_TIMER)

    async def _stop_unit(self, systemd: Units) -> None:
        """Asks each second: whoever starts the kubelet while it stops replaces the job, and the kubelet runs again."""
        begun = self._clock.boottime()
        for left in reversed(range(_STOP_ATTEMPTS)):
            await systemd.stop_unit(self._unit)
            try:
                await self._wait_for_end(systemd, begun)
                break
            except TimedOut:
                if not left:
                    raise

    async def _wait_for_end(self, systemd: Units, begun: float) -> None:
        """Waits for the job that stops the kubelet; notes when the kubelet has its SIGTERM. ``begun``: with the first job."""
        end = self._clock.boottime() + _STOP_SECONDS
        while True:
            [state] = await systemd.unit_states(self._unit)
            if state.has_stop_signal:
                self._ending.set()
            if state.is_at_rest:
                return
            if self._clock.boottime() >= end:
                raise TimedOut(f"{self._unit} is still {state.active} after {_STOP_SECONDS:g} s")
            await self._clock.sleep(_LATE_LOOK if state.has_stop_signal else _next_look(self._clock.boottime() - begun))

    async def _arm_timer(self, systemd: Units, deadline: float) -> None:
        """Creates the timer only for a shutdown: at other times the machine has none."""
        seconds = max(_RETRY, deadline + MARGIN - self._clock.boottime())
        description = f"Starts {self._unit}, which lastcall stopped, if the machine has not shut down"
        await systemd.start_timer(KUBELET_START, seconds=seconds, starts=self._unit, description=description)
        await self._wait_for_job(systemd, KUBELET_TIMER, rests=False)

    async def _start_kubelet(self) -> None:
        async with self._open_units() as systemd:
            [timer] = await systemd.unit_states(KUBELET_TIMER)
            if timer.load == "not-found":  # it may be loaded and not running yet
                log.debug("%s was not stopped by lastcall, or is started again already", self._unit)
                return
            await systemd.start_unit(self._unit)
            await systemd.stop_unit(KUBELET_TIMER)
            await self._wait_for_job(systemd, KUBELET_TIMER, rests=True)
        log.info("%s is started again", self._unit)

    async def _wait_for_job(self, systemd: Units, name: str, *, rests: bool) -> None:
        """Waits for systemd's job; TimedOut says which state was not reached."""
        begun = self._clock.boottime()
        while True:
            [state] = await systemd.unit_states(name)
            if state.is_at_rest is rests:
                return
            waited = self._clock.boottime() - begun
            if waited >= _JOB_SECONDS:
                raise TimedOut(f"{name} is still {state.active} after {_JOB_SECONDS:g} s")
            await self._clock.sleep(_next_look(waited))


def _next_look(waited: float) -> float:
    """Seconds until the next look at a job that has taken so long."""
    return min(max(_LOOK, waited / _LOOK_PART), _LATE_LOOK)
