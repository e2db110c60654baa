"""The agent's loop: reads what logind says, asks the table what to do, does it, and says so in one sentence.

It lives with everything that can go wrong around it: a bus that is lost, a logind that restarts, a limit that cannot
be raised, its own death in the middle. A signal only wakes it; what counts is what it then reads.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lastcall.aio import cancel, first
from lastcall.errors import Unavailable
from lastcall.graceful import limit
from lastcall.graceful.arming import Arming
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.link import Link
from lastcall.graceful.machine import Machine, Seen, State, Step
from lastcall.graceful.recorder import Listener
from lastcall.graceful.shutdowns import Shutdowns
from lastcall.model.duration import of_seconds
from lastcall.ports import Clock, DelayLimitFiles, Journals, LockKeeper, Logind, LogindSession, NodeFace, PodRuntime

LOOK_WHILE_ENDING = 1.0
"""Seconds between two reads of PreparingForShutdown in a shutdown: it may be cancelled without a signal."""

LOOK_AT_REST = 30.0
"""Seconds between two reads at rest, where changes come with a signal."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Everything that the agent acts through."""

    clock: Clock
    logind: Logind
    keeper: LockKeeper
    limit_files: DelayLimitFiles
    runtime: PodRuntime
    node: NodeFace
    journals: Journals


@dataclass(frozen=True, kw_only=True)
class Status:
    """What the agent tells about itself after each round. Seconds; ``granted`` is None while it is not known."""

    state: State
    armed: bool
    logind_reachable: bool
    retries: int
    requested: float
    granted: float | None
    degraded: bool
    sentence: str


class Agent:
    """One node's shutdown agent."""

    def __init__(
        self,
        config: AgentConfig,
        outside: Outside,
        *,
        node_name: str,
        boot_id: str,
        listeners: Sequence[Listener] = (),
        on_status: Callable[[Status], None] = lambda _: None,
    ) -> None:
        self._config = config
        self._clock = outside.clock
        self._on_status = on_status
        self._wake = asyncio.Event()
        self._machine = Machine()
        self._link = Link(outside.logind, outside.clock, self._wake.set)
        self._arming = Arming(
            keeper=outside.keeper, files=outside.limit_files, clock=outside.clock, wake=self._wake.set
        )
        self._shutdowns = Shutdowns(
            node_name=node_name,
            boot_id=boot_id,
            runtime=outside.runtime,
            node=outside.node,
            journals=outside.journals,
            clock=outside.clock,
            listeners=listeners,
            wake=self._wake.set,
        )
        self._asked = False
        self._leaving = False
        self._said = ""

    def reconfigure(self, config: AgentConfig) -> None:
        """A new configuration, from the next round on; a shutdown that has begun keeps the one it began with."""
        self._config = config
        self._wake.set()

    def leave(self) -> None:
        """The program is to end: at rest the lock is released, else it is left to its keeper.

        Else means in a shutdown, and where logind cannot be asked now whether there is one.
        """
        self._leaving = True
        self._wake.set()

    async def run(self) -> None:
        """Rounds until ``leave``: look, decide, act, say, wait.

        The last one begins after ``leave``: the lock is not released on the strength of what was read before it.
        """
        await self._arming.recover()
        self._shutdowns.recover()
        heeding = asyncio.create_task(self._arming.heed_files(), name="files of the delay limit")
        try:
            leaving = False
            while not leaving:
                leaving = self._leaving
                self._wake.clear()
                if leaving:
                    self._asked = False
                await self._round()
                if not leaving:
                    await self._wait()
        finally:
            await cancel(heeding)
            await self._end()

    # -- one round -----------------------------------------------------------------------------------------------------

    async def _round(self) -> None:
        if self._machine.state is State.ENDING and self._shutdowns.over:
            await self._see(Seen.OVER)
        elif self._machine.state is State.LEAVING and self._arming.held:
            await self._see(Seen.LOCKED)
        await self._see(Seen.ENABLED if self._config.enabled or self._shutdowns.unfinished else Seen.DISABLED)
        try:
            await self._attend()
        except Unavailable as error:
            await self._link.lose(error)
        self._say()

    async def _attend(self) -> None:
        if self._machine.state is State.IDLE:
            await self._see(Seen.LOCKED if self._arming.held else Seen.UNLOCKED)
            return
        session = await self._link.session()
        if session is None:
            return
        await self._arm(session)
        preparing, granted, how = await asyncio.gather(session.preparing(), session.max_delay(), session.scheduled())
        self._asked = True
        self._shutdowns.look_back(preparing=preparing)
        if preparing and self._machine.state in (State.SEEKING, State.ARMED):
            self._arming.granted = granted
            await self._see(Seen.PREPARING, how)
        else:
            await self._see(Seen.PREPARING if preparing else Seen.QUIET)
        if self._machine.state is State.ARMED:
            self._arming.look(session, granted, self._config.requested_seconds)

    async def _arm(self, session: LogindSession) -> None:
        """Takes the lock, or takes it again if logind or the bus has begun anew."""
        if self._machine.state is State.ARMED and (self._link.doubtful or not self._arming.good):
            await self._see(Seen.UNLOCKED)
        if self._machine.state is State.SEEKING:
            held = await self._arming.seek(session)
            if held:
                self._link.doubtful = False
            await self._see(Seen.LOCKED if held else Seen.UNLOCKED)

    async def _see(self, seen: Seen, how: str = "") -> None:
        step = self._machine.see(seen)
        if step is Step.BEGIN:
            await self._begin(how)
        elif step is Step.RELEASE:
            await self._release()
        elif step is Step.COME_BACK:
            await self._come_back()

    async def _begin(self, how: str) -> None:
        await self._shutdowns.begin(self._config, granted=self._arming.granted, how=how, lock=self._arming.held)
        log.warning("the machine is going down (%s): ending the pods", how or "unknown")
        await self._arming.close_at(self._shutdowns.deadline)

    async def _release(self) -> None:
        if await self._let_go() and self._machine.state is State.LEAVING:
            self._shutdowns.released()

    async def _let_go(self) -> bool:
        """Whether every copy of the lock is closed; if not, the next round tries again."""
        try:
            await self._arming.release()
        except Unavailable as error:
            log.warning("the lock could not be released: %s", error)
            return False
        return True

    async def _come_back(self) -> None:
        log.warning("the shutdown was called off: the node stays")
        self._arming.outdate()
        self._shutdowns.come_back("logind is not preparing for a shutdown any more")
        self._wake.set()

    # -- between rounds ------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        await first(self._wake.wait(), self._until_next_round())

    async def _until_next_round(self) -> None:
        """At rest it looks every so often; who knows that it would see the same as before spares it the looks."""
        seconds = self._until_next_look()
        if self._machine.state is State.ARMED and self._link.up and not self._arming.degraded and not self._leaving:
            began = self._clock.boottime()
            await self._link.unsettled()
            seconds -= (self._clock.boottime() - began) % seconds
        await self._clock.sleep(seconds)

    def _until_next_look(self) -> float:
        if self._leaving:
            return 0.0
        state = self._machine.state
        if state is State.IDLE:
            return LOOK_WHILE_ENDING if self._arming.held else LOOK_AT_REST
        if state is State.ENDING:
            left = max(0.0, self._shutdowns.deadline - self._clock.boottime())
            return min(left, LOOK_WHILE_ENDING if self._link.up else self._link.retry_in)
        if not self._link.up:
            return self._link.retry_in
        often = state in (State.LEAVING, State.SEEKING) or self._arming.watchful
        return LOOK_WHILE_ENDING if often else LOOK_AT_REST

    async def _end(self) -> None:
        await self._arming.close()
        await self._shutdowns.leave()
        if self._asked and self._machine.state is not State.ENDING:
            await self._let_go()
        await self._link.close()

    # -- what it says --------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        sentence = self._sentence()
        if sentence != self._said:
            log.info("%s", sentence)
            self._said = sentence
        self._on_status(
            Status(
                state=self._machine.state,
                armed=self._arming.held and self._machine.state in (State.ARMED, State.ENDING),
                logind_reachable=self._link.up,
                retries=self._link.retries,
                requested=float(self._config.requested_seconds),
                granted=self._arming.granted,
                degraded=bool(self._arming.degraded),
                sentence=sentence,
            )
        )

    def _sentence(self) -> str:
        state = self._machine.state
        if state is State.IDLE:
            until = " once the lock is released, which is tried again" if self._arming.held else ""
            return f"idle: the configuration asks for no time, a shutdown will not be delayed{until}"
        away = "" if self._link.up else f"; logind cannot be reached ({self._link.problem}), trying again"
        if state is State.SEEKING:
            return f"not armed: {self._arming.problem or 'no lock is held yet'}{away}"
        if state is State.ARMED:
            return f"armed: {self._time()}{away}"
        if state is State.ENDING:
            return f"ending the pods: the machine is going down{away}"
        if self._arming.held:
            return f"done: the machine may go down, but the lock is not known to be released, trying again{away}"
        return f"done: the lock is released, the machine may go down{away}"

    def _time(self) -> str:
        requested = of_seconds(self._config.requested_seconds)
        if self._arming.granted is None:
            return f"asks for {requested}"
        if self._arming.degraded:
            return f"only {of_seconds(self._arming.granted)} of the {requested} asked for: {self._arming.degraded}"
        if limit.needed(self._config.requested_seconds, self._arming.granted):
            return f"{of_seconds(self._arming.granted)} so far, logind is being asked for {requested}"
        return f"{requested} for the pods when the machine goes down"
