"""Errors, named by what the caller may do about them.

Each carries the exit code of the command line: 0 done, 1 a finding or a failure, 2 usage or invalid input,
3 refused for safety, 4 timed out.
"""

from collections.abc import Mapping
from typing import Any


class LastcallError(Exception):
    """A failure that is told to a person as it is, without a traceback."""

    exit_code = 1
    request = ""
    """The request to an API server that has failed: verb and path, and the status of an answer; empty if it was none."""


class InvalidInput(LastcallError):
    """The user must correct something; every violation is listed, each with field, value and rule."""

    exit_code = 2

    def __init__(self, source: str, violations: "list[str] | tuple[str, ...]") -> None:
        self.source = source
        self.violations = tuple(violations)
        super().__init__("\n".join(f"{source}: {violation}" for violation in self.violations))


class RefusedForSafety(LastcallError):
    """Going on could do harm; the message says what and how to make it safe."""

    exit_code = 3


class TimedOut(LastcallError):
    """It may be tried again: nothing is known to be wrong."""

    exit_code = 4


class Unavailable(LastcallError):
    """A service (bus, logind, runtime) cannot be reached now; retry with backoff."""


class ShutdownUnderWay(LastcallError):
    """logind grants no lock while a shutdown is being prepared (org.freedesktop.login1.OperationInProgress)."""


class NotPermitted(LastcallError):
    """The operating system refuses; retrying does not help until an administrator changes something."""


class ApiFailure(LastcallError):
    """The Kubernetes API has refused a request, and its Status says why; a subclass says what the caller may do."""

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}

    @property
    def is_by_webhook(self) -> bool:
        """An admission webhook has denied the request, with whatever code, or could not be called (kube-apiserver's words).

        Nothing was written then, and it says nothing of the server: other objects may not be guarded by it.
        """
        message = str(self)
        denied = 'admission webhook "' in message and "denied the request" in message
        return denied or "failed calling webhook" in message


class NotFound(ApiFailure):
    """There is no such object, or no such kind: what was to be removed is gone."""


class AlreadyExists(ApiFailure):
    """The name is taken: read what is there."""


class Conflict(ApiFailure):
    """The object is not as the request supposes: read it again and decide again."""


class RevisionExpired(ApiFailure):
    """The revision is not kept any more: list again."""


class TooManyRequests(ApiFailure):
    """Too many requests, or a budget allows no disruption now: try again, after ``retry_after`` seconds if that is said."""

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks to wait."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None


class RequestRefused(ApiFailure):
    """The request breaks a rule, or an admission policy denies it: the same request will fail again."""


class ApiNotPermitted(ApiFailure, NotPermitted):
    """The identity is unknown or lacks the right."""


class ApiUnavailable(ApiFailure, Unavailable):
    """The server has failed or is overloaded; whether a write has happened is not known."""
