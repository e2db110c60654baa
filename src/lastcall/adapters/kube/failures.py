"""What an API server's refusals mean to the caller (pure)."""

from typing import Any

import msgspec

from lastcall.adapters.kube.transport import Answer
from lastcall.errors import (
    AlreadyExists,
    ApiFailure,
    ApiNotPermitted,
    ApiUnavailable,
    Conflict,
    Expired,
    NotFound,
    NotNow,
    Refused,
)

_MOST_SAID = 500


class Status(msgspec.Struct, rename="camel"):
    """``meta/v1 Status``, as far as it is read."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


def failure(answer: Answer) -> ApiFailure:
    """The error that an answer (4xx or 5xx, its body whole) is; a body that is no Status becomes its message."""
    assert isinstance(answer.body, bytes)
    status = read(answer.body) or Status(
        message=answer.body[:_MOST_SAID].decode(errors="replace").strip() or f"HTTP {answer.status}"
    )
    status.code = answer.status
    after = answer.headers.get("retry-after", "")
    if after.isdigit():
        status.details = {"retryAfterSeconds": int(after), **(status.details or {})}
    return of(status)


def read(body: bytes) -> Status | None:
    """The Status that a body is, if it is one."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, ValueError):
        return None
    return status if status.message or status.reason else None


def of(status: Status) -> ApiFailure:
    """The error that a Status is; its code and reason decide."""
    return _class(status.code, status.reason)(
        status.message or status.reason, code=status.code, reason=status.reason, details=status.details
    )


def _class(code: int, reason: str) -> type[ApiFailure]:
    if reason == "AlreadyExists":
        return AlreadyExists
    by_code: dict[int, type[ApiFailure]] = {
        401: ApiNotPermitted,
        403: ApiNotPermitted,
        404: NotFound,
        409: Conflict,
        410: Expired,
        429: NotNow,
    }
    return by_code.get(code, ApiUnavailable if code >= 500 else Refused)
