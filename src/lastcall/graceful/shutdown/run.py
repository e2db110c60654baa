"""Runs one shutdown: phase after phase, lowest priority first, each within its seconds.

A phase begins only after the one before it has finished or run out of time. A phase keeps time to confirm the kills
of its remaining containers. ``stop`` takes effect between two pods.
"""

import asyncio
from collections.abc import Mapping, Sequence

from lastcall.aio import OrderedTaskGroup, cancel_and_wait
from lastcall.graceful.planning import remaining_time
from lastcall.graceful.planning.time_windows import MINIMUM, PhaseTime, phase_time
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.graceful.shutdown.pod_ends import PodEnds
from lastcall.graceful.shutdown.pod_refresher import LAST_LOOK_SECONDS, LOOK_AFTER, PodRefresher
from lastcall.graceful.shutdown.resumption import pods_by_uid
from lastcall.graceful.shutdown.roster import Roster
from lastcall.graceful.shutdown.runtime_probe import RuntimeProbe
from lastcall.graceful.shutdown.shutdown_notes import ShutdownNotes
from lastcall.model.shutdown import (
    PhaseEnd,
    PhaseEnded,
    PhasePlan,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodRecord,
    ShutdownMode,
    ShutdownRecord,
)
from lastcall.ports.node import Clock, NodeFace, PodRuntime, RunningPod

ANNOUNCE_SECONDS = 2.0
"""How long the first SIGTERM waits for the announcement (``NodeFace.begin_shutdown``): the pods need the time more."""

RELIST_SECONDS = 2.0
"""Seconds between two lists of pods during a phase."""

SPEC_SECONDS = 0.25
"""How long a resumed shutdown waits for the specs of pods that no source knows: the agent has only just asked for them."""

SPEC_LOOK_SECONDS = 0.02
"""Seconds between two looks whether a source knows them."""

RETRY_SECONDS = 0.25
"""Seconds between two attempts to get a first list of pods from an unavailable runtime."""

EXPECT_AFTER_SECONDS = 0.001
"""Seconds after which the pods' namespaces are asked about: every SIGTERM waits for the kubelet's, which is asked for first."""

_SAME = 0.01
"""Seconds; a smaller difference does not shorten a phase, whose time is journalled in milliseconds."""


class ShutdownRun:
    """One shutdown.

    ``before`` is its record so far, if an earlier process began it. ``taken_over`` are the pods that an earlier,
    cancelled shutdown began to terminate, by uid and with times in CLOCK_BOOTTIME seconds.
    """

    def __init__(
        self,
        plan: Sequence[PhasePlan],
        *,
        deadline: float,
        mode: ShutdownMode,
        runtime: PodRuntime,
        node: NodeFace,
        clock: Clock,
        tell: Tell,
        before: ShutdownRecord | None = None,
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
        self._roster = Roster(plan, before)
        self._group = OrderedTaskGroup()
        self._announcing: asyncio.Future[None] | None = None
        self._stopped = False
        self._changed = asyncio.Event()
        self._refreshed = False
        self._is_list_fresh = False
        self._notes = ShutdownNotes(node, clock=clock, tell=tell)
        self._ends = PodEnds(
            self._roster,
            mode=mode,
            runtime=runtime,
            node=node,
            clock=clock,
            tell=tell,
            notes=self._notes,
            records=pods_by_uid(before) if before else {},
            taken_over=dict(taken_over or {}),
            changed=self._changed.set,
        )
        self._probe = RuntimeProbe(runtime, clock=clock, tell=tell)
        self._refresher = PodRefresher(
            runtime, self._roster, clock=clock, note=self._notes.record, found=self._on_refresh
        )

    def stop(self) -> None:
        """No further pod is begun; those under way finish. Returns at once, without I/O."""
        self._stopped = True
        self._changed.set()
        self._ends.call_off()

    def cap_deadline(self, deadline: float) -> None:
        """Brings the deadline forward, also that of the running phase and its pods. Returns at once, without I/O."""
        if deadline < self._deadline:
            self._deadline = deadline
            self._refreshed = True
            self._changed.set()

    def allow_teardowns(self) -> None:
        """The machine waits no longer, so that the sandboxes that are left may use the runtime. Returns at once."""
        self._ends.allow_teardowns()

    async def run_phases(self) -> None:
        """Returns when the last phase is over, or promptly after ``stop``."""
        await self._announce_shutdown()
        probing = asyncio.create_task(self._probe.run(), name="runtime probe")
        relisting = asyncio.create_task(self._relist_pods(), name="relist pods")
        try:
            if not await self._wait_for_first_list():
                return
            if self._mode is ShutdownMode.ENFORCE:
                self._node.expect_pods(self._roster.namespaces)
            self._refresher.start_refresh(after=LOOK_AFTER)
            if self._before:
                await self._refresher.wait_for_refresh()
                await self._wait_for_specs()
                self._ends.resume_earlier_pods()
            for index in range(len(self._plan)):
                if index and not self._is_list_fresh:
                    self._refresher.start_refresh()
                self._is_list_fresh = False
                if (index or not self._roster.waiting_pods(index)) and not self._probe.silent:
                    await self._refresher.wait_for_refresh()
                if self._stopped:
                    return
                await self._run_phase(index)
            await self._wait_for_last_kills()
            await self._ends.wait_for_absent_pods(self._deadline)
            await self._report_finished()
        finally:
            await cancel_and_wait(probing, relisting)
            await self._refresher.close()

    async def withdraw_announcement(self) -> None:
        """Cancels the announcement after ``stop``; nothing marks the node as shutting down once this has returned."""
        if self._announcing:
            await cancel_and_wait(self._announcing)

    @property
    def open_uids(self) -> list[str]:
        """As ``PodEnds.open_uids``."""
        return self._ends.open_uids

    async def abandon(self) -> None:
        """Leaves what is under way as it is, for another shutdown or the next process to resume."""
        await self.withdraw_announcement()
        await self._group.cancel()
        await self._ends.abandon()

    # -- preparation ---------------------------------------------------------------------------------------------------

    async def _announce_shutdown(self) -> None:
        if self._mode is ShutdownMode.OBSERVE:
            return
        self._node.refuse_pods()
        self._announcing = asyncio.ensure_future(self._node.begin_shutdown(self._deadline))
        expecting = asyncio.ensure_future(self._expect_cached_pods())
        try:
            if not await self._notes.wait_at_most(ANNOUNCE_SECONDS, self._announcing):
                self._notes.record(
                    f"the announcement of the shutdown is not finished after {ANNOUNCE_SECONDS:g} s; the pods are terminated anyway"
                )
        finally:
            await cancel_and_wait(expecting)

    async def _expect_cached_pods(self) -> None:
        """Names the pods that are known already, so that what is asked about them is asked while the kubelet stops."""
        await self._clock.sleep(EXPECT_AFTER_SECONDS)
        if await self._refresher.read_cached():
            self._node.expect_pods(self._roster.namespaces)

    async def _wait_for_first_list(self) -> bool:
        """Waits for a first list of pods, out of the phases' time; False if ``stop`` or the deadline comes first."""
        while not await self._refresher.read_cached():
            if self._stopped or self._clock.boottime() >= self._deadline:
                return False
            await self._clock.sleep(RETRY_SECONDS)
        return not self._stopped

    async def _wait_for_specs(self) -> None:
        """Without its spec a pod has the priority 0 and would end first, whatever its own is."""
        end = min(self._clock.boottime() + SPEC_SECONDS, self._deadline)
        while self._roster.has_pods_without_spec and self._clock.boottime() < end and not self._stopped:
            await self._clock.sleep(SPEC_LOOK_SECONDS)
            await self._refresher.read_cached()

    async def _relist_pods(self) -> None:
        """Reads the list of pods again and again: a kubelet that somebody has started recreates what has ended."""
        while True:
            await self._clock.sleep(RELIST_SECONDS)
            self._notes.record_of_node()
            self._refresher.start_refresh()

    def _on_refresh(self) -> None:
        self._refreshed = True
        self._changed.set()

    # -- phases --------------------------------------------------------------------------------------------------------

    async def _run_phase(self, index: int) -> None:
        if self._before and self._before.phases[index].end not in (None, PhaseEnd.CANCELLED):
            return
        waiting = self._roster.waiting_pods(index) or await self._find_missed_pods(index)
        if not waiting:
            begun = self._before is not None and self._before.phases[index].started is not None
            over = PhaseEnd.DONE if begun else PhaseEnd.EMPTY
            self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))
            return
        over = await self._run_until_phase_end(index, self._start_phase_time(index, waiting))
        if over is PhaseEnd.RAN_OUT:
            over = self._give_up_open_pods()
        self._tell(PhaseEnded(at=self._clock.boottime(), index=index, end=over))

    async def _find_missed_pods(self, index: int) -> Sequence[RunningPod]:
        """An empty last phase's pods from a fresh list: the shutdown must not end on an outdated list."""
        if index == len(self._plan) - 1 and not (self._refresher.seen or self._probe.silent or self._stopped):
            await self._refresher.wait_for_refresh(LAST_LOOK_SECONDS)
        return self._roster.waiting_pods(index)

    async def _find_late_pods(self, index: int, time: PhaseTime) -> Sequence[RunningPod]:
        """Pods that a fresh list shows and whose phase still has time: they had been ordered to start before.

        The next phase needs that list in any case. If only MINIMUM is left, they have more time in the next phase.
        """
        if index == len(self._plan) - 1 or self._probe.silent or self._stopped:
            return await self._find_missed_pods(index)
        self._refresher.start_refresh()
        await self._refresher.wait_for_refresh()
        self._is_list_fresh = True
        return self._roster.waiting_pods(index) if self._clock.boottime() < time.last_kill - MINIMUM else ()

    def _give_up_open_pods(self) -> PhaseEnd:
        """Gives up the open pods at the phase's end. Returns RAN_OUT if a container may still run, else DONE."""
        over = PhaseEnd.DONE
        for uid in self._roster.open_uids:
            self._roster.mark_done(uid)
            if not self._roster.have_containers_ended(uid):
                over = PhaseEnd.RAN_OUT
                self._tell(PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.UNCONFIRMED))
        return over

    def _start_phase_time(self, index: int, waiting: Sequence[RunningPod]) -> PhaseTime:
        """The phase's time: recorded by an earlier process, or begun now and journalled."""
        record = self._before.phases[index] if self._before else None
        if self._before and record and record.started is not None and record.given is not None:
            started, seconds = self._before.boottime + record.started, record.given
        else:
            started = self._clock.boottime()
            seconds = remaining_time.next_phase_seconds(self._roster.remaining_phases(index), self._deadline - started)
            self._tell(PhaseStarted(at=started, index=index, seconds=round(seconds, 3)))
        kills = self._runtime.kill_seconds(self._roster.count_kills(waiting))
        return phase_time(started, seconds, kills, self._deadline)

    def _shorten_phase(self, index: int, time: PhaseTime) -> PhaseTime:
        """The running phase's time after a refresh, which may have found pods of later phases, or with a new deadline.

        The phase gets what it would have got if those had been known at its start. It never gets more than it has,
        because the runtime already knows when to kill.
        """
        seconds = remaining_time.next_phase_seconds(self._roster.remaining_phases(index), self._deadline - time.started)
        if seconds > time.seconds - _SAME:
            if time.end <= self._deadline:
                return time
            seconds = time.seconds
        else:
            self._tell(PhaseShortened(at=self._clock.boottime(), index=index, seconds=round(seconds, 3)))
        shorter = phase_time(time.started, seconds, time.kill_seconds, self._deadline)
        self._ends.shorten(shorter)
        return shorter

    async def _run_until_phase_end(self, index: int, time: PhaseTime) -> PhaseEnd:
        """Begins the phase's pods, including those found meanwhile, and waits for them until the phase ends."""
        alarm = self._start_alarm(time.end)
        begun = time.started
        try:
            while not self._stopped:
                self._changed.clear()  # before the look: what happens while pods begin is not missed
                before, time = time, self._shorten_phase(index, time) if self._refreshed else time
                self._refreshed = False
                if time is not before:
                    await cancel_and_wait(alarm)
                    alarm = self._start_alarm(time.end)
                await self._ends.begin_pods(self._roster.waiting_pods(index), index, time, begun)
                if not self._roster.open_uids and not await self._find_late_pods(index, time):
                    return PhaseEnd.DONE
                if not self._roster.open_uids:
                    begun = self._clock.boottime()
                    continue
                if alarm.done():
                    return PhaseEnd.RAN_OUT
                await self._changed.wait()
                begun = self._clock.boottime()
            return PhaseEnd.CANCELLED
        finally:
            await cancel_and_wait(alarm)

    def _start_alarm(self, at: float) -> "asyncio.Future[None]":
        alarm = asyncio.ensure_future(self._clock.sleep(at - self._clock.boottime()))
        alarm.add_done_callback(lambda _: self._changed.set())
        return alarm

    async def _wait_for_last_kills(self) -> None:
        """Waits until the deadline for kills that their phase did not see confirmed.

        Not for volumes: a driver that hangs does not hold up the machine beyond the phases.
        """
        alarm = self._start_alarm(self._deadline)
        try:
            while self.open_uids and not alarm.done():
                self._changed.clear()
                await self._changed.wait()
        finally:
            await cancel_and_wait(alarm)

    async def _report_finished(self) -> None:
        """Reports the finished shutdown to observers of this node; takes no longer than the announcement may."""
        if self._mode is ShutdownMode.ENFORCE and not self._stopped:
            left = min(ANNOUNCE_SECONDS, self._deadline - self._clock.boottime())
            await self._notes.wait_at_most(left, self._group.start(self._node.report_finished(), "finished report"))
            self._notes.record_of_node()
