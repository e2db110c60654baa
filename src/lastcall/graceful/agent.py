"""The agent's loop: reads logind, asks the state machine for the next step, carries it out and reports the status.

The loop survives a lost bus, a restart of logind, a limit that cannot be raised, and its own restart during a shutdown.
A signal only wakes the loop; decisions rest on the properties that it reads next.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lastcall.aio import cancel_and_wait, wait_first
from lastcall.errors import Unavailable
from lastcall.graceful import delay_limit
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.deadlines.notice_board import NoticeBoard
from lastcall.graceful.deadlines.socket_requests import AgentOutlook
from lastcall.graceful.delay_inhibitor import DelayInhibitor
from lastcall.graceful.logind_connection import LogindConnection
from lastcall.graceful.shutdown.journal_recorder import Listener
from lastcall.graceful.shutdown.manager import NodeShutdownManager
from lastcall.graceful.state_machine import AgentObservation, AgentState, AgentStep, ShutdownStateMachine
from lastcall.model.duration import format_seconds
from lastcall.model.shutdown import ShutdownMode
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice
from lastcall.ports.node import (
    Clock,
    DelayLimitFiles,
    Journals,
    LockKeeper,
    Logind,
    LogindSession,
    NodeFace,
    PodRuntime,
)

LOOK_WHILE_ENDING = 1.0
"""Seconds between two reads of PreparingForShutdown during a shutdown: a cancellation may come without a signal."""

LOOK_AT_REST = 30.0
"""Seconds between two reads outside a shutdown, where a signal announces changes."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AgentPorts:
    """The ports that the agent acts through."""

    clock: Clock
    logind: Logind
    keeper: LockKeeper
    limit_files: DelayLimitFiles
    runtime: PodRuntime
    node: NodeFace
    journals: Journals


@dataclass(frozen=True, kw_only=True)
class LogindReading:
    """What logind answered in one round; ``granted`` is its limit in seconds, ``how`` the kind of the shutdown."""

    preparing: bool
    granted: float | None = None
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class AgentStatus:
    """The agent's status after each round. Times are seconds; ``granted`` is None while it is unknown."""

    state: AgentState
    armed: bool
    logind_reachable: bool
    retries: int
    requested: float
    granted: float | None
    degraded: bool
    sentence: str
    has_unfinished_shutdown: bool = False
    """Whether an earlier process left a shutdown in this boot, and logind has not said yet whether it goes on."""


class ShutdownAgent:
    """One node's shutdown agent.

    ``finishes_shutdown``: a request to stop takes effect after a shutdown under way, because nobody would restart the agent.
    """

    def __init__(
        self,
        config: AgentConfig,
        outside: AgentPorts,
        *,
        node_name: str,
        boot_id: str,
        listeners: Sequence[Listener] = (),
        on_status: Callable[[AgentStatus], None] = lambda _: None,
        finishes_shutdown: bool = False,
    ) -> None:
        self._config = config
        self._finishes_shutdown = finishes_shutdown
        self._clock = outside.clock
        self._on_status = on_status
        self._wake = asyncio.Event()
        self._machine = ShutdownStateMachine()
        self._connection = LogindConnection(outside.logind, outside.clock, self._wake.set)
        self._inhibitor = DelayInhibitor(
            keeper=outside.keeper, files=outside.limit_files, clock=outside.clock, wake=self._wake.set
        )
        self._shutdowns = NodeShutdownManager(
            node_name=node_name,
            boot_id=boot_id,
            runtime=outside.runtime,
            node=outside.node,
            journals=outside.journals,
            clock=outside.clock,
            listeners=listeners,
            wake=self._wake.set,
        )
        self._notices = NoticeBoard()
        self._announcement: tuple[LogindReading, tuple[ShutdownNotice, ...]] = LogindReading(preparing=False), ()
        self._last_reading: LogindReading | None = None
        self._logind_was_read = False
        self._stop_requested = False
        self._last_sentence = ""

    def reconfigure(self, config: AgentConfig) -> None:
        """Applies a new configuration from the next round on; a shutdown under way keeps the one it began with."""
        self._config = config
        self._wake.set()

    @property
    def state(self) -> AgentState:
        """The state of the node's shutdown."""
        return self._machine.state

    @property
    def outlook(self) -> AgentOutlook:
        """What a notice would lead to."""
        return AgentOutlook(
            state=self._machine.state.name,
            requested=float(self._config.requested_seconds),
            lead=self._lead_seconds,
            observes=self._config.mode is ShutdownMode.OBSERVE,
        )

    @property
    def notices(self) -> tuple[ShutdownNotice, ...]:
        """The notices that hold, the earliest deadline first."""
        return self._notices.all_notices()

    def put_notice(self, notice: ShutdownNotice, *, replace: bool = False) -> bool:
        """A source says when the machine shuts down. The shutdown of the pods begins, or ends earlier, by it.

        Returns whether this is news (``NoticeBoard.put``). A shutdown that has begun is not put off.
        """
        replace = replace and self._machine.state not in (AgentState.ENDING, AgentState.RELEASED)
        news = self._notices.put(notice, self._clock.boottime(), replace=replace)
        if news:
            left = format_seconds(max(0.0, notice.deadline - self._clock.boottime()))
            log.warning("%s: the machine shuts down in %s: %s", notice.source.value, left, notice.reason)
            self._wake.set()
        return news

    def withdraw_notice(self, source: NoticeSource) -> bool:
        """The source says that the machine stays up; returns whether its notice held."""
        notice = self._notices.withdraw(source)
        if notice:
            log.warning("%s: the notice is withdrawn: %s", source.value, notice.reason)
            self._wake.set()
        return notice is not None

    def request_stop(self) -> None:
        """Asks ``run`` to end. Outside a shutdown the agent releases the lock; otherwise the lock's keeper retains it.

        The keeper also retains the lock while logind cannot be asked whether a shutdown is under way.
        """
        self._stop_requested = True
        self._wake.set()

    async def run(self) -> None:
        """Runs rounds until ``request_stop``: read, decide, act, report, wait.

        The last round begins after ``request_stop``, so that a stale reading never leads to the release of the lock.
        """
        await self._inhibitor.recover()
        self._shutdowns.recover()
        for notice in self._shutdowns.unfinished_notices:
            self._notices.put(notice, self._clock.boottime())
        watching = asyncio.create_task(self._inhibitor.watch_files(), name="files of the delay limit")
        try:
            is_last = False
            while not is_last:
                stops = self._stop_requested
                self._wake.clear()
                if stops:
                    self._logind_was_read = False
                await self._run_round()
                is_last = stops and not self._is_kept
                if not is_last:
                    await self._wait_for_next_round()
        finally:
            await cancel_and_wait(watching)
            await self._close()

    @property
    def _is_kept(self) -> bool:
        """Whether a request to stop has to wait for the end of the shutdown."""
        return self._finishes_shutdown and self._machine.state is AgentState.ENDING

    # -- one round -----------------------------------------------------------------------------------------------------

    async def _run_round(self) -> None:
        if self._machine.state is AgentState.ENDING and self._shutdowns.is_over:
            await self._apply_observation(AgentObservation.PHASES_OVER)
        elif self._machine.state is AgentState.RELEASED and self._inhibitor.is_held:
            await self._apply_observation(AgentObservation.LOCKED)
        await self._apply_observation(
            AgentObservation.ENABLED
            if self._config.is_enabled or self._shutdowns.has_unfinished_shutdown
            else AgentObservation.DISABLED
        )
        for notice in self._notices.drop_expired(self._clock.boottime()):
            log.warning("%s: the machine is still up: the notice is dropped: %s", notice.source.value, notice.reason)
        if self._machine.state is AgentState.IDLE:
            await self._apply_observation(
                AgentObservation.LOCKED if self._inhibitor.is_held else AgentObservation.UNLOCKED
            )
        else:
            try:
                await self._follow_announcements(await self._read_logind())
            except Unavailable as error:
                await self._connection.drop_session(error)
        self._report_status()

    async def _read_logind(self) -> LogindReading | None:
        """Logind's answers; None while it does not answer. Holds the lock, and asks for the limit."""
        try:
            session = await self._connection.get_session()
            if session is None:
                return None
            await self._ensure_lock(session)
            preparing, granted, how = await asyncio.gather(
                session.is_preparing(), session.max_delay(), session.scheduled_shutdown()
            )
        except Unavailable as error:
            await self._connection.drop_session(error)
            return None
        self._logind_was_read = True
        if self._machine.state is AgentState.ARMED and not preparing:
            self._inhibitor.update_limit(session, granted, self._config.requested_seconds)
        self._last_reading = LogindReading(preparing=preparing, granted=granted, how=how if preparing else "")
        return self._last_reading

    async def _follow_announcements(self, reading: LogindReading | None) -> None:
        """Begins, joins or cancels a shutdown by what logind and the other sources announce.

        While logind does not answer, its last answer holds; before its first one, what the journal says of it.
        """
        due = self._notices.due_notices(self._clock.boottime(), self._lead_seconds)
        last = reading or self._last_reading
        if last is None:
            if not due and self._machine.state not in (AgentState.ENDING, AgentState.RELEASED):
                return
            last = LogindReading(preparing=self._shutdowns.is_announced)
        going_down = last.preparing or bool(due)
        self._shutdowns.close_if_cancelled(preparing=going_down)
        if not going_down:
            await self._apply_observation(AgentObservation.NOT_SHUTTING_DOWN)
            return
        if self._machine.state in (AgentState.ACQUIRING, AgentState.ARMED):
            if last.preparing:
                self._inhibitor.granted = last.granted
            self._announcement = last, due
        elif self._shutdowns.join_announcements(due, announced=last.preparing, how=last.how, granted=last.granted):
            await self._inhibitor.set_deadline(self._shutdowns.deadline)
        await self._apply_observation(AgentObservation.PREPARING)

    @property
    def _lead_seconds(self) -> float:
        return max(self._config.deadlines.lead_seconds, float(self._config.requested_seconds))

    async def _ensure_lock(self, session: LogindSession) -> None:
        """Acquires the lock; acquires it again after logind has restarted or the bus connection was lost."""
        if self._machine.state is AgentState.ARMED and (self._connection.doubtful or not self._inhibitor.is_usable):
            await self._apply_observation(AgentObservation.UNLOCKED)
        if self._machine.state is AgentState.ACQUIRING:
            held = await self._inhibitor.acquire(session)
            if held:
                self._connection.doubtful = False
            await self._apply_observation(AgentObservation.LOCKED if held else AgentObservation.UNLOCKED)

    async def _apply_observation(self, seen: AgentObservation) -> None:
        step = self._machine.advance(seen)
        if step is AgentStep.BEGIN:
            await self._begin_shutdown()
        elif step is AgentStep.RELEASE:
            await self._release_lock()
        elif step is AgentStep.CANCEL:
            await self._cancel_shutdown()

    async def _begin_shutdown(self) -> None:
        reading, due = self._announcement
        await self._shutdowns.begin(
            self._config,
            granted=self._inhibitor.granted,
            how=reading.how,
            lock=self._inhibitor.is_held,
            announced=reading.preparing,
            notices=due,
        )
        by = [reading.how or "unknown"] if reading.preparing else [notice.source.value for notice in due]
        log.warning("the machine is shutting down (%s): ending the pods", ", ".join(by))
        await self._inhibitor.set_deadline(self._shutdowns.deadline)

    async def _release_lock(self) -> None:
        if await self._try_release() and self._machine.state is AgentState.RELEASED:
            self._shutdowns.record_release()

    async def _try_release(self) -> bool:
        """Returns whether every copy of the lock is closed; if not, the next round tries again."""
        try:
            await self._inhibitor.release()
        except Unavailable as error:
            log.warning("the lock could not be released: %s", error)
            return False
        return True

    async def _cancel_shutdown(self) -> None:
        log.warning("the shutdown was cancelled: the node stays up")
        self._inhibitor.invalidate()
        self._shutdowns.cancel_shutdown("it is not announced any more")
        self._wake.set()

    # -- between rounds ------------------------------------------------------------------------------------------------

    async def _wait_for_next_round(self) -> None:
        await wait_first(self._wake.wait(), self._sleep_until_next_round())

    async def _sleep_until_next_round(self) -> None:
        """Sleeps until the next read is due. While armed, skips the reads until logind may report a change."""
        seconds = self._seconds_to_next_read()
        if (
            self._machine.state is AgentState.ARMED
            and self._connection.is_up
            and not self._inhibitor.degraded
            and not self._stop_requested
            and not self._notices.all_notices()
        ):
            began = self._clock.boottime()
            await self._connection.wait_for_change()
            seconds -= (self._clock.boottime() - began) % seconds
        await self._clock.sleep(seconds)

    def _seconds_to_next_read(self) -> float:
        if self._stop_requested and not self._is_kept:
            return 0.0
        now = self._clock.boottime()
        moment = self._notices.next_moment(now, self._lead_seconds)
        seconds = self._seconds_to_next_look()
        return seconds if moment is None else min(seconds, moment - now)

    def _seconds_to_next_look(self) -> float:
        state = self._machine.state
        if state is AgentState.IDLE:
            return LOOK_WHILE_ENDING if self._inhibitor.is_held else LOOK_AT_REST
        if state is AgentState.ENDING:
            left = max(0.0, self._shutdowns.deadline - self._clock.boottime())
            return min(left, LOOK_WHILE_ENDING if self._connection.is_up else self._connection.seconds_to_retry)
        if not self._connection.is_up:
            return self._connection.seconds_to_retry
        often = state in (AgentState.RELEASED, AgentState.ACQUIRING) or self._inhibitor.limit_may_change
        return LOOK_WHILE_ENDING if often else LOOK_AT_REST

    async def _close(self) -> None:
        await self._inhibitor.close()
        await self._shutdowns.close()
        if self._logind_was_read and self._machine.state is not AgentState.ENDING:
            await self._try_release()
        await self._connection.close()

    # -- status --------------------------------------------------------------------------------------------------------

    def _report_status(self) -> None:
        sentence = self._status_sentence()
        if sentence != self._last_sentence:
            log.info("%s", sentence)
            self._last_sentence = sentence
        self._on_status(
            AgentStatus(
                state=self._machine.state,
                armed=self._inhibitor.is_held and self._machine.state in (AgentState.ARMED, AgentState.ENDING),
                logind_reachable=self._connection.is_up,
                retries=self._connection.retry_count,
                requested=float(self._config.requested_seconds),
                granted=self._inhibitor.granted,
                degraded=bool(self._inhibitor.degraded),
                sentence=sentence,
                has_unfinished_shutdown=self._shutdowns.has_unfinished_shutdown,
            )
        )

    def _status_sentence(self) -> str:
        state = self._machine.state
        if state is AgentState.IDLE:
            until = " once the lock is released, which is being retried" if self._inhibitor.is_held else ""
            return f"idle: the configuration asks for no time, a shutdown will not be delayed{until}"
        away = (
            "" if self._connection.is_up else f"; logind cannot be reached ({self._connection.problem}), trying again"
        )
        if state is AgentState.ACQUIRING:
            return f"not armed: {self._inhibitor.problem or 'no lock is held yet'}{away}"
        if state is AgentState.ARMED:
            return f"armed: {self._granted_time_text()}{away}"
        if state is AgentState.ENDING:
            by = [f"{notice.source.value}: {notice.reason}" for notice in self.notices]
            return f"ending the pods: the machine is shutting down{f' ({by[0]})' if by else ''}{away}"
        if self._inhibitor.is_held:
            return f"done: the machine may shut down, but the lock is not known to be released, trying again{away}"
        return f"done: the lock is released, the machine may shut down{away}"

    def _granted_time_text(self) -> str:
        requested = format_seconds(self._config.requested_seconds)
        if self._inhibitor.granted is None:
            return f"asks for {requested}"
        if self._inhibitor.degraded:
            return f"only {format_seconds(self._inhibitor.granted)} of the {requested} asked for: {self._inhibitor.degraded}"
        if delay_limit.grants_too_little(self._config.requested_seconds, self._inhibitor.granted):
            return f"{format_seconds(self._inhibitor.granted)} so far, logind is being asked for {requested}"
        return f"{requested} for the pods when the machine shuts down"
