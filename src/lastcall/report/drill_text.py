"""The text of a drill: what is known of the whole, and of each phase (pure)."""

from collections.abc import Iterator

from lastcall.model.shutdown import ShutdownRecord
from lastcall.report.formatting import count_text, format_duration, format_utc


def head_lines(record: ShutdownRecord) -> Iterator[str]:
    """The facts at the head, as in a report."""
    asked, granted = record.requested, record.granted
    less = (
        f", {format_duration(asked - granted)} less than asked for" if granted is not None and granted < asked else ""
    )
    facts = {
        "At": format_utc(record.wall),
        "Asked for": format_duration(asked),
        "Granted": "unlimited" if granted is None else f"{format_duration(granted)}{less}",
        "Lock": "held: the machine would wait" if record.lock else "none is held: the machine would not wait",
        "Pods": str(len(record.pods)),
    }
    return (f"{label:<10} {text}" for label, text in facts.items())


def phase_seconds(record: ShutdownRecord, index: int) -> float:
    """The time of a phase in seconds: what it was given, or as planned if it has no pods."""
    phase = record.phases[index]
    return phase.seconds if phase.given is None else phase.given


def phase_title(record: ShutdownRecord, index: int) -> str:
    """Its number, priority, pods and time."""
    phase, pods = record.phases[index], sum(pod.phase == index for pod in record.pods)
    planned, given = format_duration(phase.seconds), format_duration(phase_seconds(record, index))
    time = f"at most {given}" + (f" of {planned}" if given != planned else "")
    number = f"{count_text(pods, 'pod')}, {time}" if pods else "no pods: passed over at once"
    return f"Phase {index + 1}: priority {phase.priority} and above: {number}"
