"""The requests of scripts over the agent's socket, and its answers: one line of JSON each (pure)."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.model.base import Facts
from lastcall.model.duration import format_seconds
from lastcall.model.foreign_text import plain_text
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice

MOST_SECONDS = 7 * 86400.0
_MOST_REASON = 200


class NoticeRequest(Facts, frozen=True):
    """A request; without any field it asks what is planned."""

    seconds: Annotated[float, Meta(ge=0, le=MOST_SECONDS)] | None = None
    deadline: str | None = None
    reason: str = ""
    cancel: bool = False


_FIELDS = [field.encode_name for field in msgspec.structs.fields(NoticeRequest)]


def parse_request(line: bytes) -> NoticeRequest:
    """The request in a line; InvalidInput says what is wrong with it."""
    try:
        document: Any = msgspec.json.decode(line or b"null")
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput("request", [f"is not JSON: {error}"]) from error
    if not isinstance(document, dict):
        raise InvalidInput("request", [f"must be a mapping of {', '.join(_FIELDS)}"])
    unknown = [
        f"{plain_text(name)[:40]}: unknown field, known are {', '.join(_FIELDS)}"
        for name in document
        if name not in _FIELDS
    ]
    if unknown:
        raise InvalidInput("request", unknown[:8])
    request = decoding.convert(document, NoticeRequest, "request")
    if sum([request.seconds is not None, request.deadline is not None, request.cancel]) > 1:
        raise InvalidInput("request", ["seconds, deadline, cancel: only one of them may be given"])
    return request


def requested_notice(request: NoticeRequest, *, now: float, wall: float) -> ShutdownNotice | None:
    """The notice that the request gives, None if it gives none; InvalidInput if its time is wrong."""
    seconds = request.seconds
    if request.deadline is not None:
        seconds = _seconds_until(request.deadline, wall)
    if seconds is None:
        return None
    reason = plain_text(request.reason)[:_MOST_REASON] or "no reason is given"
    return ShutdownNotice(source=NoticeSource.SOCKET, key=f"{now:.3f}", deadline=now + seconds, reason=reason)


class AgentOutlook(Facts, frozen=True):
    """What the agent would do: ``requested`` is the sum of the phases, ``lead`` how long before a deadline it begins."""

    state: str
    requested: float
    lead: float
    observes: bool


def plan_answer(notices: Sequence[ShutdownNotice], outlook: AgentOutlook, *, now: float) -> dict[str, Any]:
    """What is planned, for people and scripts; seconds from now."""
    return {
        "ok": True,
        "plan": _plan_sentence(notices, outlook, now=now),
        "state": outlook.state,
        "notices": [
            {"source": one.source.value, "seconds": round(one.deadline - now, 1), "reason": one.reason}
            for one in notices
        ],
    }


def _plan_sentence(notices: Sequence[ShutdownNotice], outlook: AgentOutlook, *, now: float) -> str:
    if not notices:
        return "no notice holds: the machine is expected to stay up"
    if outlook.requested <= 0:
        return "the configuration asks for no time: no pod is ended"
    deadline = min(one.deadline for one in notices)
    left = max(0.0, deadline - now)
    begins = deadline - outlook.lead - now
    when = f"in {format_seconds(round(begins))}" if begins > 0 else "now"
    budget = format_seconds(round(min(outlook.requested, left)))
    what = "is only recorded (mode Observe)" if outlook.observes else f"takes {budget} at most"
    gone = format_seconds(round(left))
    return f"the shutdown of the pods begins {when} and {what}; the machine is expected to be gone in {gone}"


def _seconds_until(said: str, wall: float) -> float:
    rule = "must be an RFC 3339 time with its zone, such as 2026-11-27T12:00:00Z, in the next seven days"
    try:
        moment = dt.datetime.fromisoformat(said)
        seconds = moment.timestamp() - wall if moment.tzinfo else -1.0
    except (ValueError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise InvalidInput("request", [f"deadline: {decoding.quote_value(said)}: {rule}"])
    return seconds
