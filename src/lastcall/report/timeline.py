"""The record of a shutdown as rows on a time axis, and the facts at its head; what text and HTML have in common.

All times are offsets: seconds since the shutdown began.
"""

from dataclasses import dataclass
from enum import Enum

from lastcall.model.foreign import plain
from lastcall.model.shutdown import (
    ContainerRecord,
    Mode,
    Note,
    Outcome,
    PhaseRecord,
    PodOutcome,
    PodRecord,
    Shutdown,
)
from lastcall.report.words import PHASE_ENDS, POD_OUTCOMES, count, lasting

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
_DEADLINE_WITHIN = 3
"""The axis reaches to the deadline unless that is so many times as far as the last event."""


class Doing(Enum):
    """What goes on in a container."""

    WAIT = "waits"
    PRE_STOP = "preStop"
    TERM = "SIGTERM"
    KILL = "SIGKILL"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of a container's time; ``open`` if its end is not known and it is drawn as far as anything is."""

    doing: Doing
    start: float
    end: float
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One container."""

    record: ContainerRecord
    spans: tuple[Span, ...]

    @property
    def words(self) -> str:
        """The same as a sentence, for those who do not see the chart."""
        record = self.record
        told = [f"{span.doing.value} {lasting(span.start)} to {lasting(span.end)}" for span in self.spans]
        if record.ended is not None:
            told.append(f"ended at {lasting(record.ended)}")
        elif self.spans:
            told.append("end not seen")
        return f"{plain(record.name)}: {', '.join(told) or 'nothing was done'}"


_UNSEEN = "ended while no agent ran, so that the moment is not known"


@dataclass(frozen=True, kw_only=True)
class PodRow:
    """One pod; ``due`` is when its grace is over, ``wanted`` when the grace that it asked for would be."""

    record: PodRecord
    lanes: tuple[Lane, ...]
    due: float
    wanted: float

    @property
    def name(self) -> str:
        """Namespace and name."""
        return plain(f"{self.record.namespace}/{self.record.name}")

    @property
    def took(self) -> str:
        """How long it took to end, or nothing."""
        pod = self.record
        observed = pod.outcome is PodOutcome.OBSERVED
        return "" if pod.ended is None or observed else lasting(pod.ended - pod.started)

    @property
    def result(self) -> str:
        """How it ended, in a word or two."""
        return POD_OUTCOMES[self.record.outcome]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What its owner should know."""
        pod = self.record
        cut = f"cut short: had {lasting(pod.grace)} of {lasting(pod.asked)}"
        failed = [f"preStop of {plain(c.name)} {_hook(c)}" for c in pod.containers if c.hook_ok is False]
        return (*([cut] if pod.cut_short else []), *failed, *([_UNSEEN] if self._ended_unseen else []))

    @property
    def _ended_unseen(self) -> bool:
        """Whether the pod was gone when an agent that was started again looked for it."""
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
        """Which phase it is."""
        return f"Phase {self.number}: priority {self.record.priority} and above"

    @property
    def words(self) -> str:
        """How it went."""
        phase = self.record
        planned = lasting(phase.seconds)
        told = [f"{planned} planned"]
        if phase.given is not None and lasting(phase.given) != planned:
            told.append(f"{lasting(phase.given)} given")
        if phase.started is not None and phase.ended is not None and self.pods:
            told.append(f"took {lasting(phase.ended - phase.started)}")
        if phase.end:
            told.append(PHASE_ENDS[phase.end])
        else:
            told.append("not begun" if phase.started is None else "not over")
        return ", ".join(told)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """A shutdown, ready to be drawn on an axis from 0 to ``extent``."""

    record: Shutdown
    facts: tuple[tuple[str, str], ...]
    phases: tuple[PhaseRow, ...]
    notes: tuple[Note, ...]
    last: float
    deadline: float
    extent: float

    @property
    def deadline_shown(self) -> bool:
        """Whether the deadline is on the axis."""
        return self.deadline <= self.extent

    def ticks(self, most: int) -> list[float]:
        """Where the axis is labelled."""
        return ticks(self.extent, most)


def ticks(extent: float, most: int) -> list[float]:
    """0 and at most so many round times more, on an axis of that length."""
    step = next((step for step in _STEPS if extent / step <= most), extent)
    return [step * index for index in range(int(extent / step) + 1)]


def timeline(record: Shutdown) -> Timeline:
    """The rows and facts of a record."""
    last = _last(record)
    deadline = record.deadline
    reach = deadline if last < deadline <= max(last, 1.0) * _DEADLINE_WITHIN else last
    return Timeline(
        record=record,
        facts=tuple(_facts(record)),
        phases=tuple(_phase(record, index, last) for index in range(len(record.phases))),
        notes=tuple(sorted(record.notes, key=lambda note: note.at)),
        last=last,
        deadline=deadline,
        extent=max(reach * 1.02, 0.1),
    )


def _last(record: Shutdown) -> float:
    times = [record.ended, record.released, *(note.at for note in record.notes)]
    times += [time for phase in record.phases for time in (phase.started, phase.ended)]
    for pod in record.pods:
        times += [pod.started, pod.ended]
        times += [time for c in pod.containers for time in (c.hook_started, c.hook_ended, c.term, c.kill, c.ended)]
    return max((time for time in times if time is not None), default=0.0)


def _phase(record: Shutdown, index: int, last: float) -> PhaseRow:
    pods = [_pod(pod, last) for pod in record.pods if pod.phase == index]
    pods.sort(key=lambda row: row.name)
    return PhaseRow(number=index + 1, record=record.phases[index], pods=tuple(pods))


def _pod(pod: PodRecord, last: float) -> PodRow:
    until = last if pod.ended is None else pod.ended
    return PodRow(
        record=pod,
        lanes=tuple(Lane(record=c, spans=tuple(_spans(c, pod.started, until))) for c in pod.containers),
        due=pod.started + pod.grace,
        wanted=pod.started + pod.asked,
    )


def _spans(container: ContainerRecord, start: float, until: float) -> list[Span]:
    """What the container did one after the other; an empty wait is left out."""
    steps = [(Doing.WAIT, start)]
    begun = ((Doing.PRE_STOP, container.hook_started), (Doing.TERM, container.term), (Doing.KILL, container.kill))
    steps += [(doing, at) for doing, at in begun if at is not None]
    if len(steps) == 1 and container.ended is None:
        return []
    over = container.ended if container.ended is not None else max(until, steps[-1][1])
    ends = [*(at for _, at in steps[1:]), over]
    spans = [
        Span(doing=doing, start=at, end=max(at, end), open=container.ended is None and doing is steps[-1][0])
        for (doing, at), end in zip(steps, ends, strict=True)
    ]
    return [span for span in spans if span.doing is not Doing.WAIT or span.end > span.start]


def _hook(container: ContainerRecord) -> str:
    return f"failed: {plain(container.hook_message)}" if container.hook_message else "failed"


def _facts(record: Shutdown) -> list[tuple[str, str]]:
    facts = [("Asked for", lasting(record.requested)), ("Granted", _granted(record))]
    if record.ended is not None:
        facts.append((_ENDED[record.outcome], lasting(record.ended)))
    if record.outcome is Outcome.COMPLETED and record.mode is Mode.ENFORCE:
        facts.append(("Left unused", lasting(max(0.0, record.deadline - (record.ended or 0.0)))))
    longest = _longest(record)
    if longest:
        facts.append(("Longest pod", longest))
    facts.append(("Pods", _pods(record)))
    if not record.lock:
        facts.append(("Lock", "none was held: the machine did not wait"))
    if record.mode is Mode.OBSERVE:
        facts.append(("Mode", "Observe: nothing was ended"))
    return facts


_ENDED = {
    Outcome.COMPLETED: "Took",
    Outcome.CANCELLED: "Cancelled after",
    Outcome.INTERRUPTED: "Broke off after",
    Outcome.RUNNING: "Running for",
}


def _granted(record: Shutdown) -> str:
    if record.granted is None:
        return "unlimited"
    missing = record.requested - record.granted
    less = f", {lasting(missing)} less than asked for" if missing > 0 else ""
    return lasting(record.granted) + less


def _longest(record: Shutdown) -> str:
    ended = [(pod.ended - pod.started, pod) for pod in record.pods if pod.ended is not None]
    if not ended or record.mode is Mode.OBSERVE:
        return ""
    seconds, pod = max(ended, key=lambda item: item[0])
    return f"{plain(pod.namespace)}/{plain(pod.name)}, {lasting(seconds)}"


def _pods(record: Shutdown) -> str:
    counts = {words: sum(pod.outcome is outcome for pod in record.pods) for outcome, words in POD_OUTCOMES.items()}
    told = [f"{number} {words}" for words, number in counts.items() if number]
    short = sum(pod.cut_short for pod in record.pods)
    if short:
        told.append(f"{short} of them cut short")
    return f"{len(record.pods)}: {', '.join(told)}" if told else count(0, "pod")
