"""Of which nodes this agent has heard that have lost the API server, while it has the server itself (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lastcall.model.watchdog_peer_reports import WITHIN, PeerReport
from lastcall.watchdog.messages import PeerQuestion


@dataclass(frozen=True)
class ReceivedQuestion:
    """That question was heard for the first time ``at`` (boottime)."""

    question: PeerQuestion
    at: float


def record_question(known: ReceivedQuestion | None, question: PeerQuestion, now: float) -> ReceivedQuestion:
    """What is known of a node after it was heard. A question of the same boot that is not a later one may be repeated."""
    if known and known.question.boot_id == question.boot_id and known.question.asked >= question.asked:
        return known
    return ReceivedQuestion(question, now)


def reports_to_publish(notes: Mapping[str, ReceivedQuestion], now: float) -> dict[str, PeerReport]:
    """What others are to be told now, by the names of the nodes."""
    return {
        name: PeerReport(
            boot_id=note.question.boot_id, asked=note.question.asked, ago=round(max(0.0, now - note.at), 3)
        )
        for name, note in notes.items()
        if now - note.at < WITHIN
    }
