"""The terminations of a shutdown's pods: one task for each pod that has begun, until its last status is written.

Also of pods that an earlier process began to terminate.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lastcall.aio import OrderedTaskGroup, Signal, wait_first
from lastcall.graceful.planning.time_windows import PhaseTime, TerminationWindow
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.application_wait import wait_for_application
from lastcall.graceful.shutdown.container_termination import Tell
from lastcall.graceful.shutdown.pod_termination import (
    SANDBOX_SECONDS,
    PodTermination,
    initial_events,
    record_absent_pod,
)
from lastcall.graceful.shutdown.resumption import is_recreated
from lastcall.graceful.shutdown.roster import Roster
from lastcall.graceful.shutdown.shutdown_notes import ShutdownNotes
from lastcall.graceful.shutdown.users_wait import wait_for_users
from lastcall.model.pods import asked_grace
from lastcall.model.shutdown import (
    ContainerSignalled,
    HookStarted,
    JournalEvent,
    PodEnded,
    PodOutcome,
    PodRecord,
    ShutdownMode,
)
from lastcall.ports.node import Clock, NodeFace, PodRuntime, RunningPod

FIRST_STEP_SECONDS = 0.001
"""How long the other pods of a phase wait for the first step of one of them, which may itself have to wait, in seconds."""

SANDBOX_DELAY = 1.0
"""How long the teardown of a sandbox leaves the runtime to what the machine waits for, in seconds."""


class PodEnds:
    """Terminates pods, each within its window; the roster knows how far they are. ``changed`` is called at each step.

    ``records`` are the pods that an earlier process began to terminate, by uid. ``taken_over`` are those of an earlier,
    cancelled shutdown, with times in CLOCK_BOOTTIME seconds.
    """

    def __init__(
        self,
        roster: Roster,
        *,
        mode: ShutdownMode,
        runtime: PodRuntime,
        node: NodeFace,
        clock: Clock,
        tell: Tell,
        notes: ShutdownNotes,
        records: Mapping[str, PodRecord],
        taken_over: Mapping[str, PodRecord],
        changed: Callable[[], None],
    ) -> None:
        self._roster = roster
        self._mode = mode
        self._runtime = runtime
        self._node = node
        self._clock = clock
        self._tell = tell
        self._notes = notes
        self._records = records
        self._taken_over = taken_over
        self._changed = changed
        self._group = OrderedTaskGroup()
        self._absent = OrderedTaskGroup()
        self._sandboxes = OrderedTaskGroup()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._times: dict[str, AdjustableWindow] = {}
        self._is_released = asyncio.Event()
        self._left = Signal()
        self._stepped = Signal()
        """Set when a container gets its hook or a signal, or when nothing is done to a pod any more."""
        self._called_off = False

    @property
    def open_uids(self) -> list[str]:
        """The uids of the pods whose termination has begun and not finished, also of those given up by their phase."""
        return [
            uid for uid, task in self._tasks.items() if not task.done() and not self._roster.have_containers_ended(uid)
        ]

    async def begin_pods(self, waiting: Sequence[RunningPod], index: int, time: PhaseTime, begun: float) -> None:
        """Begins pods of the phase ``index``, whose windows are counted from ``begun``.

        The first pod gets its hook or its SIGTERM before the others have their lines in the journal. All count as begun
        by then: one that serves others waits for them.
        """
        terminations = [self._prepare_termination(live, index, time, begun) for live in waiting]
        stepped = self._stepped.next()
        for number, start in enumerate(terminations):
            if number == 1:
                await wait_first(stepped, self._clock.sleep(FIRST_STEP_SECONDS))
            start()

    def _prepare_termination(self, live: RunningPod, index: int, time: PhaseTime, begun: float) -> Callable[[], None]:
        """Marks the pod as begun; returns what starts its termination."""
        uid = live.pod.metadata.uid
        record = self._records.get(uid) or self._taken_over.get(uid)
        if record:
            begun = self._clock.boottime() if is_recreated(record, live) else record.started
        mine = AdjustableWindow(_pod_window(live, time, begun), self._clock)
        self._times[uid] = mine
        self._roster.mark_begun(uid)
        events = () if uid in self._records else initial_events(live, index, mine, record, clock=self._clock)
        return partial(self._start_unless_called_off, live, mine, record, events)

    def shorten(self, time: PhaseTime) -> None:
        """Fits the windows of the open pods into a shorter phase."""
        for uid in self._roster.open_uids:
            live, pods_time = self._roster.running_pod(uid), self._times.get(uid)
            if live and pods_time:
                pods_time.shorten(_pod_window(live, time, pods_time.window.started))

    def call_off(self) -> None:
        """The shutdown is cancelled: pods to which nothing was done are left alone. Returns at once."""
        self._called_off = True
        self._left.set()

    def allow_teardowns(self) -> None:
        """The machine waits no longer, so that the sandboxes that are left may use the runtime. Returns at once."""
        self._is_released.set()

    async def abandon(self) -> None:
        """Leaves what is under way as it is."""
        await self._group.cancel()
        await self._absent.cancel()
        await self._sandboxes.cancel()

    # -- an earlier process's ------------------------------------------------------------------------------------------

    def resume_earlier_pods(self) -> None:
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

    async def wait_for_absent_pods(self, until: float) -> None:
        """Waits until then (CLOCK_BOOTTIME seconds) for what an earlier process left undone of pods that have ended."""
        if self._absent.running_count:
            left = until - self._clock.boottime()
            await self._notes.wait_at_most(left, asyncio.ensure_future(self._absent.join()))

    async def _record_absent_pod(self, record: PodRecord) -> None:
        try:
            await record_absent_pod(record, node=self._node, clock=self._clock, tell=self._tell)
        except Exception as error:
            key = f"{record.namespace}/{record.name}"
            self._notes.record(f"{key}: its last status could not be written: {type(error).__name__}: {error}")

    # -- one pod -------------------------------------------------------------------------------------------------------

    def _start_unless_called_off(
        self, live: RunningPod, time: AdjustableWindow, record: PodRecord | None, events: Iterable[JournalEvent]
    ) -> None:
        """Nothing has been done to a pod without a record."""
        if record or not self._called_off:
            self._start_termination(live, time, record, events)

    def _start_termination(
        self, live: RunningPod, time: AdjustableWindow, record: PodRecord | None, events: Iterable[JournalEvent] = ()
    ) -> None:
        work = self._terminate_pod(live, time, record, events)
        self._tasks[live.pod.metadata.uid] = self._group.start(work, f"end {live.pod.key}")

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
                waited = await self._wait_for_application(live, time)
                if waited and self._called_off:
                    return
                if await self._wait_for_users(live, time) and self._called_off:
                    return
            self._tell_all(*events, *([waited] if waited else []))
            going = self._make_termination(live, time, record)
            if not await going.terminate_containers():
                return
            if self._is_latest_task(uid):
                self._roster.mark_containers_ended(uid, going.ended_containers)
                self._changed()
            await self._finish_pod(live, going)
        except Exception as error:
            self._notes.record(f"the end of {live.pod.key} broke off: {type(error).__name__}: {error}")
        finally:
            if self._is_latest_task(uid):
                self._roster.mark_done(uid)
            self._changed()
            self._left.set()
            self._stepped.set()

    def _make_termination(self, live: RunningPod, time: AdjustableWindow, record: PodRecord | None) -> PodTermination:
        return PodTermination(
            live,
            time=time,
            runtime=self._runtime,
            node=self._node,
            clock=self._clock,
            tell=self._tell_step,
            called_off=lambda: self._called_off,
            before=record.containers if record else (),
        )

    async def _finish_pod(self, live: RunningPod, going: PodTermination) -> None:
        """Sandbox and last status of a pod whose containers have ended."""
        teardown = self._sandboxes.start(self._tear_down_sandbox(going), f"sandbox of {live.pod.key}")
        if self._roster.may_serve_sandboxes:
            await self._notes.wait_at_most(SANDBOX_SECONDS, teardown)
        self._roster.mark_left(live.pod.metadata.uid)
        self._left.set()
        await going.write_last_status()
        self._notes.record_of_node()

    async def _wait_for_application(self, live: RunningPod, time: AdjustableWindow) -> JournalEvent | None:
        return await wait_for_application(
            live, time, node=self._node, clock=self._clock, called_off=lambda: self._called_off
        )

    async def _wait_for_users(self, live: RunningPod, time: AdjustableWindow) -> bool:
        return await wait_for_users(
            live,
            time,
            roster=self._roster,
            left=self._left,
            clock=self._clock,
            tell=self._tell,
            called_off=lambda: self._called_off,
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
        return self._tasks[uid] is asyncio.current_task()

    def _tell_step(self, event: JournalEvent) -> None:
        self._tell(event)
        if isinstance(event, HookStarted | ContainerSignalled):
            self._stepped.set()

    def _tell_all(self, *events: JournalEvent) -> None:
        for event in events:
            self._tell(event)


def _pod_window(live: RunningPod, time: PhaseTime, started: float) -> TerminationWindow:
    return time.pod_window(started, asked_grace(live.pod))
