"""What an application answers in JSON, by HTTP or on the standard output of a command (pure)."""

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.model.decoding import convert_readable
from lastcall.model.foreign_text import plain_text
from lastcall.ports.guard import MemberHealth, PreparationProgress, PreparationReport

MOST_MESSAGE = 300
"""Characters of an application's message that are shown."""


class AnswerState(Enum):
    """How far the preparation is, in the words of the contract."""

    PREPARING = "preparing"
    READY = "ready"
    STALLED = "stalled"
    LOST = "lost"


class ApplicationAnswer(Facts, frozen=True):
    """One answer; which fields count is said by the question."""

    state: AnswerState | None = None
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    eta_seconds: Annotated[float, Meta(ge=0, le=10**9)] | None = None
    message: str = ""
    healthy: bool | None = None


def read_answer(data: bytes | str, source: str) -> ApplicationAnswer:
    """The answer; LastcallError with every violation. ``source`` is the question, for the message."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise LastcallError(f"{source}: the answer is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise LastcallError(f"{source}: the answer is no JSON object")
    answer, violations = convert_readable(found, ApplicationAnswer)
    if violations or answer is None:
        raise LastcallError(f"{source}: the answer cannot be used: {'; '.join(violations)}")
    return answer


def progress_report(answer: ApplicationAnswer, progress: PreparationProgress) -> PreparationReport:
    """The report of that progress with the answer's figures."""
    return PreparationReport(
        progress=progress,
        percent=None if answer.percent is None else int(answer.percent),
        eta_seconds=None if answer.eta_seconds is None else int(answer.eta_seconds),
        message=shorten_message(answer.message),
    )


def member_health(answer: ApplicationAnswer, source: str) -> MemberHealth:
    """Whether the application says that it is healthy; LastcallError if it does not say it."""
    if answer.healthy is None:
        raise LastcallError(f'{source}: the answer has no "healthy"')
    return MemberHealth(is_healthy=answer.healthy, message=shorten_message(answer.message))


def shorten_message(text: str) -> str:
    """A message on one line, without control characters, at most 300 characters long."""
    return plain_text(text)[:MOST_MESSAGE].strip()
