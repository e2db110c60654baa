"""Exceptions, classified by what the caller can do about them.

Each class carries the exit code of the command line: 0 success, 1 a finding or a failure, 2 usage or invalid input, 3
refused for safety, 4 timed out.
"""

import re
from collections.abc import Mapping
from typing import Any

_WEBHOOK = re.compile(r'(?:admission|failed calling) webhook "([^"]+)"')
"""How kube-apiserver names the webhook of a refusal (apiserver/pkg/admission/plugin/webhook/errors)."""


class LastcallError(Exception):
    """An expected failure, shown to the user as one message without a traceback."""

    exit_code = 1
    request = ""
    """The failed request to an API server: verb, path, and the status of the response if one arrived; empty if the
    failure was no request.
    """


class InvalidInput(LastcallError):
    """Invalid user input. The message lists every violation with its field, value and rule."""

    exit_code = 2

    def __init__(self, source: str, violations: "list[str] | tuple[str, ...]") -> None:
        self.source = source
        self.violations = tuple(violations)
        super().__init__("\n".join(f"{source}: {violation}" for violation in self.violations))


class RefusedForSafety(LastcallError):
    """Continuing could do harm. The message names the danger and the way to remove it."""

    exit_code = 3


class TimedOut(LastcallError):
    """No result in time. Nothing is known to be wrong, so the caller may retry."""

    exit_code = 4


class Unavailable(LastcallError):
    """A service (bus, logind, runtime) cannot be reached now; retry with backoff."""


class NotConnected(Unavailable):
    """No connection could be made, so the request was not sent and has changed nothing; retry with backoff."""


class ShutdownUnderWay(LastcallError):
    """logind grants no lock while it prepares a shutdown (org.freedesktop.login1.OperationInProgress)."""


class NotPermitted(LastcallError):
    """The operating system denies the operation. A retry fails until an administrator changes something."""


class ApiFailure(LastcallError):
    """The Kubernetes API rejected a request with a Status. Each subclass says what the caller can do."""

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}

    @property
    def is_by_webhook(self) -> bool:
        """Whether an admission webhook denied the request or could not be called, by kube-apiserver's message.

        The request wrote nothing. The failure is no evidence of an unhealthy server: the webhook may not apply to other
        objects.
        """
        message = str(self)
        denied = 'admission webhook "' in message and "denied the request" in message
        return denied or "failed calling webhook" in message

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before a retry, as the server asks; None if it does not say."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None

    @property
    def webhook(self) -> str:
        """The name of the admission webhook that denied the request or could not be called; "" if there is none."""
        named = _WEBHOOK.search(str(self)) if self.is_by_webhook else None
        return named[1] if named else ""


class NotFound(ApiFailure):
    """The object, or its kind, does not exist. A delete is complete."""


class AlreadyExists(ApiFailure):
    """The name is taken: read the existing object."""


class Conflict(ApiFailure):
    """The object is not in the state that the request assumes: read it again and decide again."""


class RevisionExpired(ApiFailure):
    """The requested resourceVersion is compacted: list again."""


class TooManyRequests(ApiFailure):
    """Too many requests, or a disruption budget allows none now. Retry after ``retry_after`` seconds, if given."""


class RequestRefused(ApiFailure):
    """The request violates a rule, or an admission policy denies it. The same request fails again."""


class ApiNotPermitted(ApiFailure, NotPermitted):
    """The identity is unknown or lacks a permission."""


class ApiUnavailable(ApiFailure, Unavailable):
    """The server failed or is overloaded. Whether a write took effect is unknown."""
