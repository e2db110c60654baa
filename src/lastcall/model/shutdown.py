"""One node's shutdown: the events as journalled, and the record that results from them.

The record is the ``NodeShutdown`` of ``lastcall.dev/v1alpha1``; ``lastcall report`` draws it. All ``at`` are
CLOCK_BOOTTIME seconds, comparable within one boot; the first event carries the wall clock time of the same moment.
"""

from enum import Enum
from typing import Literal

import msgspec

from lastcall.model.base import Facts
from lastcall.model.duration import format_seconds
from lastcall.model.shutdown_notice import LOGIND, NoticeSource


class ShutdownMode(Enum):
    """What the agent does when the node shuts down."""

    ENFORCE = "Enforce"
    OBSERVE = "Observe"


class ShutdownOutcome(Enum):
    """How a shutdown ended, according to the journal."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"  # the journal breaks off: the machine shut down, or the agent did not restart


class ShutdownState(Enum):
    """How far a shutdown has come, as ``kubectl get nodeshutdowns`` shows it."""

    ANNOUNCED = "Announced"  # no pod has been asked to end yet
    ENDING = "Ending"  # pods are being ended
    ENDED = "Ended"  # all phases are over, or the lock is released: the machine shuts down, or is down
    CANCELLED = "Cancelled"  # the machine stays up
    RETURNED = "Returned"  # the machine has booted again


class PhaseEnd(Enum):
    """How a phase ended."""

    DONE = "Done"  # all its pods have ended
    EMPTY = "Empty"  # the phase had no pods
    RAN_OUT = "RanOut"  # its time was over first
    CANCELLED = "Cancelled"


class PodOutcome(Enum):
    """How a pod ended."""

    GRACEFUL = "Graceful"  # by itself, before any SIGKILL
    KILLED = "Killed"  # at least one container needed SIGKILL
    UNCONFIRMED = "Unconfirmed"  # still running at the end of its phase in spite of SIGKILL
    OBSERVED = "Observed"  # mode Observe: the agent took no action


class PhasePlan(Facts, frozen=True):
    """A phase: pods of this priority and above, up to the next phase's."""

    priority: int
    seconds: int


class JournalEvent(Facts, frozen=True, tag_field="event"):
    """Something that happened at ``at`` (CLOCK_BOOTTIME seconds)."""

    at: float


class NoticeReceived(JournalEvent, frozen=True, tag="NoticeReceived"):
    """A source other than logind says that the machine is gone at ``deadline``: the shutdown ends by then."""

    source: NoticeSource
    key: str
    deadline: float
    reason: str

    @property
    def text(self) -> str:
        """The event in one sentence."""
        return f"{self.source.value}: {self.reason}; the machine shuts down in {format_seconds(max(0.0, self.deadline - self.at))}"


class ShutdownStarted(JournalEvent, frozen=True, tag="Started"):
    """A shutdown was confirmed; journalled before any pod is terminated. ``granted`` is None if unlimited.

    ``announced`` is False if logind has not announced it, but only the sources of the ``notices``.
    """

    id: str
    node: str
    boot_id: str
    wall: float
    how: str
    mode: ShutdownMode
    requested: float
    granted: float | None
    deadline: float
    lock: bool
    phases: tuple[PhasePlan, ...]
    announced: bool = True
    notices: tuple[NoticeReceived, ...] = ()


class NoticeWithdrawn(JournalEvent, frozen=True, tag="NoticeWithdrawn"):
    """A source has withdrawn its notice, or the machine is still up long after its deadline."""

    source: NoticeSource

    @property
    def text(self) -> str:
        """The event in one sentence."""
        return f"{self.source.value}: the notice does not hold any more"


class LogindAnnounced(JournalEvent, frozen=True, tag="LogindAnnounced"):
    """logind announces the shutdown that a notice has begun; it is the same shutdown, which ends by ``deadline``."""

    how: str
    deadline: float

    @property
    def text(self) -> str:
        """The event in one sentence."""
        return f"logind announces the shutdown ({self.how or 'unknown'})"


class PhaseStarted(JournalEvent, frozen=True, tag="PhaseStarted"):
    """Phase ``index`` of the plan begins with ``seconds`` as computed anew at its start."""

    index: int
    seconds: float


class PhaseShortened(JournalEvent, frozen=True, tag="PhaseShortened"):
    """The running phase ``index`` now has only ``seconds`` in all: pods of later phases were found, or the deadline came forward."""

    index: int
    seconds: float


class PodStarted(JournalEvent, frozen=True, tag="PodStarted"):
    """A pod's termination begins, with ``grace`` seconds; its spec asks for ``asked``."""

    uid: str
    namespace: str
    name: str
    priority: int
    phase: int
    grace: float
    asked: int
    containers: tuple[str, ...]


class ApplicationWaited(JournalEvent, frozen=True, tag="ApplicationWaited"):
    """The termination of a guarded pod has waited for its application. ``message`` says why that was not ready."""

    uid: str
    seconds: float
    is_ready: bool
    message: str = ""


class HookStarted(JournalEvent, frozen=True, tag="HookStarted"):
    """A preStop hook begins. ``runtime_id`` is the runtime's id of the container, "" if an older agent wrote this."""

    uid: str
    container: str
    runtime_id: str = ""


class HookEnded(JournalEvent, frozen=True, tag="HookEnded"):
    """A preStop hook ended; ``ok`` is False if it failed or was cut off."""

    uid: str
    container: str
    ok: bool
    message: str = ""


class ContainerSignalled(JournalEvent, frozen=True, tag="Signalled"):
    """A container is sent SIGTERM or SIGKILL.

    ``stop_signal`` is the signal that the container's spec names in place of SIGTERM, "" without one. ``runtime_id`` is
    the runtime's id of a container that is sent SIGTERM, "" if an older agent wrote this.
    """

    uid: str
    container: str
    signal: Literal["TERM", "KILL"]
    stop_signal: str = ""
    runtime_id: str = ""


class ContainerEnded(JournalEvent, frozen=True, tag="ContainerEnded"):
    """A container has ended."""

    uid: str
    container: str
    exit_code: int | None


class PodEnded(JournalEvent, frozen=True, tag="PodEnded"):
    """No container of the pod runs any more; or the pod was given up at the end of its phase (Unconfirmed)."""

    uid: str
    outcome: PodOutcome


class PodUnmounted(JournalEvent, frozen=True, tag="PodUnmounted"):
    """The volumes of an ended pod are unmounted. Absent where this is not proved."""

    uid: str


class PhaseEnded(JournalEvent, frozen=True, tag="PhaseEnded"):
    """A phase is over."""

    index: int
    end: PhaseEnd


class RuntimeSilent(JournalEvent, frozen=True, tag="RuntimeSilent"):
    """The container runtime has not answered for ``seconds``; ``why`` is its last known error."""

    seconds: float
    why: str

    @property
    def text(self) -> str:
        """The event in one sentence."""
        return f"the container runtime has not answered for {format_seconds(self.seconds)}: {self.why}"


class RuntimeAnswered(JournalEvent, frozen=True, tag="RuntimeAnswered"):
    """The container runtime answers again, after a silence of ``seconds`` in all."""

    seconds: float

    @property
    def text(self) -> str:
        """The event in one sentence."""
        return f"the container runtime answers again, after {format_seconds(self.seconds)}"


class ShutdownResumed(JournalEvent, frozen=True, tag="Resumed"):
    """A restarted agent resumes the shutdown."""

    lock: bool


class ShutdownCancelled(JournalEvent, frozen=True, tag="Cancelled"):
    """The shutdown is cancelled, and the machine stays up."""

    why: str


class LockReleased(JournalEvent, frozen=True, tag="Released"):
    """Every copy of the lock is closed: the machine may shut down."""

    why: str


class MachineReturned(JournalEvent, frozen=True, tag="Returned"):
    """The machine has booted again: ``at`` and all later events are of the boot ``boot_id``, ``wall`` is the same moment."""

    boot_id: str
    wall: float


class NoteWritten(JournalEvent, frozen=True, tag="Noted"):
    """A note for people."""

    text: str


AnyEvent = (
    ShutdownStarted
    | NoticeReceived
    | NoticeWithdrawn
    | LogindAnnounced
    | PhaseStarted
    | PhaseShortened
    | PodStarted
    | ApplicationWaited
    | HookStarted
    | HookEnded
    | ContainerSignalled
    | ContainerEnded
    | PodEnded
    | PodUnmounted
    | PhaseEnded
    | RuntimeSilent
    | RuntimeAnswered
    | ShutdownResumed
    | ShutdownCancelled
    | LockReleased
    | MachineReturned
    | NoteWritten
)


class ContainerRecord(Facts, frozen=True):
    """How one container ended; offsets in seconds since the shutdown began.

    ``runtime_id`` is the runtime's id of the container that got hook and SIGTERM, "" if that is not known.
    """

    name: str
    hook_started: float | None = None
    hook_ended: float | None = None
    hook_ok: bool | None = None
    hook_message: str = ""
    term: float | None = None
    kill: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    stop_signal: str = ""
    runtime_id: str = ""

    def is_of(self, runtime_id: str) -> bool:
        """Whether this may be the container with that id: it has not ended, and no other id is known."""
        return self.ended is None and self.runtime_id in ("", runtime_id)

    @property
    def term_name(self) -> str:
        """The name of the signal at ``term``."""
        return self.stop_signal or "SIGTERM"


class ApplicationRecord(Facts, frozen=True):
    """How long a guarded pod's termination waited for its application, and why that was not ready."""

    seconds: float
    is_ready: bool
    message: str = ""


class PodRecord(Facts, frozen=True):
    """How one pod ended; offsets in seconds since the shutdown began."""

    uid: str
    namespace: str
    name: str
    priority: int
    phase: int
    grace: float
    asked: int
    started: float
    ended: float | None = None
    unmounted: float | None = None
    outcome: PodOutcome | None = None
    containers: tuple[ContainerRecord, ...] = ()
    application: ApplicationRecord | None = None
    """None if the pod was not guarded."""

    @property
    def was_cut_short(self) -> bool:
        """Whether the pod was killed after at least one second less than it asked for."""
        return self.outcome in (PodOutcome.KILLED, PodOutcome.UNCONFIRMED) and self.asked - self.grace >= 1


class PhaseRecord(Facts, frozen=True):
    """How one phase went; ``seconds`` as first planned, ``given`` as computed anew at its start."""

    priority: int
    seconds: int
    given: float | None = None
    started: float | None = None
    ended: float | None = None
    end: PhaseEnd | None = None


class RecordNote(Facts, frozen=True):
    """A note for people, at an offset."""

    at: float
    text: str


class RecordNotice(Facts, frozen=True):
    """A source's last notice; ``deadline`` is an offset."""

    source: NoticeSource
    key: str
    deadline: float
    reason: str
    withdrawn: bool = False


class ShutdownRecord(Facts, frozen=True):
    """One node's shutdown: the result of ``lastcall.model.shutdown_fold.fold_events``.

    It began at ``boottime`` (CLOCK_BOOTTIME seconds), which was ``wall`` (seconds since 1970). All other times,
    including ``deadline``, are offsets in seconds from there.
    """

    id: str
    node: str
    boot_id: str
    how: str
    mode: ShutdownMode
    wall: float
    boottime: float
    requested: float
    granted: float | None
    deadline: float
    lock: bool
    outcome: ShutdownOutcome = ShutdownOutcome.RUNNING
    ended: float | None = None
    released: float | None = None
    phases: tuple[PhaseRecord, ...] = ()
    pods: tuple[PodRecord, ...] = ()
    notes: tuple[RecordNote, ...] = ()
    announced_by: tuple[str, ...] = (LOGIND,)
    """The sources that have announced it, in this order; also those that have withdrawn their notices."""
    notices: tuple[RecordNotice, ...] = ()
    returned: float | None = None

    @property
    def state(self) -> ShutdownState:
        """How far it has come."""
        if self.returned is not None:
            return ShutdownState.RETURNED
        if self.outcome is ShutdownOutcome.CANCELLED:
            return ShutdownState.CANCELLED
        if self.released is not None or (self.phases and all(phase.end for phase in self.phases)):
            return ShutdownState.ENDED
        return (
            ShutdownState.ENDING
            if self.pods or any(phase.started for phase in self.phases)
            else ShutdownState.ANNOUNCED
        )

    @property
    def pod_counts(self) -> str:
        """The pods that have ended, and all whose termination has begun: ``7/12``."""
        over = (PodOutcome.GRACEFUL, PodOutcome.KILLED)
        return f"{sum(pod.outcome in over for pod in self.pods)}/{len(self.pods)}"


_decoder = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()


def to_line(event: JournalEvent) -> bytes:
    """One event as one line of JSON."""
    return _encoder.encode(event) + b"\n"


def from_lines(lines: "list[bytes]") -> list[AnyEvent]:
    """The events in a journal's complete lines, up to the first malformed one: later lines are not trusted."""
    events: list[AnyEvent] = []
    for line in lines:
        try:
            events.append(_decoder.decode(line))
        except msgspec.DecodeError:
            break
    return events
