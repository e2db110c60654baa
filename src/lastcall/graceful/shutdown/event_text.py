"""A shutdown's events as text lines for the log and the terminal (pure)."""

from lastcall.model.duration import format_seconds
from lastcall.model.shutdown import (
    ApplicationWaited,
    ContainerSignalled,
    HookEnded,
    JournalEvent,
    LockReleased,
    LogindAnnounced,
    MachineReturned,
    NoteWritten,
    NoticeReceived,
    NoticeWithdrawn,
    PhaseEnded,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    RuntimeAnswered,
    RuntimeSilent,
    ShutdownCancelled,
    ShutdownResumed,
    ShutdownStarted,
)


class EventFormatter:
    """Formats each event as one line for people; takes the pods' names from earlier events."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def format_event(self, event: JournalEvent) -> str:
        """One line, or "" for an event that only the report shows."""
        self.remember_pod(event)
        return self._event_line(event)

    def remember_pod(self, event: JournalEvent) -> None:
        """Remembers the pod's name without a line, so that later events can refer to the pod by name."""
        if isinstance(event, PodStarted):
            self._names[event.uid] = f"{event.namespace}/{event.name}"

    def _event_line(self, event: JournalEvent) -> str:
        match event:
            case ShutdownStarted():
                granted = "without limit" if event.granted is None else format_seconds(event.granted)
                return f"shutdown {event.id} begins: {format_seconds(event.requested)} asked for, {granted} granted"
            case ShutdownResumed():
                return "resuming the shutdown" + ("" if event.lock else "; no lock is held any more")
            case PhaseStarted():
                return f"phase {event.index + 1} begins, {format_seconds(event.seconds)} at most"
            case PhaseShortened():
                return f"phase {event.index + 1} is shortened to {format_seconds(event.seconds)}: less time is left than planned"
            case PodStarted():
                return f"{self._pod_name(event.uid)} is asked to end within {format_seconds(event.grace)}"
            case ApplicationWaited(is_ready=False):
                why = f": {event.message}" if event.message else ""
                return f"{self._pod_name(event.uid)}: its application is not ready, and the deadline wins{why}"
            case ApplicationWaited():
                return f"{self._pod_name(event.uid)}: its application can do without it"
            case HookEnded(ok=False):
                return f"{self._pod_name(event.uid)} {event.container}: preStop hook failed: {event.message}"
            case ContainerSignalled(signal="KILL"):
                return f"{self._pod_name(event.uid)} {event.container}: its time is over, SIGKILL"
            case PodEnded():
                return f"{self._pod_name(event.uid)} has ended: {event.outcome.value}"
            case PhaseEnded():
                return f"phase {event.index + 1} is over: {event.end.value}"
            case ShutdownCancelled():
                return f"the shutdown is cancelled: {event.why}"
            case LockReleased():
                return f"the lock is released: {event.why}"
            case MachineReturned():
                return "the machine is back after its shutdown"
            case (
                NoticeReceived()
                | NoticeWithdrawn()
                | LogindAnnounced()
                | NoteWritten()
                | RuntimeSilent()
                | RuntimeAnswered()
            ):
                return event.text
        return ""

    def _pod_name(self, uid: str) -> str:
        return self._names.get(uid, uid)


def needs_attention(event: JournalEvent) -> bool:
    """Whether the event needs a person's attention."""
    if isinstance(event, PodEnded):
        return event.outcome is PodOutcome.UNCONFIRMED
    if isinstance(event, HookEnded):
        return not event.ok
    if isinstance(event, ApplicationWaited):
        return not event.is_ready
    return isinstance(event, NoteWritten | NoticeReceived | PhaseShortened | RuntimeSilent) or (
        isinstance(event, ContainerSignalled) and event.signal == "KILL"
    )
