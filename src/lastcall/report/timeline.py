"""The record of a shutdown as rows on a time axis and a list of facts: the common basis of text and HTML (pure).

All times are offsets in seconds since the shutdown began.
"""

from dataclasses import dataclass
from enum import Enum

from lastcall.model.foreign_text import plain_text
from lastcall.model.shutdown import (
    ContainerRecord,
    PhaseRecord,
    PodOutcome,
    PodRecord,
    RecordNote,
    ShutdownMode,
    ShutdownOutcome,
    ShutdownRecord,
)
from lastcall.model.shutdown_notice import LOGIND
from lastcall.report.formatting import PHASE_ENDS, POD_OUTCOMES, count_text, format_duration, format_utc

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
NOTICEABLE_SECONDS = 0.1
"""Time in seconds from which the unmounting of a pod's volumes is worth a remark."""

_DEADLINE_WITHIN = 3
"""The axis extends to the deadline unless the deadline is that many times later than the last event."""


class Activity(Enum):
    """What a container is doing."""

    WAIT = "waits"
    PRE_STOP = "preStop"
    TERM = "SIGTERM"
    KILL = "SIGKILL"


@dataclass(frozen=True, kw_only=True)
class ActivitySpan:
    """A span of a container's time; ``open`` if its end is unknown: it then extends to the last known event."""

    doing: Activity
    start: float
    end: float
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One container's row."""

    record: ContainerRecord
    spans: tuple[ActivitySpan, ...]

    @property
    def description(self) -> str:
        """The row as a sentence, for readers who cannot see the chart."""
        record = self.record
        parts = [
            f"{self._activity_name(span)} {format_duration(span.start)} to {format_duration(span.end)}"
            for span in self.spans
        ]
        if record.ended is not None:
            parts.append(f"ended at {format_duration(record.ended)}")
        elif self.spans:
            parts.append("end not seen")
        return f"{plain_text(record.name)}: {', '.join(parts) or 'nothing was done'}"

    def _activity_name(self, span: ActivitySpan) -> str:
        return plain_text(self.record.term_name) if span.doing is Activity.TERM else span.doing.value


_UNSEEN = "ended while no agent ran: the time is not known"


@dataclass(frozen=True, kw_only=True)
class PodRow:
    """One pod; ``due`` is when its grace period ends, ``wanted`` when the period it asked for would end."""

    record: PodRecord
    lanes: tuple[Lane, ...]
    due: float
    wanted: float

    @property
    def name(self) -> str:
        """Namespace and name."""
        return plain_text(f"{self.record.namespace}/{self.record.name}")

    @property
    def duration_text(self) -> str:
        """How long the pod took to end; empty if unknown."""
        pod = self.record
        observed = pod.outcome is PodOutcome.OBSERVED
        return "" if pod.ended is None or observed else format_duration(pod.ended - pod.started)

    @property
    def outcome_text(self) -> str:
        """How the pod ended, in a word or two."""
        return POD_OUTCOMES[self.record.outcome]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the pod's owner."""
        pod = self.record
        cut = f"cut short: had {format_duration(pod.grace)} of {format_duration(pod.asked)}"
        failed = [f"preStop of {plain_text(c.name)} {_hook_failure(c)}" for c in pod.containers if c.hook_ok is False]
        signals = [
            f"{plain_text(c.name)} got {plain_text(c.stop_signal)} instead of SIGTERM"
            for c in pod.containers
            if c.stop_signal
        ]
        unseen = [_UNSEEN] if self._has_ended_unseen else []
        cuts = [cut] if pod.was_cut_short else []
        return (*self._application_remarks, *cuts, *failed, *signals, *self._unmount_remarks, *unseen)

    @property
    def _application_remarks(self) -> tuple[str, ...]:
        """Whether the application of a guarded pod was not ready, or how long it was waited for."""
        found = self.record.application
        if found is None:
            return ()
        if not found.is_ready:
            why = f": {plain_text(found.message)}" if found.message else ""
            return (f"its application was not ready after {format_duration(found.seconds)}{why}",)
        if found.seconds < NOTICEABLE_SECONDS:
            return ()
        return (f"waited {format_duration(found.seconds)} for its application",)

    @property
    def _unmount_remarks(self) -> tuple[str, ...]:
        """When the volumes were unmounted, if that took noticeable time after the pod's end."""
        pod = self.record
        if pod.unmounted is None or pod.ended is None or pod.unmounted - pod.ended < NOTICEABLE_SECONDS:
            return ()
        return (f"volumes unmounted {format_duration(pod.unmounted - pod.ended)} after its end",)

    @property
    def _has_ended_unseen(self) -> bool:
        """Whether the pod ended while no agent ran."""
        ended = self.record.outcome in (PodOutcome.GRACEFUL, PodOutcome.KILLED)
        return ended and any(one.ended is None for one in self.record.containers)


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    """One phase with its pods by name."""

    number: int
    record: PhaseRecord
    pods: tuple[PodRow, ...]

    @property
    def title(self) -> str:
        """The phase's number and priority."""
        return f"Phase {self.number}: priority {self.record.priority} and above"

    @property
    def description(self) -> str:
        """How the phase went."""
        phase = self.record
        planned = format_duration(phase.seconds)
        parts = [f"{planned} planned"]
        if phase.given is not None and format_duration(phase.given) != planned:
            parts.append(f"{format_duration(phase.given)} given")
        if phase.started is not None and phase.ended is not None and self.pods:
            parts.append(f"took {format_duration(phase.ended - phase.started)}")
        if phase.end:
            parts.append(PHASE_ENDS[phase.end])
        else:
            parts.append("not begun" if phase.started is None else "not over")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A shutdown, prepared for drawing on an axis from 0 to ``extent``."""

    record: ShutdownRecord
    facts: tuple[tuple[str, str], ...]
    phases: tuple[PhaseRow, ...]
    notes: tuple[RecordNote, ...]
    last: float
    deadline: float
    extent: float

    @property
    def shows_deadline(self) -> bool:
        """Whether the axis includes the deadline."""
        return self.deadline <= self.extent

    def ticks(self, most: int) -> list[float]:
        """The positions of the axis labels."""
        return axis_ticks(self.extent, most)


def axis_ticks(extent: float, most: int) -> list[float]:
    """0 and at most ``most`` further round times, on an axis of length ``extent``."""
    step = next((step for step in _STEPS if extent / step <= most), extent)
    return [step * index for index in range(int(extent / step) + 1)]


def build_timeline(record: ShutdownRecord) -> Timeline:
    """The timeline of a record."""
    last = _last_event_time(record)
    deadline = record.deadline
    reach = deadline if last < deadline <= max(last, 1.0) * _DEADLINE_WITHIN else last
    return Timeline(
        record=record,
        facts=tuple(_head_facts(record)),
        phases=tuple(_phase_row(record, index, last) for index in range(len(record.phases))),
        notes=tuple(sorted(record.notes, key=lambda note: note.at)),
        last=last,
        deadline=deadline,
        extent=max(reach * 1.02, 0.1),
    )


def _last_event_time(record: ShutdownRecord) -> float:
    times = [record.ended, record.released, *(note.at for note in record.notes)]
    times += [time for phase in record.phases for time in (phase.started, phase.ended)]
    for pod in record.pods:
        times += [pod.started, pod.ended]
        times += [time for c in pod.containers for time in (c.hook_started, c.hook_ended, c.term, c.kill, c.ended)]
    return max((time for time in times if time is not None), default=0.0)


def _phase_row(record: ShutdownRecord, index: int, last: float) -> PhaseRow:
    pods = [_pod_row(pod, last) for pod in record.pods if pod.phase == index]
    pods.sort(key=lambda row: row.name)
    return PhaseRow(number=index + 1, record=record.phases[index], pods=tuple(pods))


def _pod_row(pod: PodRecord, last: float) -> PodRow:
    until = last if pod.ended is None else pod.ended
    return PodRow(
        record=pod,
        lanes=tuple(Lane(record=c, spans=tuple(_activity_spans(c, pod.started, until))) for c in pod.containers),
        due=pod.started + pod.grace,
        wanted=pod.started + pod.asked,
    )


def _activity_spans(container: ContainerRecord, start: float, until: float) -> list[ActivitySpan]:
    """The container's successive activities; an empty wait is omitted."""
    steps = [(Activity.WAIT, start)]
    begun = (
        (Activity.PRE_STOP, container.hook_started),
        (Activity.TERM, container.term),
        (Activity.KILL, container.kill),
    )
    steps += [(doing, at) for doing, at in begun if at is not None]
    if len(steps) == 1 and container.ended is None:
        return []
    over = container.ended if container.ended is not None else max(until, steps[-1][1])
    ends = [*(at for _, at in steps[1:]), over]
    spans = [
        ActivitySpan(doing=doing, start=at, end=max(at, end), open=container.ended is None and doing is steps[-1][0])
        for (doing, at), end in zip(steps, ends, strict=True)
    ]
    return [span for span in spans if span.doing is not Activity.WAIT or span.end > span.start]


def _hook_failure(container: ContainerRecord) -> str:
    return f"failed: {plain_text(container.hook_message)}" if container.hook_message else "failed"


def _head_facts(record: ShutdownRecord) -> list[tuple[str, str]]:
    facts = [("Announced by", ", ".join(record.announced_by))] if record.announced_by != (LOGIND,) else []
    facts += [("Asked for", format_duration(record.requested)), ("Granted", _granted_text(record))]
    if record.ended is not None:
        facts.append((_ENDED[record.outcome], format_duration(record.ended)))
    if record.outcome is ShutdownOutcome.COMPLETED and record.mode is ShutdownMode.ENFORCE:
        facts.append(("Left unused", format_duration(max(0.0, record.deadline - (record.ended or 0.0)))))
    if record.returned is not None:
        facts.append(("Machine back", _return_text(record, record.returned)))
    longest = _longest_pod(record)
    if longest:
        facts.append(("Longest pod", longest))
    facts.append(("Pods", _pod_counts(record)))
    if not record.lock:
        facts.append(("Lock", "none was held: the machine did not wait"))
    if record.mode is ShutdownMode.OBSERVE:
        facts.append(("Mode", "Observe: nothing was ended"))
    return facts


_ENDED = {
    ShutdownOutcome.COMPLETED: "Took",
    ShutdownOutcome.CANCELLED: "Cancelled after",
    ShutdownOutcome.INTERRUPTED: "Broke off after",
    ShutdownOutcome.RUNNING: "Running for",
}


def _return_text(record: ShutdownRecord, returned: float) -> str:
    since = record.released if record.released is not None else record.ended or 0.0
    return f"{format_utc(record.wall + returned)}, {format_duration(returned - since)} later"


def _granted_text(record: ShutdownRecord) -> str:
    if record.granted is None:
        return "unlimited"
    missing = record.requested - record.granted
    less = f", {format_duration(missing)} less than asked for" if missing > 0 else ""
    return format_duration(record.granted) + less


def _longest_pod(record: ShutdownRecord) -> str:
    ended = [(pod.ended - pod.started, pod) for pod in record.pods if pod.ended is not None]
    if not ended or record.mode is ShutdownMode.OBSERVE:
        return ""
    seconds, pod = max(ended, key=lambda item: item[0])
    return f"{plain_text(pod.namespace)}/{plain_text(pod.name)}, {format_duration(seconds)}"


def _pod_counts(record: ShutdownRecord) -> str:
    counts = {words: sum(pod.outcome is outcome for pod in record.pods) for outcome, words in POD_OUTCOMES.items()}
    parts = [f"{number} {words}" for words, number in counts.items() if number]
    short = sum(pod.was_cut_short for pod in record.pods)
    if short:
        parts.append(f"{short} of them cut short")
    return f"{len(record.pods)}: {', '.join(parts)}" if parts else count_text(0, "pod")
