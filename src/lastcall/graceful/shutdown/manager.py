"""Begins, resumes, cancels and closes shutdowns: one at a time, each with its journal."""

import asyncio
import datetime as dt
import logging
import math
from collections.abc import Callable, Mapping, Sequence

from lastcall.aio import OrderedTaskGroup, cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.deadlines.joining import notice_changes, recorded_notices
from lastcall.graceful.planning import remaining_time
from lastcall.graceful.shutdown.journal_recorder import JournalRecorder, Listener
from lastcall.graceful.shutdown.resumption import ResumeDecision, pods_by_uid, resume_decision
from lastcall.graceful.shutdown.run import ShutdownRun
from lastcall.model.shutdown import (
    AnyEvent,
    LockReleased,
    LogindAnnounced,
    MachineReturned,
    NoteWritten,
    NoticeReceived,
    NoticeWithdrawn,
    PhasePlan,
    PodRecord,
    ShutdownCancelled,
    ShutdownMode,
    ShutdownRecord,
    ShutdownResumed,
    ShutdownStarted,
    from_lines,
)
from lastcall.model.shutdown_fold import fold_events
from lastcall.model.shutdown_notice import LOGIND, NoticeSource, ShutdownNotice
from lastcall.ports.node import Clock, JournalFile, Journals, NodeFace, PodRuntime

DISK_SECONDS = 1.0
"""Delay in seconds before the first disk writes of a shutdown: an fsync and its thread would hold up the SIGTERMs."""

BACK_SECONDS = 5.0
"""Seconds between two attempts to make the node ready again."""

log = logging.getLogger(__name__)


class NodeShutdownManager:
    """This node's shutdowns. ``wake`` is called when the current shutdown's phases are over."""

    def __init__(
        self,
        *,
        node_name: str,
        boot_id: str,
        runtime: PodRuntime,
        node: NodeFace,
        journals: Journals,
        clock: Clock,
        listeners: Sequence[Listener],
        wake: Callable[[], None],
    ) -> None:
        self._node_name = node_name
        self._boot_id = boot_id
        self._runtime = runtime
        self._node = node
        self._journals = journals
        self._clock = clock
        self._wake = wake
        self._recorder = JournalRecorder(listeners)
        self._background = OrderedTaskGroup()
        self._left: tuple[ShutdownRecord, Sequence[AnyEvent]] | None = None
        self._called_off: ShutdownRun | None = None
        self._returning: asyncio.Task[None] | None = None
        self._run: ShutdownRun | None = None
        self._is_first_answer = True
        self._task: asyncio.Task[None] | None = None
        self._mode = ShutdownMode.ENFORCE
        self._began: float | None = None
        self._ended: float | None = None
        self._writing = asyncio.Lock()
        self._requested = 0.0
        self._announced = False
        self._known_notices: dict[NoticeSource, float] = {}
        self.deadline = 0.0
        """The latest time at which the lock is released (CLOCK_BOOTTIME seconds)."""

    @property
    def is_over(self) -> bool:
        """Whether only the release of the lock remains: the phases are over, or the deadline has passed."""
        return self._task is None or self._task.done() or self._clock.boottime() >= self.deadline

    def recover(self) -> None:
        """Reads the newest journal of an earlier process; its meaning is known only after logind has answered."""
        self._left = self._read_latest()

    @property
    def has_unfinished_shutdown(self) -> bool:
        """Whether an earlier process left a shutdown in this boot whose fate logind has not yet confirmed."""
        return self._resume_decision(preparing=True) in (ResumeDecision.RESUME, ResumeDecision.ALREADY_RELEASED)

    @property
    def is_announced(self) -> bool:
        """Whether logind has announced the current shutdown, also to an earlier process."""
        return self._announced

    @property
    def unfinished_notices(self) -> tuple[ShutdownNotice, ...]:
        """The notices of an earlier process's shutdown in this boot; their sources have yet to confirm them."""
        return recorded_notices(self._left[0]) if self._left and self.has_unfinished_shutdown else ()

    def close_if_cancelled(self, *, preparing: bool) -> None:
        """As soon as logind has answered: closes a shutdown that was cancelled while no agent ran.

        Otherwise lets the node clean up after the shutdown before this boot.
        """
        if preparing or not self._is_first_answer:
            return
        self._is_first_answer = False
        verdict, left, self._left = self._resume_decision(preparing=False), self._left, None
        self._wake()
        if left and verdict is ResumeDecision.CANCELLED:
            self._reopen_journal(left[0])
            self._recorder.replay(left[1])
            self._start_return("it was cancelled while no agent was running", mode=left[0].mode)
        else:
            is_back = verdict in (ResumeDecision.EARLIER_BOOT, ResumeDecision.SOFT_REBOOTED)
            last = self._close_earlier_boot(*left) if left and is_back else None
            self._background.start(self._clean_up(last or (left[0] if left else None)), "clean up")

    async def begin(
        self,
        config: AgentConfig,
        *,
        granted: float | None,
        how: str,
        lock: bool,
        announced: bool = True,
        notices: Sequence[ShutdownNotice] = (),
    ) -> None:
        """Begins a shutdown, or resumes the one that an earlier process began in this boot.

        ``announced``: logind announces it, as ``how``, and grants ``granted`` seconds. ``notices``: those that hold.
        """
        await self._stop_returning()
        self._is_first_answer = False
        verdict, left, self._left = self._resume_decision(preparing=True), self._left, None
        if verdict is ResumeDecision.ALREADY_RELEASED and left:
            self._finish_released(left[0])
        elif verdict is ResumeDecision.RESUME and left:
            self._resume_shutdown(*left, lock=lock)
        else:
            taken_over = await self._take_over_pods()
            seconds = granted if announced else None
            self._start_new(
                config,
                deadline=self._earliest_deadline(config, seconds, announced=announced, notices=notices),
                granted=seconds,
                how=how,
                lock=lock,
                announced=announced,
                notices=notices,
                taken_over=taken_over,
            )
        self.join_announcements(notices, announced=announced, how=how, granted=granted)

    def join_announcements(
        self, notices: Sequence[ShutdownNotice], *, announced: bool, how: str, granted: float | None
    ) -> bool:
        """Records who announces the shutdown under way; returns whether its deadline came forward.

        Whatever is announced while it lasts is the same shutdown: it begins no second one and adds no time.
        """
        before, now = self.deadline, self._clock.boottime()
        for event in list(notice_changes(self._known_notices, notices, now)):
            self._recorder.record(event)
            if isinstance(event, NoticeReceived):
                self._known_notices[event.source] = event.deadline
                self.deadline = min(self.deadline, event.deadline)
            elif isinstance(event, NoticeWithdrawn):
                self._known_notices.pop(event.source, None)
        if announced and not self._announced:
            self._announced = True
            limit = self._requested if granted is None else granted
            deadline = remaining_time.release_deadline(now, self._requested, limit)
            self._recorder.record(LogindAnnounced(at=now, how=how, deadline=deadline))
            self.deadline = min(self.deadline, deadline)
        if self._run:
            self._run.cap_deadline(self.deadline)
        return self.deadline < before

    def cancel_shutdown(self, why: str) -> None:
        """Cancels the shutdown: no further pod is terminated, and the node becomes ready again."""
        self.join_announcements((), announced=False, how="", granted=None)
        if self._run:
            self._run.stop()
        self._called_off, self._run, self._task = self._run, None, None
        self._start_return(why, mode=self._mode)

    def record_release(self) -> None:
        """Records that the lock has been released. Returns at once; the only I/O is the journal's."""
        phases_over = self._task is None or self._task.done()
        why = "all phases are over" if phases_over else "the time is over"
        self._recorder.record(LockReleased(at=self._clock.boottime(), why=why))
        self._write_state(ended=self._clock.wall())
        if self._run:
            self._run.allow_teardowns()

    async def close(self) -> None:
        """Stops this process's work; the next process resumes a shutdown under way."""
        if self._task:
            await cancel_and_wait(self._task)
        for run in (self._run, self._called_off):
            if run:
                await run.abandon()
        await self._background.cancel()
        await self._recorder.wait_for_sync()

    # ------------------------------------------------------------------------------------------------------------------

    def _resume_decision(self, *, preparing: bool) -> ResumeDecision:
        return resume_decision(self._left[0] if self._left else None, boot_id=self._boot_id, preparing=preparing)

    def _reopen_journal(self, record: ShutdownRecord) -> None:
        """Continues the journal of an earlier process."""
        self._began = record.wall
        self._recorder.switch_journal(self._open_journal(self._journals.reopen, record.id))

    def _open_journal(self, verb: Callable[[str], JournalFile], shutdown_id: str) -> JournalFile | None:
        try:
            return verb(shutdown_id)
        except (OSError, LastcallError) as error:
            log.error("the journal cannot be written, continuing without it: %s", error)
            return None

    def _finish_released(self, record: ShutdownRecord) -> None:
        """Adopts a shutdown whose lock an earlier process released: nothing remains to be done."""
        self._reopen_journal(record)
        self._adopt_announcements(record)
        self._mode = record.mode
        self.deadline = 0.0
        if record.mode is ShutdownMode.ENFORCE:
            self._node.refuse_pods()

    def _start_return(self, why: str, *, mode: ShutdownMode) -> None:
        self._returning = self._background.start(self._return_to_ready(why, mode), "make the node ready again")

    def _close_earlier_boot(self, record: ShutdownRecord, events: Sequence[AnyEvent]) -> ShutdownRecord:
        """Completes the journal of the shutdown before this boot, or before a soft-reboot: the machine is back."""
        if record.returned is not None:
            return record
        event = MachineReturned(at=self._clock.boottime(), boot_id=self._boot_id, wall=self._clock.wall())
        self._reopen_journal(record)
        self._recorder.record(event)
        self._recorder.start_sync()
        return fold_events([*events, event])

    async def _clean_up(self, last: ShutdownRecord | None) -> None:
        try:
            await self._node.clean_up(last)
        except Exception as error:
            log.error("what the last shutdown left stays: %s: %s", type(error).__name__, error)

    async def _return_to_ready(self, why: str, mode: ShutdownMode) -> None:
        """Closes the journal only when the node is ready again, so that the next process can finish the return."""
        if self._called_off:
            await self._called_off.withdraw_announcement()
        while mode is ShutdownMode.ENFORCE:
            try:
                await self._node.mark_ready()
                break
            except Exception as error:
                log.error("the node could not be made ready again, trying again: %s: %s", type(error).__name__, error)
            await self._clock.sleep(BACK_SECONDS)
        self._record_node_notes()
        self._record_cancelled(why)

    def _record_node_notes(self) -> None:
        for text in self._node.take_notes():
            self._recorder.record(NoteWritten(at=self._clock.boottime(), text=text))

    def _record_cancelled(self, why: str) -> None:
        self._recorder.record(ShutdownCancelled(at=self._clock.boottime(), why=why))
        self._write_state(ended=self._clock.wall())

    async def _stop_returning(self) -> None:
        """Stops the return to ready, because another shutdown begins; the node may not have become ready yet."""
        if self._returning and not self._returning.done():
            await cancel_and_wait(self._returning)
            self._record_cancelled("another shutdown began")

    async def _take_over_pods(self) -> dict[str, PodRecord]:
        """The pods that a cancelled shutdown began to terminate; the new shutdown takes them over."""
        run, self._called_off = self._called_off, None
        if run is None:
            return {}
        uids = run.open_uids
        await run.abandon()
        records = pods_by_uid(fold_events(self._recorder.events))
        return {uid: records[uid] for uid in uids if uid in records}

    def _adopt_announcements(self, record: ShutdownRecord) -> None:
        """Takes over who has announced the shutdown of an earlier process."""
        self._requested = record.requested
        self._announced = LOGIND in record.announced_by
        self._known_notices = {notice.source: notice.deadline for notice in recorded_notices(record)}

    def _earliest_deadline(
        self, config: AgentConfig, granted: float | None, *, announced: bool, notices: Sequence[ShutdownNotice]
    ) -> float:
        """The deadline of a new shutdown: logind's, and that of each notice."""
        now, requested = self._clock.boottime(), float(config.requested_seconds)
        deadlines = [notice.deadline for notice in notices]
        if announced:
            limit = requested if granted is None else granted
            deadlines.append(remaining_time.release_deadline(now, requested, limit))
        return max(now, min(deadlines))

    def _start_new(
        self,
        config: AgentConfig,
        *,
        deadline: float,
        granted: float | None,
        how: str,
        lock: bool,
        announced: bool,
        notices: Sequence[ShutdownNotice],
        taken_over: Mapping[str, PodRecord],
    ) -> None:
        now, wall = self._clock.boottime(), self._clock.wall()
        requested = float(config.requested_seconds)
        self._requested, self._announced = requested, announced
        received = tuple(one for one in notice_changes({}, notices, now) if isinstance(one, NoticeReceived))
        self._known_notices = {one.source: one.deadline for one in received}
        if not announced:
            granted = deadline - now
        started = ShutdownStarted(
            at=now,
            id=_shutdown_id(wall),
            node=self._node_name,
            boot_id=self._boot_id,
            wall=wall,
            how=how,
            mode=config.mode,
            requested=requested,
            granted=None if granted == math.inf else granted,
            deadline=deadline,
            lock=lock,
            phases=config.groups,
            announced=announced,
            notices=received,
        )
        self._began = wall
        self._recorder.switch_journal(self._open_journal(self._journals.create, started.id))
        self._recorder.record(started)
        self._start_run(config.groups, deadline=deadline, mode=config.mode, taken_over=taken_over)

    def _resume_shutdown(self, record: ShutdownRecord, events: Sequence[AnyEvent], *, lock: bool) -> None:
        self._reopen_journal(record)
        self._adopt_announcements(record)
        self._recorder.replay(events)
        self._recorder.record(ShutdownResumed(at=self._clock.boottime(), lock=lock))
        plan = [PhasePlan(priority=phase.priority, seconds=phase.seconds) for phase in record.phases]
        deadline = record.boottime + record.deadline
        self._start_run(plan, deadline=deadline, mode=record.mode, before=record)

    def _start_run(
        self,
        plan: Sequence[PhasePlan],
        *,
        deadline: float,
        mode: ShutdownMode,
        before: ShutdownRecord | None = None,
        taken_over: Mapping[str, PodRecord] | None = None,
    ) -> None:
        self.deadline = deadline
        self._mode = mode
        self._run = ShutdownRun(
            plan,
            deadline=deadline,
            mode=mode,
            runtime=self._runtime,
            node=self._node,
            clock=self._clock,
            tell=self._recorder.record,
            before=before,
            taken_over=taken_over,
        )
        self._task = asyncio.create_task(self._run_guarded(self._run), name="shutdown")
        self._task.add_done_callback(lambda _: self._wake())
        self._write_state(ended=None)

    async def _run_guarded(self, run: ShutdownRun) -> None:
        """An error of ours must neither keep the machine from shutting down nor stay hidden."""
        try:
            await run.run_phases()
        except Exception as error:
            log.exception("the shutdown broke off")
            self._recorder.record(
                NoteWritten(at=self._clock.boottime(), text=f"broke off: {type(error).__name__}: {error}")
            )

    def _write_state(self, *, ended: float | None) -> None:
        """Writes the journal and the kubelet's state file to disk: at once at the end, a little later at the beginning.

        Only a crash of the machine would lose them meanwhile, and the lock delays the machine's shutdown.
        """
        self._ended = ended
        self._background.start(self._write_to_disk(after=DISK_SECONDS if ended is None else 0.0), "to disk")

    async def _write_to_disk(self, *, after: float) -> None:
        await self._clock.sleep(after)
        self._recorder.start_sync()
        async with self._writing:  # serialized, so that the newer state is written last
            try:
                await self._journals.write_kubelet_state(self._began, self._ended)
            except OSError as error:
                log.error("the kubelet's state file with the shutdown's start and end cannot be written: %s", error)

    def _read_latest(self) -> tuple[ShutdownRecord, Sequence[AnyEvent]] | None:
        try:
            latest = self._journals.latest()
            events = from_lines(latest[1]) if latest else []
            return (fold_events(events), events) if events else None
        except (OSError, ValueError, LastcallError) as error:
            log.error("the newest journal cannot be read: %s", error)
            return None


def _shutdown_id(wall: float) -> str:
    """The time in UTC, to the millisecond: sorts by time and is quick to type."""
    moment = dt.datetime.fromtimestamp(wall, dt.UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{moment.microsecond // 1000:03d}"
