"""Carries out one shutdown: phase after phase, lowest priority first, each within its seconds.

No phase begins before the one before it has ended or run out; the kills of stragglers are confirmed within their
phase; being told to stop takes effect between two pods.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from lastcall.aio import Group, any_done, cancel
from lastcall.graceful import pacing
from lastcall.graceful.allotment import Allotment
from lastcall.graceful.journal import pods
from lastcall.graceful.lookout import LAST_LOOK_SECONDS, LOOK_AFTER, Lookout
from lastcall.graceful.pod_end import Tell
from lastcall.graceful.pulse import Pulse
from lastcall.graceful.roster import Roster
from lastcall.graceful.seeing_off import SANDBOX_SECONDS, SeeingOff, beginning, note_absent
from lastcall.graceful.termination import PhaseTime, Window, phase_time
from lastcall.model.shutdown import (
    Event,
    Mode,
    Noted,
    PhaseEnd,
    PhaseEnded,
    PhasePlan,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodRecord,
    Shutdown,
)
from lastcall.ports import Clock, LivePod, NodeFace, PodRuntime

ANNOUNCE_SECONDS = 2.0
"""How long the first kill waits for what comes before it (ports.NodeFace): the pods' time is worth more."""

RETRY_SECONDS = 0.25
"""Between two attempts to get a first list of pods from a runtime that is away."""

_SAME = 0.01
"""Seconds that no phase is shortened for: its time is journalled in milliseconds."""


class Run:
    """One shutdown.

    ``before`` is its record so far, if an earlier life of the agent began it. ``taken_over`` are the pods, by uid and
    with times in CLOCK_BOOTTIME, whose end was begun by a shutdown before this one, which was called off.
    """

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
        taken_over: Mapping[str, PodRecord] | None = None,
    ) -> None:
        self._plan = tuple(plan)
        self._deadline = deadline
        self._mode = mode
        self._runtime = runtime
        self._node = node
        self._clock = clock
        self._tell = tell
        self._before = before
        self._records = pods(before) if before else {}
        self._taken_over = dict(taken_over or {})
        self._roster = Roster(plan, before)
        self._group = Group()
        self._sandboxes = Group()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._announcing: asyncio.Future[None] | None = None
        self._stopped = False
        self._changed = asyncio.Event()
        self._looked = False
        self._times: dict[str, Allotment] = {}
        self._pulse = Pulse(runtime, clock=clock, tell=tell)
        self._lookout = Lookout(runtime, self._roster, clock=clock, note=self._note, found=self._found)

    def stop(self) -> None:
        """No further pod is begun; those whose end has begun are let finish. At once, no I/O."""
        self._stopped = True
        self._changed.set()

    async def carry_out(self) -> None:
        """Returns when the last phase is over, or at once after ``stop``."""
        await self._announce()
        pulse = asyncio.create_task(self._pulse.run(), name="the runtime's pulse")
        try:
            if not await self._first_list():
                return
            self._lookout.begin(after=LOOK_AFTER)
            if self._before:
                await self._lookout.fresh()
                self._go_on()
            for index in range(len(self._plan)):
                if index:
                    self._lookout.begin()
                if (index or not self._roster.waiting(index)) and not self._pulse.silent:
                    await self._lookout.fresh()
                if self._stopped:
                    return
                await self._phase(index)
            await self._last_kills()
            await self._last_word()
        finally:
            await cancel(pulse)
            await self._lookout.close()

    async def withdraw(self) -> None:
        """After ``stop``: when this returns, nobody tells the node any more that it goes down."""
        if self._announcing:
            await cancel(self._announcing)

    @property
    def open(self) -> list[str]:
        """The uids of the pods whose end has begun and not come, also of those that their phase has given up."""
        return [uid for uid, end in self._ends.items() if not end.done() and not self._roster.confirmed(uid)]

    async def abandon(self) -> None:
        """What is under way is left as it is, for another shutdown or the next life of the program to go on with."""
        await self.withdraw()
        await self._group.cancel()
        await self._sandboxes.cancel()

    # -- what there is -------------------------------------------------------------------------------------------------

    async def _announce(self) -> None:
        if self._mode is Mode.OBSERVE:
            return
        self._node.refuse_pods()
        self._announcing = asyncio.ensure_future(self._node.going_down(self._deadline))
        if not await self._within(ANNOUNCE_SECONDS, self._announcing):
            self._note(
                f"what comes before the first kill is not done after {ANNOUNCE_SECONDS:g} s; the pods are ended all the same"
            )

    async def _first_list(self) -> bool:
        """There is nothing to go by without one: a runtime that is away is waited for, out of the phases' time."""
        while not await self._lookout.at_hand():
            if self._stopped or self._clock.boottime() >= self._deadline:
                return False
            await self._clock.sleep(RETRY_SECONDS)
        return True

    def _go_on(self) -> None:
        """With the pods that an earlier life had begun with and that belong to no phase any more."""
        for record in self._records.values():
            live = self._roster.running(record.uid)
            if live and record.outcome is PodOutcome.UNCONFIRMED:
                now = self._clock.boottime()
                window = Window(started=record.started, grace=record.grace, last_kill=now)
                self._end(live, Allotment(window, self._clock), record)
            elif not live and not record.outcome and self._mode is Mode.ENFORCE:
                self._group.start(self._note_absent(record), f"note {record.namespace}/{record.name}")

    async def _note_absent(self, record: PodRecord) -> None:
        try:
            await note_absent(record, node=self._node, clock=self._clock, tell=self._tell)
        except Exception as error:
            key = f"{record.namespace}/{record.name}"
            self._note(f"{key}: its last status could not be written: {type(error).__name__}: {error}")

    async def _within(self, seconds: float, task: "asyncio.Future[None]") -> bool:
        """Waits for a task, which is left running if it takes longer; what it raises is noted. Whether it is done."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await any_done(task, alarm)
        finally:
            await cancel(alarm)
        if task.done() and not task.cancelled() and (error := task.exception()):
            self._note(f"{type(error).__name__}: {error}")
        return task.done()

    def _found(self) -> None:
        self._looked = True
        self._changed.set()

    def _note(self, text: str) -> None:
        self._tell(Noted(at=self._clock.boottime(), text=text))

    # -- phases --------------------------------------------------------------------------------------------------------

    async def _phase(self, index: int) -> None:
        if self._before and self._before.phases[index].end not in (None, PhaseEnd.CANCELLED):
            return
        waiting = self._roster.waiting(index) or await self._missed(index)
        if not waiting:
            begun = self._before is not None and self._before.phases[index].started is not None
            over = PhaseEnd.DONE if begun else PhaseEnd.EMPTY
            self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))
            return
        over = await self._through(index, self._time(index, waiting))
        if over is PhaseEnd.RAN_OUT:
            over = self._give_up()
        self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))

    async def _missed(self, index: int) -> Sequence[LivePod]:
        """Pods that are found when the last phase has no other: the shutdown is not over before a fresh list has come."""
        if index == len(self._plan) - 1 and not (self._lookout.seen or self._pulse.silent or self._stopped):
            await self._lookout.fresh(LAST_LOOK_SECONDS)
        return self._roster.waiting(index)

    def _give_up(self) -> PhaseEnd:
        """The seconds are over: what is open is waited for no more. It ran out if a container may still run."""
        over = PhaseEnd.DONE
        for uid in self._roster.open:
            self._roster.end(uid)
            if not self._roster.confirmed(uid):
                over = PhaseEnd.RAN_OUT
                self._tell(PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.UNCONFIRMED))
        return over

    def _time(self, index: int, waiting: Sequence[LivePod]) -> PhaseTime:
        """The time of a phase with these pods that begins now, or began in an earlier life."""
        record = self._before.phases[index] if self._before else None
        if self._before and record and record.started is not None and record.given is not None:
            started, seconds = self._before.boottime + record.started, record.given
        else:
            started = self._clock.boottime()
            seconds = pacing.next_seconds(self._roster.coming(index), self._deadline - started)
            self._tell(PhaseStarted(at=started, index=index, seconds=round(seconds, 3)))
        kills = self._runtime.kill_seconds(self._roster.own_containers(waiting))
        return phase_time(started, seconds, kills, self._deadline)

    def _shortened(self, index: int, time: PhaseTime) -> PhaseTime:
        """The time of the phase that runs after another look, which may have found pods of later phases.

        It gets what it would have got had they been known when it began, and never more than it has: the runtime has been
        told already when to kill.
        """
        seconds = pacing.next_seconds(self._roster.coming(index), self._deadline - time.started)
        if seconds > time.seconds - _SAME:
            return time
        self._tell(PhaseShortened(at=self._clock.boottime(), index=index, seconds=round(seconds, 3)))
        shorter = phase_time(time.started, seconds, time.kill_seconds, self._deadline)
        for uid in self._roster.open:
            live, pods_time = self._roster.running(uid), self._times.get(uid)
            if live and pods_time:
                pods_time.shorten(_window(live, shorter, pods_time.window.started))
        return shorter

    async def _through(self, index: int, time: PhaseTime) -> PhaseEnd:
        """Begins the phase's pods, also those that are found while it runs, and waits for them until its end."""
        alarm = self._alarm(time.end)
        begun = time.started
        try:
            while not self._stopped:
                before, time = time, self._shortened(index, time) if self._looked else time
                self._looked = False
                if time is not before:
                    await cancel(alarm)
                    alarm = self._alarm(time.end)
                for live in self._roster.waiting(index):
                    self._begin(live, index, time, begun)
                if not self._roster.open and not await self._missed(index):
                    return PhaseEnd.DONE
                if not self._roster.open:
                    begun = self._clock.boottime()
                    continue
                if alarm.done():
                    return PhaseEnd.RAN_OUT
                self._changed.clear()
                await self._changed.wait()
                begun = self._clock.boottime()
            return PhaseEnd.CANCELLED
        finally:
            await cancel(alarm)

    def _alarm(self, at: float) -> "asyncio.Future[None]":
        alarm = asyncio.ensure_future(self._clock.sleep(at - self._clock.boottime()))
        alarm.add_done_callback(lambda _: self._changed.set())
        return alarm

    def _begin(self, live: LivePod, index: int, time: PhaseTime, begun: float) -> None:
        uid = live.pod.metadata.uid
        record = self._records.get(uid) or self._taken_over.get(uid)
        mine = Allotment(_window(live, time, record.started if record else begun), self._clock)
        self._times[uid] = mine
        self._roster.begin(uid)
        known = uid in self._records
        self._end(live, mine, record, () if known else beginning(live, index, mine, record, clock=self._clock))

    def _end(self, live: LivePod, time: Allotment, record: PodRecord | None, events: Iterable[Event] = ()) -> None:
        work = self._see_off(live, time, record, events)
        self._ends[live.pod.metadata.uid] = self._group.start(work, f"end {live.pod.key}")

    async def _see_off(self, live: LivePod, time: Allotment, record: PodRecord | None, events: Iterable[Event]) -> None:
        uid = live.pod.metadata.uid
        try:
            for event in events:
                self._tell(event)
            if self._mode is Mode.OBSERVE:
                self._tell(PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.OBSERVED))
                return
            going = SeeingOff(
                live,
                time=time,
                runtime=self._runtime,
                node=self._node,
                clock=self._clock,
                tell=self._tell,
                called_off=lambda: self._stopped,
                before=record.containers if record else (),
            )
            await going.containers()
            if self._is_last(uid):
                self._roster.confirm(uid)
            await self._within(SANDBOX_SECONDS, self._sandboxes.start(going.sandbox(), f"sandbox of {live.pod.key}"))
            await going.last_status()
        except Exception as error:
            self._note(f"the end of {live.pod.key} broke off: {type(error).__name__}: {error}")
        finally:
            if self._is_last(uid):
                self._roster.end(uid)
            self._changed.set()

    def _is_last(self, uid: str) -> bool:
        """Whether the task that runs is the pod's last end: one that was given up says nothing of one begun since."""
        return self._ends[uid] is asyncio.current_task()

    async def _last_kills(self) -> None:
        """Kills that were not confirmed within their phase are waited for while there is time at all."""
        if self._group.busy:
            left = self._deadline - self._clock.boottime()
            await self._within(left, asyncio.ensure_future(self._group.join()))

    async def _last_word(self) -> None:
        """What others are to know when this machine is off; it holds nobody up for longer than the announcement."""
        if self._mode is Mode.ENFORCE and not self._stopped:
            left = min(ANNOUNCE_SECONDS, self._deadline - self._clock.boottime())
            await self._within(left, self._group.start(self._node.last_word(), "last word"))


def _window(live: LivePod, time: PhaseTime, started: float) -> Window:
    return time.window(started, live.pod.spec.termination_grace_period_seconds)
