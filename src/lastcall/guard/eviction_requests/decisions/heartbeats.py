"""When a responder reports, and what the API server accepts of it (pure)."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from lastcall.model.eviction_requests import ResponderProgress

HEARTBEAT_SECONDS = 180.0
"""Between two reports that say nothing new (KEP-4563); the limit is 20 minutes."""

SHORTEST_SECONDS = 20.0
"""Between two reports, unless the last one ends the turn."""

MOST_MESSAGE = 4000
"""Characters of a message (API validation)."""


def report_progress(
    before: ResponderProgress,
    now: datetime,
    *,
    message: str,
    expected_at: datetime | None = None,
    is_complete: bool = False,
) -> ResponderProgress | None:
    """The responder's new entry; None if it is not due, or its turn has ended."""
    if before.completion_time is not None or before.start_time is None:
        return None
    at = max(one for one in (now.replace(microsecond=0), before.start_time, before.heartbeat_time) if one is not None)
    expected = max(expected_at.replace(microsecond=0), at) if expected_at else None
    said = replace(
        before,
        heartbeat_time=at,
        expected_completion_time=at if is_complete else expected,
        completion_time=at if is_complete else None,
        message=message[:MOST_MESSAGE],
    )
    return said if is_complete or _is_due(before, said, now) else None


def next_heartbeat(before: ResponderProgress, now: datetime) -> datetime:
    """When the next report is due at the latest."""
    return (before.heartbeat_time or now) + timedelta(seconds=HEARTBEAT_SECONDS)


def _is_due(before: ResponderProgress, said: ResponderProgress, now: datetime) -> bool:
    if before.heartbeat_time is None:
        return True
    silent = now - before.heartbeat_time
    is_news = said.message != before.message or _is_other(
        said.expected_completion_time, before.expected_completion_time
    )
    return silent >= timedelta(seconds=SHORTEST_SECONDS if is_news else HEARTBEAT_SECONDS)


def _is_other(one: datetime | None, other: datetime | None) -> bool:
    """An estimate that moves by less than a heartbeat's time is no news."""
    if one is None or other is None:
        return one is not other
    return abs(one - other) >= timedelta(seconds=SHORTEST_SECONDS)
