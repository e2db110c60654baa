"""The last responder: it evicts the pod by the Eviction API, which holds budgets and webhooks (pure)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from lastcall.guard.eviction_requests.decisions.heartbeats import next_heartbeat, report_progress
from lastcall.model.base import Facts
from lastcall.model.eviction_requests import (
    EVICTOR,
    EvictablePod,
    EvictionRequest,
    PodEviction,
    ResponderProgress,
    ResponderState,
)
from lastcall.names import MIRROR_ANNOTATION

FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 600.0
"""Between an eviction that was refused and the next try: twice as long each time."""


class EvictionAttempts(Facts, frozen=True):
    """The tries so far, as this process knows them."""

    count: int = 0
    last_at: datetime | None = None
    message: str = ""
    """Why the last one was refused; "" if it was not."""


class EvictorTurn(Facts, frozen=True):
    """What the evictor does now. ``again_at``: when it looks again at the latest."""

    is_evicting: bool = False
    """It asks for the eviction now."""
    progress: ResponderProgress | None = None
    """What it reports, if anything."""
    again_at: datetime | None = None


def is_evictors_turn(eviction: PodEviction) -> bool:
    """Whether all other responders are done, and the evictor is not."""
    own, said = eviction.find_responder(EVICTOR), eviction.find_progress(EVICTOR)
    if eviction.is_over or own is None or own.state is not ResponderState.ACTIVE or said is None:
        return False
    return said.start_time is not None and said.completion_time is None


def decide_evictor(
    eviction: PodEviction, pod: EvictablePod | None, attempts: EvictionAttempts, now: datetime
) -> EvictorTurn:
    """The next step. ``pod`` is the one that has the target's name now."""
    said = eviction.find_progress(EVICTOR)
    if said is None or not is_evictors_turn(eviction):
        return EvictorTurn()
    target = pod if pod and pod.metadata.uid == eviction.uid_of_pod else None
    if end := _find_end(target):
        return EvictorTurn(progress=report_progress(said, now, message=end, is_complete=True))
    assert target is not None
    if target.metadata.deletion_timestamp is not None:
        return _await_termination(target, said, now)
    retry_at = _retry_at(attempts)
    if retry_at is None or now >= retry_at:
        return EvictorTurn(is_evicting=True)
    message = f"the Eviction API refuses (attempt {attempts.count}): {attempts.message}"
    progress = report_progress(said, now, message=message)
    return EvictorTurn(progress=progress, again_at=min(retry_at, next_heartbeat(said, now)))


def is_wanted(eviction: PodEviction, requests: Sequence[EvictionRequest]) -> bool:
    """Whether an EvictionRequest still wants the eviction."""
    return any(one.is_wanted and one.spec.target == eviction.spec.target for one in requests)


def count_refusal(attempts: EvictionAttempts, why: str, now: datetime) -> EvictionAttempts:
    """After a try that was refused."""
    return EvictionAttempts(count=attempts.count + 1, last_at=now, message=why)


def _find_end(target: EvictablePod | None) -> str:
    """Why there is nothing to do any more; "" if there is."""
    if target is None:
        return "the pod has been deleted"
    if target.is_terminal:
        return f"the pod has ended ({target.status.phase})"
    if MIRROR_ANNOTATION in (target.metadata.annotations or {}):
        return "a mirror pod is not evicted: its static pod goes on"
    owner = next((one for one in target.metadata.owner_references or () if one.controller), None)
    if owner and owner.kind == "DaemonSet":
        return "a pod of a DaemonSet is not evicted: it would be made again at the same node"
    return ""


def _await_termination(target: EvictablePod, said: ResponderProgress, now: datetime) -> EvictorTurn:
    expected = datetime.fromisoformat(target.metadata.deletion_timestamp or "")
    progress = report_progress(said, now, message="the pod is terminating", expected_at=expected)
    return EvictorTurn(progress=progress, again_at=next_heartbeat(said, now))


def _retry_at(attempts: EvictionAttempts) -> datetime | None:
    if attempts.last_at is None or not attempts.count:
        return None
    seconds = min(FIRST_RETRY_SECONDS * 2.0 ** min(attempts.count - 1, 10), LONGEST_RETRY_SECONDS)
    return attempts.last_at + timedelta(seconds=seconds)
