"""What becomes of a held pod's entry by a step of its preparation (pure)."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from lastcall.model.guard_policy import HeldPod, PreparationState
from lastcall.ports.guard import PreparationProgress, PreparationReport

MOST_MESSAGE = 1024
"""Characters of a provider's message that are recorded."""

UNHEALTHY_SECONDS = 10.0
"""Between two questions whether an application has all its members again."""

FIRST_RETRY_SECONDS = 2.0
LONGEST_RETRY_SECONDS = 30.0

VERIFIED_AGAIN_SECONDS = 4.0
"""A report that says nothing new is recorded so often at most; readiness counts for ten seconds."""

STALLED_ATTEMPTS = 5
"""So many failures in a row, and a person is needed."""


def record_start(held: HeldPod, now: datetime) -> HeldPod:
    """Before the provider prepares: so that whoever leads after a crash knows that there is something to undo."""
    return replace(
        held,
        state=PreparationState.PREPARING,
        prepared_at=held.prepared_at or now,
        next_attempt_at=None,
        message="",
        verified_at=None,
        ready_at=None,
    )


def record_unhealthy(held: HeldPod, message: str, now: datetime) -> HeldPod:
    """The application is short of members: the pod gives its place back."""
    return replace(
        held,
        state=PreparationState.UNHEALTHY,
        message=message[:MOST_MESSAGE],
        attempts=0,
        unreachable_since=None,
        next_attempt_at=now + timedelta(seconds=UNHEALTHY_SECONDS),
    )


def record_unhealthy_release(held: HeldPod, message: str, now: datetime) -> HeldPod:
    """The replacement is up, and the application is still short: the place stays taken."""
    text = f"its replacement is up, and the application is not healthy yet: {message}"
    return replace(held, message=text[:MOST_MESSAGE], next_attempt_at=now + timedelta(seconds=UNHEALTHY_SECONDS))


def record_report(held: HeldPod, report: PreparationReport, asked_at: datetime) -> HeldPod:
    """What the provider said; ``asked_at`` is when it was asked, since its answer may have taken long.

    The same entry if it says nothing new.
    """
    if report.progress is PreparationProgress.LOST:
        return _record_lost(held, report, asked_at)
    is_ready = report.progress is PreparationProgress.READY
    state = {
        PreparationProgress.READY: PreparationState.READY,
        PreparationProgress.STALLED: PreparationState.STALLED,
    }.get(report.progress, PreparationState.PREPARING)
    entry = replace(
        held,
        state=state,
        percent=100 if is_ready else _clamp(report.percent, 100),
        eta_seconds=0 if is_ready else _clamp(report.eta_seconds),
        message=report.message[:MOST_MESSAGE],
        attempts=0 if is_ready else held.attempts,
        verified_at=asked_at if is_ready else None,
        ready_at=(held.ready_at or asked_at) if is_ready else None,
        unreachable_since=None,
        next_attempt_at=None,
    )
    return held if _says_nothing_new(held, entry) else entry


def record_failure(held: HeldPod, message: str, now: datetime, *, is_unreachable: bool) -> HeldPod:
    """A step has failed: it is tried again, later each time. A ready pod is not ready for long without an answer."""
    attempts = held.attempts + 1
    is_started = held.state in (PreparationState.PREPARING, PreparationState.STALLED)
    return replace(
        held,
        state=PreparationState.STALLED if is_started and attempts >= STALLED_ATTEMPTS else held.state,
        attempts=attempts,
        message=message[:MOST_MESSAGE],
        unreachable_since=(held.unreachable_since or now) if is_unreachable else None,
        next_attempt_at=now + timedelta(seconds=retry_seconds(attempts)),
    )


def is_release_given_up(held: HeldPod, *, is_application_gone: bool) -> bool:
    """Whether a release that keeps failing ends all the same: where the application is gone, nobody may ever answer."""
    return is_application_gone and held.attempts >= STALLED_ATTEMPTS


def record_release(held: HeldPod, message: str, now: datetime) -> HeldPod:
    """The preparation has ended, or was undone."""
    return replace(
        held,
        state=PreparationState.RELEASED,
        message=message[:MOST_MESSAGE],
        attempts=0,
        percent=None,
        eta_seconds=None,
        verified_at=None,
        ready_at=None,
        prepared_at=None,
        unreachable_since=None,
        next_attempt_at=None,
        released_at=now,
        allowed_at=None,
        undo_requested_at=None,
    )


def retry_seconds(attempts: int) -> float:
    """Seconds until the next try after so many failures in a row."""
    return min(FIRST_RETRY_SECONDS * 2.0 ** min(attempts - 1, 10), LONGEST_RETRY_SECONDS)


def _record_lost(held: HeldPod, report: PreparationReport, now: datetime) -> HeldPod:
    """It is prepared again after a pause: a preparation may cost the application something each time."""
    attempts = held.attempts + 1
    text = f"has to be prepared again: {report.message}".rstrip(": ")
    return replace(
        held,
        state=PreparationState.STALLED if attempts >= STALLED_ATTEMPTS else PreparationState.PREPARING,
        attempts=attempts,
        message=text[:MOST_MESSAGE],
        verified_at=None,
        ready_at=None,
        unreachable_since=None,
        next_attempt_at=now + timedelta(seconds=retry_seconds(attempts)),
    )


def _says_nothing_new(held: HeldPod, entry: HeldPod) -> bool:
    if replace(entry, verified_at=held.verified_at) != held:
        return False
    if entry.verified_at is None or held.verified_at is None:
        return entry.verified_at is held.verified_at
    return entry.verified_at - held.verified_at < timedelta(seconds=VERIFIED_AGAIN_SECONDS)


def _clamp(value: int | None, most: int | None = None) -> int | None:
    if value is None:
        return None
    return max(0, value if most is None else min(value, most))
