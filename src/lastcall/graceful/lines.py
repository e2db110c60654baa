"""A shutdown's events as lines for the log and for a terminal (pure)."""

from lastcall.model.duration import of_seconds
from lastcall.model.shutdown import (
    Cancelled,
    Event,
    HookEnded,
    Noted,
    PhaseEnded,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    Released,
    Resumed,
    RuntimeAnswered,
    RuntimeSilent,
    Signalled,
    Started,
)


class Lines:
    """Tells each event in one line for people; knows the pods' names from the events before."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def line(self, event: Event) -> str:
        """One line, or "" for what is only of interest in the report."""
        self.know(event)
        return self._line(event)

    def know(self, event: Event) -> None:
        """For an event that is not told: those after it may name its pod."""
        if isinstance(event, PodStarted):
            self._names[event.uid] = f"{event.namespace}/{event.name}"

    def _line(self, event: Event) -> str:
        match event:
            case Started():
                granted = "without limit" if event.granted is None else of_seconds(event.granted)
                return f"shutdown {event.id} begins: {of_seconds(event.requested)} asked for, {granted} granted"
            case Resumed():
                return "going on with the shutdown" + ("" if event.lock else "; no lock is held any more")
            case PhaseStarted():
                return f"phase {event.index + 1} begins, {of_seconds(event.seconds)} at most"
            case PhaseShortened():
                return f"phase {event.index + 1} is shortened to {of_seconds(event.seconds)}: pods of later phases were found"
            case PodStarted():
                return f"{self._name(event.uid)} is asked to end within {of_seconds(event.grace)}"
            case HookEnded(ok=False):
                return f"{self._name(event.uid)} {event.container}: preStop hook failed: {event.message}"
            case Signalled(signal="KILL"):
                return f"{self._name(event.uid)} {event.container}: its time is over, SIGKILL"
            case PodEnded():
                return f"{self._name(event.uid)} has ended: {event.outcome.value}"
            case PhaseEnded():
                return f"phase {event.index + 1} is over: {event.end.value}"
            case Cancelled():
                return f"the shutdown is cancelled: {event.why}"
            case Released():
                return f"the lock is released: {event.why}"
            case Noted() | RuntimeSilent() | RuntimeAnswered():
                return event.text
        return ""

    def _name(self, uid: str) -> str:
        return self._names.get(uid, uid)


def worrying(event: Event) -> bool:
    """Whether a person should look at it."""
    if isinstance(event, PodEnded):
        return event.outcome is PodOutcome.UNCONFIRMED
    if isinstance(event, HookEnded):
        return not event.ok
    return isinstance(event, Noted | PhaseShortened | RuntimeSilent) or (
        isinstance(event, Signalled) and event.signal == "KILL"
    )
