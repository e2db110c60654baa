"""Maps the error responses of an API server to lastcall's errors (pure)."""

from typing import Any

import msgspec

from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import (
    AlreadyExists,
    ApiFailure,
    ApiNotPermitted,
    ApiUnavailable,
    Conflict,
    NotFound,
    RequestRefused,
    RevisionExpired,
    TooManyRequests,
)

_MOST_SAID = 500


class ApiStatus(msgspec.Struct, rename="camel"):
    """``meta/v1 Status``, the fields that are read."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


def response_error(answer: ApiResponse) -> ApiFailure:
    """The error for a 4xx or 5xx answer with a whole body; a body that is no Status becomes the message."""
    assert isinstance(answer.body, bytes)
    status = read_status(answer.body) or ApiStatus(
        message=answer.body[:_MOST_SAID].decode(errors="replace").strip() or f"HTTP {answer.status}"
    )
    status.code = answer.status
    after = answer.headers.get("retry-after", "")
    if after.isdigit():
        status.details = {"retryAfterSeconds": int(after), **(status.details or {})}
    return status_error(status)


def read_status(body: bytes) -> ApiStatus | None:
    """The Status in a body; None if it is not one."""
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except (msgspec.DecodeError, ValueError):
        return None
    return status if status.message or status.reason else None


def status_error(status: ApiStatus) -> ApiFailure:
    """The error for a Status, by its code and reason."""
    return _error_class(status.code, status.reason)(
        status.message or status.reason, code=status.code, reason=status.reason, details=status.details
    )


def _error_class(code: int, reason: str) -> type[ApiFailure]:
    if reason == "AlreadyExists":
        return AlreadyExists
    by_code: dict[int, type[ApiFailure]] = {
        401: ApiNotPermitted,
        403: ApiNotPermitted,
        404: NotFound,
        409: Conflict,
        410: RevisionExpired,
        429: TooManyRequests,
    }
    return by_code.get(code, ApiUnavailable if code >= 500 else RequestRefused)
