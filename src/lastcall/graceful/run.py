"""Carries out one shutdown: phase after phase, lowest priority first, each within its seconds.

No phase begins before the one before it has ended or run out; the kills of stragglers are confirmed within their
phase; being told to stop takes effect between two pods.
"""

import asyncio
from collections.abc import Awaitable, Sequence

from lastcall.aio import Group, any_done, cancel, first
from lastcall.errors import Unavailable
from lastcall.graceful import pacing
from lastcall.graceful.pod_end import PodEnd, Tell
from lastcall.graceful.roster import Roster
from lastcall.graceful.termination import Window, last_kill, phase_end
from lastcall.model.base import Facts
from lastcall.model.pods import DEFAULT_GRACE, Metadata, Pod, priority
from lastcall.model.shutdown import (
    Mode,
    Noted,
    PhaseEnd,
    PhaseEnded,
    PhasePlan,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodRecord,
    PodStarted,
    Shutdown,
)
from lastcall.ports import Clock, LivePod, NodeFace, PodRuntime

ANNOUNCE_SECONDS = 2.0
"""How long the first kill waits for what comes before it (ports.NodeFace): the pods' time is worth more."""

LOOK_AFTER = 0.05
"""How long the first fresh list of pods waits, unless it is needed: asked for at once, it would delay the SIGTERMs."""

LOOK_SECONDS = 5.0
"""How long a phase waits for a fresh list of pods before it goes by the one at hand."""


class PhaseTime(Facts, frozen=True):
    """A phase's time, in CLOCK_BOOTTIME: over at ``end``, SIGKILL goes out at ``last_kill`` at the latest."""

    started: float
    seconds: float
    end: float
    last_kill: float


class Run:
    """One shutdown. ``before`` is its record so far, if an earlier life of the agent began it."""

    def __init__(
        self,
        plan: Sequence[PhasePlan],
        *,
        deadline: float,
        mode: Mode,
        runtime: PodRuntime,
        node: NodeFace,
        clock: Clock,
        tell: Tell,
        before: Shutdown | None = None,
    ) -> None:
        self._plan = tuple(plan)
        self._deadline = deadline
        self._mode = mode
        self._runtime = runtime
        self._node = node
        self._clock = clock
        self._tell = tell
        self._before = before
        self._records = {pod.uid: pod for pod in before.pods} if before else {}
        self._roster = Roster(plan, before)
        self._group = Group()
        self._stopped = False
        self._changed = asyncio.Event()
        self._needed = asyncio.Event()  # a fresh list of pods

    def stop(self) -> None:
        """No further pod is begun; those whose end has begun are let finish. At once, no I/O."""
        self._stopped = True
        self._changed.set()

    async def carry_out(self) -> None:
        """Returns when the last phase is over, or at once after ``stop``."""
        await self._announce()
        await self._remember(self._runtime.pods())
        look = asyncio.ensure_future(self._look(after=LOOK_AFTER))
        try:
            if self._before:
                await self._looked(look)
                await self._note_absent()
            for index in range(len(self._plan)):
                if index and look.done():
                    look = asyncio.ensure_future(self._look(after=0.0))
                if index or not self._roster.waiting(index):
                    await self._looked(look)
                if self._stopped:
                    return
                await self._phase(index)
            await self._last_kills()
        finally:
            await cancel(look)

    async def wind_up(self) -> None:
        """After ``stop``: returns when the pods whose end had begun have ended."""
        await self._group.join()

    async def abandon(self) -> None:
        """The program ends in the middle of it: what is under way is left as it is, for the next life to go on with."""
        await self._group.cancel()

    # -- what there is -------------------------------------------------------------------------------------------------

    async def _announce(self) -> None:
        if self._mode is Mode.OBSERVE:
            return
        self._node.refuse_pods()
        told = asyncio.ensure_future(self._node.going_down(self._deadline))
        if not await self._within(ANNOUNCE_SECONDS, told):
            self._note(
                f"what comes before the first kill is not done after {ANNOUNCE_SECONDS:g} s; the pods are ended all the same"
            )

    async def _look(self, *, after: float) -> None:
        if after:
            await first(self._needed.wait(), self._clock.sleep(after))
        await self._remember(self._runtime.refresh())
        self._changed.set()

    async def _looked(self, look: "asyncio.Future[None]") -> None:
        self._needed.set()
        await self._within(LOOK_SECONDS, look)

    async def _remember(self, asked: Awaitable[Sequence[LivePod]]) -> None:
        try:
            self._roster.remember(await asked)
        except Unavailable as error:
            self._note(f"the runtime does not answer: {error}")

    async def _note_absent(self) -> None:
        """Pods whose end an earlier life began and that have ended while nobody looked."""
        for record in self._records.values():
            if record.outcome or self._roster.knows(record.uid):
                continue
            killed = any(container.kill is not None for container in record.containers)
            outcome = PodOutcome.KILLED if killed else PodOutcome.GRACEFUL
            self._tell(PodEnded(at=self._clock.boottime(), uid=record.uid, outcome=outcome))
            pod = Pod(metadata=Metadata(name=record.name, namespace=record.namespace, uid=record.uid))
            await self._node.pod_ended(LivePod(pod=pod, containers={}), {})

    async def _within(self, seconds: float, task: "asyncio.Future[None]") -> bool:
        """Waits for a task, which is left running if it takes longer; what it raises is noted."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await any_done(task, alarm)
        finally:
            await cancel(alarm)
        if task.done() and (error := task.exception()):
            self._note(f"{type(error).__name__}: {error}")
        return task.done()

    def _note(self, text: str) -> None:
        self._tell(Noted(at=self._clock.boottime(), text=text))

    # -- phases --------------------------------------------------------------------------------------------------------

    async def _phase(self, index: int) -> None:
        if self._before and self._before.phases[index].end:
            return
        waiting = self._roster.waiting(index)
        if not waiting:
            begun = self._before is not None and self._before.phases[index].started is not None
            over = PhaseEnd.DONE if begun else PhaseEnd.EMPTY
            self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))
            return
        over = await self._through(index, self._time(index, waiting))
        if over is PhaseEnd.RAN_OUT:
            for uid in self._roster.open:
                self._roster.end(uid)
                self._tell(PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.UNCONFIRMED))
        self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))

    def _time(self, index: int, waiting: Sequence[LivePod]) -> PhaseTime:
        """The time of a phase with these pods that begins now, or began in an earlier life."""
        record = self._before.phases[index] if self._before else None
        if self._before and record and record.started is not None and record.given is not None:
            started, seconds = self._before.boottime + record.started, record.given
        else:
            started = self._clock.boottime()
            seconds = pacing.next_seconds(self._roster.coming(index), self._deadline - started)
            self._tell(PhaseStarted(at=started, index=index, seconds=round(seconds, 3)))
        kills = self._runtime.kill_seconds(sum(len(live.containers) for live in waiting))
        end = phase_end(started, seconds, kills, self._deadline)
        return PhaseTime(started=started, seconds=seconds, end=end, last_kill=last_kill(started, end, kills))

    async def _through(self, index: int, time: PhaseTime) -> PhaseEnd:
        """Begins the phase's pods, also those that are found while it runs, and waits for them until its end."""
        alarm = asyncio.ensure_future(self._clock.sleep(time.end - self._clock.boottime()))
        alarm.add_done_callback(lambda _: self._changed.set())
        begun = time.started
        try:
            while not self._stopped:
                for live in self._roster.waiting(index):
                    self._begin(live, index, time, begun)
                if not self._roster.open:
                    return PhaseEnd.DONE
                if alarm.done():
                    return PhaseEnd.RAN_OUT
                self._changed.clear()
                await self._changed.wait()
                begun = self._clock.boottime()
            return PhaseEnd.CANCELLED
        finally:
            await cancel(alarm)

    def _begin(self, live: LivePod, index: int, time: PhaseTime, begun: float) -> None:
        uid = live.pod.metadata.uid
        record = self._records.get(uid)
        if self._before and record:
            begun = self._before.boottime + record.started
        asked = live.pod.spec.termination_grace_period_seconds
        grace = time.seconds if asked is None else min(asked, time.seconds)
        self._roster.begin(uid)
        if not record:
            self._tell(
                PodStarted(
                    at=begun,
                    uid=uid,
                    namespace=live.pod.metadata.namespace,
                    name=live.pod.metadata.name,
                    priority=priority(live.pod),
                    phase=index,
                    grace=round(grace, 3),
                    asked=DEFAULT_GRACE if asked is None else asked,
                    containers=tuple(live.containers),
                )
            )
        window = Window(started=begun, grace=grace, last_kill=time.last_kill)
        self._group.start(self._see_off(live, window, record), f"end {live.pod.key}")

    async def _see_off(self, live: LivePod, window: Window, record: PodRecord | None) -> None:
        uid = live.pod.metadata.uid
        try:
            if self._mode is Mode.OBSERVE:
                self._tell(PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.OBSERVED))
                return
            await PodEnd(
                live,
                window=window,
                runtime=self._runtime,
                node=self._node,
                clock=self._clock,
                tell=self._tell,
                before={c.name: c for c in record.containers} if record else None,
            ).run()
        except Exception as error:
            self._note(f"{live.pod.key} could not be ended: {type(error).__name__}: {error}")
        finally:
            self._roster.end(uid)
            self._changed.set()

    async def _last_kills(self) -> None:
        """Kills that were not confirmed within their phase are waited for while there is time at all."""
        if self._group.busy:
            left = self._deadline - self._clock.boottime()
            await self._within(left, asyncio.ensure_future(self._group.join()))
