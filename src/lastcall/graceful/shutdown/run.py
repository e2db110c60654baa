"""Runs one shutdown: phase after phase, lowest priority first, each within its seconds.

A phase begins only after the one before it has finished or run out of time. A phase keeps time to confirm the kills
of its remaining containers. ``stop`` takes effect between two pods.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from lastcall.aio import OrderedTaskGroup, Signal, cancel_and_wait, wait_any, wait_first
from lastcall.graceful.planning import remaining_time
from lastcall.graceful.planning.time_windows import MINIMUM, PhaseTime, TerminationWindow, phase_time
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.application_wait import wait_for_application
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.graceful.shutdown.pod_refresher import LAST_LOOK_SECONDS, LOOK_AFTER, PodRefresher
from lastcall.graceful.shutdown.pod_termination import (
    SANDBOX_SECONDS,
    PodTermination,
    initial_events,
    record_absent_pod,
)
from lastcall.graceful.shutdown.resumption import is_recreated, pods_by_uid
from lastcall.graceful.shutdown.roster import Roster
from lastcall.graceful.shutdown.runtime_probe import RuntimeProbe
from lastcall.graceful.shutdown.users_wait import wait_for_users
from lastcall.model.pods import asked_grace
from lastcall.model.shutdown import (
    JournalEvent,
    NoteWritten,
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

SANDBOX_DELAY = 1.0
"""How long the teardown of a sandbox leaves the runtime to what the machine waits for, in seconds."""

SPEC_SECONDS = 0.25
"""How long a resumed shutdown waits for the specs of pods that no source knows: the agent has only just asked for them."""

SPEC_LOOK_SECONDS = 0.02
"""Seconds between two looks whether a source knows them."""

RETRY_SECONDS = 0.25
"""Seconds between two attempts to get a first list of pods from an unavailable runtime."""

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
        self._records = pods_by_uid(before) if before else {}
        self._taken_over = dict(taken_over or {})
        self._roster = Roster(plan, before)
        self._group = OrderedTaskGroup()
        self._absent = OrderedTaskGroup()
        self._sandboxes = OrderedTaskGroup()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._announcing: asyncio.Future[None] | None = None
        self._stopped = False
        self._changed = asyncio.Event()
        self._is_released = asyncio.Event()
        self._left = Signal()
        self._refreshed = False
        self._is_list_fresh = False
        self._times: dict[str, AdjustableWindow] = {}
        self._probe = RuntimeProbe(runtime, clock=clock, tell=tell)
        self._refresher = PodRefresher(
            runtime, self._roster, clock=clock, note=self._record_note, found=self._on_refresh
        )

    def stop(self) -> None:
        """No further pod is begun; those under way finish. Returns at once, without I/O."""
        self._stopped = True
        self._changed.set()
        self._left.set()

    def cap_deadline(self, deadline: float) -> None:
        """Brings the deadline forward, also that of the running phase and its pods. Returns at once, without I/O."""
        if deadline < self._deadline:
            self._deadline = deadline
            self._refreshed = True
            self._changed.set()

    def allow_teardowns(self) -> None:
        """The machine waits no longer, so that the sandboxes that are left may use the runtime. Returns at once."""
        self._is_released.set()

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
                self._resume_earlier_pods()
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
            await self._wait_for_absent_pods()
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
        """The uids of the pods whose termination has begun and not finished, also of those given up by their phase."""
        return [
            uid for uid, end in self._ends.items() if not end.done() and not self._roster.have_containers_ended(uid)
        ]

    async def abandon(self) -> None:
        """Leaves what is under way as it is, for another shutdown or the next process to resume."""
        await self.withdraw_announcement()
        await self._group.cancel()
        await self._absent.cancel()
        await self._sandboxes.cancel()

    # -- preparation ---------------------------------------------------------------------------------------------------

    async def _announce_shutdown(self) -> None:
        if self._mode is ShutdownMode.OBSERVE:
            return
        self._node.refuse_pods()
        self._announcing = asyncio.ensure_future(self._node.begin_shutdown(self._deadline))
        expecting = asyncio.ensure_future(self._expect_cached_pods())
        try:
            if not await self._wait_at_most(ANNOUNCE_SECONDS, self._announcing):
                self._record_note(
                    f"the announcement of the shutdown is not finished after {ANNOUNCE_SECONDS:g} s; the pods are terminated anyway"
                )
        finally:
            await cancel_and_wait(expecting)

    async def _expect_cached_pods(self) -> None:
        """Names the pods that are known already, so that what is asked about them is asked while the kubelet stops."""
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
            self._record_node_notes()
            self._refresher.start_refresh()

    def _resume_earlier_pods(self) -> None:
        """Resumes pods that an earlier process began to terminate and that no phase contains any more.

        Also those that have ended: the earlier process may not have finished their volumes and last status.
        """
        for record in self._records.values():
            live = self._roster.running_pod(record.uid)
            if live and record.outcome is PodOutcome.UNCONFIRMED:
                now = self._clock.boottime()
                window = TerminationWindow(started=record.started, grace=record.grace, last_kill=now)
                self._start_termination(live, AdjustableWindow(window, self._clock), record)
            elif not live and record.unmounted is None and self._mode is ShutdownMode.ENFORCE:
                self._absent.start(self._record_absent_pod(record), f"note {record.namespace}/{record.name}")

    async def _record_absent_pod(self, record: PodRecord) -> None:
        try:
            await record_absent_pod(record, node=self._node, clock=self._clock, tell=self._tell)
        except Exception as error:
            key = f"{record.namespace}/{record.name}"
            self._record_note(f"{key}: its last status could not be written: {type(error).__name__}: {error}")

    async def _wait_at_most(self, seconds: float, task: "asyncio.Future[None]") -> bool:
        """Waits for a task and leaves it running after the time limit; notes its error. Returns whether it is done."""
        alarm = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await wait_any(task, alarm)
        finally:
            await cancel_and_wait(alarm)
        if task.done() and not task.cancelled() and (error := task.exception()):
            self._record_note(f"{type(error).__name__}: {error}")
        return task.done()

    def _on_refresh(self) -> None:
        self._refreshed = True
        self._changed.set()

    def _record_node_notes(self) -> None:
        for text in self._node.take_notes():
            self._record_note(text)

    def _tell_all(self, *events: JournalEvent) -> None:
        for event in events:
            self._tell(event)

    def _record_note(self, text: str) -> None:
        self._tell(NoteWritten(at=self._clock.boottime(), text=text))

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
        for uid in self._roster.open_uids:
            live, pods_time = self._roster.running_pod(uid), self._times.get(uid)
            if live and pods_time:
                pods_time.shorten(_pod_window(live, shorter, pods_time.window.started))
        return shorter

    async def _run_until_phase_end(self, index: int, time: PhaseTime) -> PhaseEnd:
        """Begins the phase's pods, including those found meanwhile, and waits for them until the phase ends."""
        alarm = self._start_alarm(time.end)
        begun = time.started
        try:
            while not self._stopped:
                before, time = time, self._shorten_phase(index, time) if self._refreshed else time
                self._refreshed = False
                if time is not before:
                    await cancel_and_wait(alarm)
                    alarm = self._start_alarm(time.end)
                for live in self._roster.waiting_pods(index):
                    self._begin_pod(live, index, time, begun)
                if not self._roster.open_uids and not await self._find_late_pods(index, time):
                    return PhaseEnd.DONE
                if not self._roster.open_uids:
                    begun = self._clock.boottime()
                    continue
                if alarm.done():
                    return PhaseEnd.RAN_OUT
                self._changed.clear()
                await self._changed.wait()
                begun = self._clock.boottime()
            return PhaseEnd.CANCELLED
        finally:
            await cancel_and_wait(alarm)

    def _start_alarm(self, at: float) -> "asyncio.Future[None]":
        alarm = asyncio.ensure_future(self._clock.sleep(at - self._clock.boottime()))
        alarm.add_done_callback(lambda _: self._changed.set())
        return alarm

    def _begin_pod(self, live: RunningPod, index: int, time: PhaseTime, begun: float) -> None:
        uid = live.pod.metadata.uid
        record = self._records.get(uid) or self._taken_over.get(uid)
        if record:
            begun = self._clock.boottime() if is_recreated(record, live) else record.started
        window = _pod_window(live, time, begun)
        mine = AdjustableWindow(window, self._clock)
        self._times[uid] = mine
        self._roster.mark_begun(uid)
        known = uid in self._records
        self._start_termination(
            live, mine, record, () if known else initial_events(live, index, mine, record, clock=self._clock)
        )

    def _start_termination(
        self, live: RunningPod, time: AdjustableWindow, record: PodRecord | None, events: Iterable[JournalEvent] = ()
    ) -> None:
        work = self._terminate_pod(live, time, record, events)
        self._ends[live.pod.metadata.uid] = self._group.start(work, f"end {live.pod.key}")

    async def _terminate_pod(
        self, live: RunningPod, time: AdjustableWindow, record: PodRecord | None, events: Iterable[JournalEvent]
    ) -> None:
        uid = live.pod.metadata.uid
        try:
            if self._mode is ShutdownMode.OBSERVE:
                self._tell_all(*events, PodEnded(at=self._clock.boottime(), uid=uid, outcome=PodOutcome.OBSERVED))
                return
            waited = None
            if record is None:
                waited = await wait_for_application(
                    live, time, node=self._node, clock=self._clock, called_off=lambda: self._stopped
                )
                if waited and self._stopped:
                    return
                if await self._wait_for_users(live, time) and self._stopped:
                    return
            self._tell_all(*events, *([waited] if waited else []))
            going = PodTermination(
                live,
                time=time,
                runtime=self._runtime,
                node=self._node,
                clock=self._clock,
                tell=self._tell,
                called_off=lambda: self._stopped,
                before=record.containers if record else (),
            )
            if not await going.terminate_containers():
                return
            if self._is_latest_task(uid):
                self._roster.mark_containers_ended(uid, going.ended_containers)
                self._changed.set()
            teardown = self._sandboxes.start(self._tear_down_sandbox(going), f"sandbox of {live.pod.key}")
            if self._roster.may_serve_sandboxes:
                await self._wait_at_most(SANDBOX_SECONDS, teardown)
            self._roster.mark_left(uid)
            self._left.set()
            await going.write_last_status()
            self._record_node_notes()
        except Exception as error:
            self._record_note(f"the end of {live.pod.key} broke off: {type(error).__name__}: {error}")
        finally:
            if self._is_latest_task(uid):
                self._roster.mark_done(uid)
            self._changed.set()
            self._left.set()

    async def _wait_for_users(self, live: RunningPod, time: AdjustableWindow) -> bool:
        return await wait_for_users(
            live,
            time,
            roster=self._roster,
            left=self._left,
            clock=self._clock,
            tell=self._tell,
            called_off=lambda: self._stopped,
        )

    async def _tear_down_sandbox(self, going: PodTermination) -> None:
        """Not beside what the machine waits for, unless it needs pods that are about to end: it would hold that up.

        A teardown is as much work for the runtime as the end of the container.
        """
        if not (self._roster.may_serve_sandboxes or self._roster.may_lose_sandbox_servers):
            await wait_first(self._is_released.wait(), self._clock.sleep(SANDBOX_DELAY))
        await going.tear_down_sandbox()

    def _is_latest_task(self, uid: str) -> bool:
        """Whether this task is the pod's latest termination: an older one must not change the newer one's state."""
        return self._ends[uid] is asyncio.current_task()

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

    async def _wait_for_absent_pods(self) -> None:
        """Waits until the deadline for what an earlier process has left undone of pods that have ended."""
        if self._absent.running_count:
            left = self._deadline - self._clock.boottime()
            await self._wait_at_most(left, asyncio.ensure_future(self._absent.join()))

    async def _report_finished(self) -> None:
        """Reports the finished shutdown to observers of this node; takes no longer than the announcement may."""
        if self._mode is ShutdownMode.ENFORCE and not self._stopped:
            left = min(ANNOUNCE_SECONDS, self._deadline - self._clock.boottime())
            await self._wait_at_most(left, self._group.start(self._node.report_finished(), "finished report"))
            self._record_node_notes()


def _pod_window(live: RunningPod, time: PhaseTime, started: float) -> TerminationWindow:
    return time.pod_window(started, asked_grace(live.pod))
