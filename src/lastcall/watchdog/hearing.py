"""Of which nodes this agent has heard that have lost the API server, while it has the server itself (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lastcall.model.watchdog_heard import WITHIN, Hearing
from lastcall.watchdog.messages import Question


@dataclass(frozen=True)
class Note:
    """That question was heard for the first time ``at`` (boottime)."""

    question: Question
    at: float


def noted(known: Note | None, question: Question, now: float) -> Note:
    """What is known of a node after it was heard. A question of the same boot that is not a later one may be repeated."""
    if known and known.question.boot_id == question.boot_id and known.question.asked >= question.asked:
        return known
    return Note(question, now)


def told(notes: Mapping[str, Note], now: float) -> dict[str, Hearing]:
    """What others are to be told now, by the names of the nodes."""
    return {
        name: Hearing(boot_id=note.question.boot_id, asked=note.question.asked, ago=round(max(0.0, now - note.at), 3))
        for name, note in notes.items()
        if now - note.at < WITHIN
    }
