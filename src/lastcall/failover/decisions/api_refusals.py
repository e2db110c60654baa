"""Handles a failed write to one object, and decides whether the rest of the step continues (pure).

A pod that cannot be deleted must not block the failover of its node, and a failing server must not receive requests for
hundreds of pods. One failure does not tell the two cases apart. So a server failure ends the step and defers the object
that the request was about; the next step continues with the others.
"""

from lastcall.errors import (
    ApiFailure,
    Conflict,
    LastcallError,
    NotFound,
    RefusedForSafety,
    TimedOut,
    TooManyRequests,
    Unavailable,
)
from lastcall.failover.decisions.case import ApiRefusal

SOON = 1.0
"""Seconds before the first retry of an object that has changed in the meantime; later retries use ``AGAIN``."""
AGAIN = 10.0
"""Seconds before a retry of a request that the API server refused."""
GUARDED = 60.0
"""The longest pause in seconds for requests that an admission webhook blocks.

A webhook without a backend takes up to half a minute for each call, and holds a slot among the concurrent calls.
"""
LONGEST = 300.0
"""The longest pause in seconds after repeated server failures, and the longest ``Retry-After`` that is obeyed.

Each failure keeps all other nodes from being fenced for the policy's ``settle``, so there must be time in between.
"""


def ends_step(failure: LastcallError, *, sent: bool) -> bool:
    """Whether the failure affects the other objects of the step too. ``sent``: a write to this object was sent."""
    if sent and _is_by_webhook(failure):
        return False
    return isinstance(failure, RefusedForSafety | TimedOut | Unavailable)


def is_object_gone(failure: LastcallError) -> bool:
    """Whether the object no longer exists. A webhook may deny with any status code, so its denials do not count."""
    return isinstance(failure, NotFound) and not failure.is_by_webhook


def next_refusal(failure: LastcallError, before: ApiRefusal | None, now: float) -> ApiRefusal:
    """For how long the object is deferred; ``before`` is the previous refusal, if the last attempt was refused too."""
    least, most = _pause_bounds(failure)
    pause = min(most, max(least, 2 * before.pause)) if before else least
    if isinstance(failure, TooManyRequests) and failure.retry_after:
        pause = min(LONGEST, max(pause, failure.retry_after))
    return ApiRefusal(why=str(failure), again=now + pause, pause=pause)


def _pause_bounds(failure: LastcallError) -> tuple[float, float]:
    """The pauses in seconds after the first failure, and after many in a row."""
    if _is_by_webhook(failure):
        return AGAIN, GUARDED
    if isinstance(failure, TimedOut | Unavailable):
        return AGAIN, LONGEST
    return (SOON, AGAIN) if isinstance(failure, Conflict) else (AGAIN, AGAIN)


def _is_by_webhook(failure: LastcallError) -> bool:
    return isinstance(failure, ApiFailure) and failure.is_by_webhook
