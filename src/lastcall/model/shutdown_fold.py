"""Folds the journalled events of one shutdown into its record."""

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import structs

from lastcall.model.shutdown import (
    ApplicationRecord,
    ApplicationWaited,
    ContainerEnded,
    ContainerRecord,
    ContainerSignalled,
    HookEnded,
    HookStarted,
    JournalEvent,
    LockReleased,
    LogindAnnounced,
    MachineReturned,
    NoteWritten,
    NoticeReceived,
    NoticeWithdrawn,
    PhaseEnded,
    PhaseRecord,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodRecord,
    PodStarted,
    PodUnmounted,
    RecordNote,
    RecordNotice,
    RuntimeAnswered,
    RuntimeSilent,
    ShutdownCancelled,
    ShutdownOutcome,
    ShutdownRecord,
    ShutdownResumed,
    ShutdownStarted,
)
from lastcall.model.shutdown_notice import LOGIND, NoticeSource

R = TypeVar("R", ContainerRecord, PhaseRecord)


def fold_events(events: Sequence[JournalEvent]) -> ShutdownRecord:
    """The record of the events; ValueError if there are none or the first one is not ``ShutdownStarted``.

    A restarted agent may repeat events; the first occurrence counts. Only an Unconfirmed pod may later turn out to have
    ended. Events of phases and pods that never started are ignored.

    The outcome is Cancelled after such an event, Completed if every phase is over and the lock was released, and else
    Running, or Interrupted if the machine has booted again. ``ended`` is the time of that outcome, or of the last action
    while Running.
    """
    if not events or not isinstance(events[0], ShutdownStarted):
        raise ValueError("a journal begins with the event Started")
    fold_ = _RecordBuilder(events[0])
    for event in events[1:]:
        fold_.add_event(event)
    return fold_.build_record()


def finalise_record(record: ShutdownRecord) -> ShutdownRecord:
    """The final record if no agent will resume it (in another boot): Running becomes Interrupted."""
    if record.outcome is not ShutdownOutcome.RUNNING:
        return record
    return structs.replace(record, outcome=ShutdownOutcome.INTERRUPTED)


class _RecordBuilder:
    """Builds the record, event by event."""

    def __init__(self, started: ShutdownStarted) -> None:
        self._began = started
        self._phases = [PhaseRecord(priority=plan.priority, seconds=plan.seconds) for plan in started.phases]
        self._pods: dict[str, PodRecord] = {}
        self._containers: dict[str, dict[str, ContainerRecord]] = {}
        self._notes: list[RecordNote] = []
        self._last = 0.0
        self._how, self._deadline = started.how, started.deadline - started.at
        self._announced_by = [LOGIND] if started.announced else []
        self._notices: dict[NoticeSource, RecordNotice] = {}
        self._cancelled: float | None = None
        self._released: float | None = None
        for notice in started.notices:
            self._add_announcement(notice, notice.at - started.at)
        self._returned: float | None = None
        self._origin = started.at

    def add_event(self, event: JournalEvent) -> None:
        """Adds one event, in the journal's order."""
        if isinstance(event, MachineReturned):
            self._add_return(event)
            return
        at = event.at - self._origin
        match event:
            case PhaseStarted() | PhaseEnded():
                self._add_phase_event(event, at)
            case PhaseShortened():
                self._shorten_phase(event)
            case PodStarted() | ApplicationWaited() | PodEnded() | PodUnmounted():
                self._add_pod_event(event, at)
            case HookStarted() | HookEnded() | ContainerSignalled() | ContainerEnded():
                self._add_container_event(event, at)
            case NoteWritten() | RuntimeSilent() | RuntimeAnswered():
                self._notes.append(RecordNote(at=at, text=event.text))
                return
            case NoticeReceived() | NoticeWithdrawn() | LogindAnnounced():
                self._add_announcement(event, at)
                return
            case ShutdownResumed() | ShutdownCancelled() | LockReleased():
                self._add_turn_event(event, at)
            case ShutdownStarted():
                return
        self._last = max(self._last, at)

    def build_record(self) -> ShutdownRecord:
        """The record of the events so far."""
        began = self._began
        outcome, ended = self._current_outcome()
        return ShutdownRecord(
            id=began.id,
            node=began.node,
            boot_id=began.boot_id,
            how=self._how,
            mode=began.mode,
            wall=began.wall,
            boottime=began.at,
            requested=began.requested,
            granted=began.granted,
            deadline=self._deadline,
            lock=began.lock,
            outcome=outcome,
            ended=ended,
            released=self._released,
            phases=tuple(self._phases),
            pods=tuple(
                structs.replace(pod, containers=tuple(self._containers[uid].values()))
                for uid, pod in self._pods.items()
            ),
            notes=tuple(self._notes),
            announced_by=tuple(self._announced_by),
            notices=tuple(self._notices.values()),
            returned=self._returned,
        )

    def _current_outcome(self) -> tuple[ShutdownOutcome, float]:
        if self._cancelled is not None:
            return ShutdownOutcome.CANCELLED, self._cancelled
        if self._released is not None and all(phase.end for phase in self._phases):
            return ShutdownOutcome.COMPLETED, self._released
        return ShutdownOutcome.RUNNING if self._returned is None else ShutdownOutcome.INTERRUPTED, self._last

    def _add_return(self, event: MachineReturned) -> None:
        """From here on the times are of another boot, which the wall clock relates to the first one."""
        offset = max(self._last, event.wall - self._began.wall)
        self._origin = event.at - offset
        self._returned = offset if self._returned is None else self._returned

    def _add_announcement(self, event: NoticeReceived | NoticeWithdrawn | LogindAnnounced, at: float) -> None:
        """Later announcements bring the deadline forward and never back: phases were planned by it."""
        self._notes.append(RecordNote(at=at, text=event.text))
        name = LOGIND if isinstance(event, LogindAnnounced) else event.source.value
        if not isinstance(event, NoticeWithdrawn):
            self._deadline = min(self._deadline, max(0.0, event.deadline - self._began.at))
            self._announced_by += [name] if name not in self._announced_by else []
        match event:
            case LogindAnnounced(how=how):
                self._how = how or self._how
            case NoticeReceived(source=source, key=key, deadline=deadline, reason=reason):
                offset = deadline - self._began.at
                self._notices[source] = RecordNotice(source=source, key=key, deadline=offset, reason=reason)
            case NoticeWithdrawn(source=source) if source in self._notices:
                self._notices[source] = structs.replace(self._notices[source], withdrawn=True)

    def _add_phase_event(self, event: PhaseStarted | PhaseEnded, at: float) -> None:
        if not 0 <= event.index < len(self._phases):
            return
        phase = self._phases[event.index]
        match event:
            case PhaseStarted(seconds=seconds):
                phase = _set_once(phase, "started", started=at, given=seconds)
            case PhaseEnded(end=end):
                phase = _set_once(phase, "ended", ended=at, end=end)
        self._phases[event.index] = phase

    def _shorten_phase(self, event: PhaseShortened) -> None:
        """Shortens the phase, and with it the grace of its pods."""
        if not 0 <= event.index < len(self._phases) or (started := self._phases[event.index].started) is None:
            return
        self._phases[event.index] = structs.replace(self._phases[event.index], given=event.seconds)
        for uid, pod in self._pods.items():
            left = max(0.0, started + event.seconds - pod.started)
            if pod.phase == event.index and pod.outcome is None and pod.grace > left:
                self._pods[uid] = structs.replace(pod, grace=round(left, 3))

    def _add_pod_event(self, event: PodStarted | ApplicationWaited | PodEnded | PodUnmounted, at: float) -> None:
        pod = self._pods.get(event.uid)
        match event:
            case PodStarted() if pod is None:
                self._pods[event.uid] = _new_pod_record(event, at)
                self._containers[event.uid] = {name: ContainerRecord(name=name) for name in event.containers}
            case PodEnded(outcome=outcome) if pod and (pod.outcome is None or _confirms_end(outcome, pod.outcome)):
                self._pods[event.uid] = structs.replace(pod, ended=at, outcome=outcome)
            case ApplicationWaited(seconds=seconds, is_ready=is_ready, message=message) if pod:
                application = ApplicationRecord(seconds=seconds, is_ready=is_ready, message=message)
                self._pods[event.uid] = structs.replace(pod, application=application)
            case PodUnmounted() if pod:
                self._pods[event.uid] = structs.replace(pod, unmounted=at)

    def _add_container_event(
        self, event: HookStarted | HookEnded | ContainerSignalled | ContainerEnded, at: float
    ) -> None:
        if event.uid not in self._pods:
            return
        containers = self._containers[event.uid]
        record = containers.get(event.container, ContainerRecord(name=event.container))
        containers[event.container] = _update_container(record, event, at)

    def _add_turn_event(self, event: ShutdownResumed | ShutdownCancelled | LockReleased, at: float) -> None:
        match event:
            case ShutdownResumed(lock=lock):
                text = f"a restarted agent went on; the lock {'was still held' if lock else 'was lost'}"
            case ShutdownCancelled(why=why):
                self._cancelled = at if self._cancelled is None else self._cancelled
                text = f"cancelled: {why}"
            case LockReleased(why=why):
                self._released = at if self._released is None else self._released
                text = f"the lock was released: {why}"
        self._notes.append(RecordNote(at=at, text=text))


def _confirms_end(outcome: PodOutcome, before: PodOutcome) -> bool:
    return before is PodOutcome.UNCONFIRMED and outcome is not PodOutcome.UNCONFIRMED


def _new_pod_record(event: PodStarted, at: float) -> PodRecord:
    return PodRecord(
        uid=event.uid,
        namespace=event.namespace,
        name=event.name,
        priority=event.priority,
        phase=event.phase,
        grace=event.grace,
        asked=event.asked,
        started=at,
    )


def _update_container(
    record: ContainerRecord, event: HookStarted | HookEnded | ContainerSignalled | ContainerEnded, at: float
) -> ContainerRecord:
    match event:
        case HookStarted():
            return _set_once(_record_of(record, event.runtime_id), "hook_started", hook_started=at)
        case HookEnded():
            return _set_once(record, "hook_ended", hook_ended=at, hook_ok=event.ok, hook_message=event.message)
        case ContainerSignalled(signal="KILL"):
            return _set_once(record, "kill", kill=at)
        case ContainerSignalled():
            return _set_once(_record_of(record, event.runtime_id), "term", term=at, stop_signal=event.stop_signal)
        case ContainerEnded():
            return _set_once(record, "ended", ended=at, exit_code=event.exit_code)


def _record_of(record: ContainerRecord, runtime_id: str) -> ContainerRecord:
    """The record of the container with that id: a new one if the kubelet has replaced one whose end nobody saw."""
    if record.ended is None and not record.is_of(runtime_id):
        record = ContainerRecord(name=record.name)
    return structs.replace(record, runtime_id=record.runtime_id or runtime_id)


def _set_once(record: R, first: str, **facts: Any) -> R:
    """The record with these facts, unless ``first`` is set already."""
    return record if getattr(record, first) is not None else structs.replace(record, **facts)
