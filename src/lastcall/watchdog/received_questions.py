"""Which nodes have told this agent that they lost the API server, while this agent still has it (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass

from lastcall.model.watchdog_peer_reports import WITHIN, PeerReport
from lastcall.watchdog.messages import PeerQuestion


@dataclass(frozen=True)
class ReceivedQuestion:
    """A question that was received for the first time ``at`` (boottime)."""

    question: PeerQuestion
    at: float


def record_question(known: ReceivedQuestion | None, question: PeerQuestion, now: float) -> ReceivedQuestion:
    """The record of a node after a question. A question of the same boot that is not newer counts as a replay."""
    if known and known.question.boot_id == question.boot_id and known.question.asked >= question.asked:
        return known
    return ReceivedQuestion(question, now)


def reports_to_publish(notes: Mapping[str, ReceivedQuestion], now: float) -> dict[str, PeerReport]:
    """The reports to publish now, by node name."""
    return {
        name: PeerReport(
            boot_id=note.question.boot_id, asked=note.question.asked, ago=round(max(0.0, now - note.at), 3)
        )
        for name, note in notes.items()
        if now - note.at < WITHIN
    }
