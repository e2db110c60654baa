"""What becomes of one object that could not be written, and of the others of its step (pure).

One pod that cannot be deleted must not hold up the failover of its node, and a server that has failed is not to be asked for
hundreds of pods. A single answer does not tell the two apart. So a failure of the server ends the step, and the object that
it was about is left out for a while: the next step goes on with the others.
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
"""Seconds after which an object that is not as the request supposes is asked for again, as it is then; later ``AGAIN``."""
AGAIN = 10.0
"""Seconds after which what the API server has refused is asked for again."""
GUARDED = 60.0
"""The most seconds after which that is asked for again which an admission webhook stands in the way of.

One whose backend is away takes up to half a minute for each call, and a place among the calls under way that others want.
"""
LONGEST = 300.0
"""The most seconds after which that is asked for again which it has failed at again and again, or wants a pause for.

Each failure keeps all other nodes from being fenced for the policy's ``settle``, so there has to be time in between.
"""


def ends_step(failure: LastcallError, *, sent: bool) -> bool:
    """Whether it holds for the other objects of the step as well. ``sent``: a write about this object had been sent."""
    if sent and _is_by_webhook(failure):
        return False
    return isinstance(failure, RefusedForSafety | TimedOut | Unavailable)


def is_object_gone(failure: LastcallError) -> bool:
    """Whether the object is not there any more; a webhook may deny with any code."""
    return isinstance(failure, NotFound) and not failure.is_by_webhook


def next_refusal(failure: LastcallError, before: ApiRefusal | None, now: float) -> ApiRefusal:
    """Until when the object is left out; ``before``: what came of the try before, if that was refused too."""
    least, most = _pause_bounds(failure)
    pause = min(most, max(least, 2 * before.pause)) if before else least
    if isinstance(failure, TooManyRequests) and failure.retry_after:
        pause = min(LONGEST, max(pause, failure.retry_after))
    return ApiRefusal(why=str(failure), again=now + pause, pause=pause)


def _pause_bounds(failure: LastcallError) -> tuple[float, float]:
    """Seconds after the first time, and after many in a row."""
    if _is_by_webhook(failure):
        return AGAIN, GUARDED
    if isinstance(failure, TimedOut | Unavailable):
        return AGAIN, LONGEST
    return (SOON, AGAIN) if isinstance(failure, Conflict) else (AGAIN, AGAIN)


def _is_by_webhook(failure: LastcallError) -> bool:
    return isinstance(failure, ApiFailure) and failure.is_by_webhook
