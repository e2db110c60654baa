"""The responder ``lastcall.dev/guard``: an eviction waits until the pod's application has prepared (pure).

The guard judges it as it judges a request of the Eviction API, and so both get the same answer.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from lastcall.guard.decisions.requesters import ABANDONED_SECONDS
from lastcall.guard.decisions.verdict import NOT_GUARDED, RemovalVerdict, judge_removal
from lastcall.guard.eviction_requests.decisions.heartbeats import report_progress
from lastcall.model.admission import Removal, RemovalKind, RequestUser
from lastcall.model.base import Facts
from lastcall.model.eviction_requests import EvictionIntent, PodEviction, ResponderProgress, ResponderState
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState, RequestedRemoval
from lastcall.names import GUARD_RESPONDER, GUARD_USER

_REQUESTED_BY: Final = "EvictionRequest of "
"""How ``requestedBy`` of an entry begins that stands for an Eviction. No user of a cluster is called so."""

_MOST_NAME = 1000

_WHY: Final = {
    "ready": "the application is ready",
    "not-found": "the pod is gone",
    "precondition": "the pod is gone, and another one has its name",
    "terminating": "the pod is being deleted",
    "finished": "the pod has ended",
    NOT_GUARDED: "no GuardPolicy guards the pod",
}
"""Why the guard gives its turn away, by the reason of the verdict."""


class GuardResponse(Facts, frozen=True):
    """What the guard does about one Eviction. None: nothing."""

    progress: ResponderProgress | None = None
    verdict: RemovalVerdict | None = None
    """With the request that has to be recorded, so that the preparation begins or goes on."""

    @property
    def is_end(self) -> bool:
        """Whether the guard gives its turn away."""
        return self.progress is not None and self.progress.completion_time is not None


def is_guards_turn(eviction: PodEviction) -> bool:
    """Whether the guard has to respond now."""
    own, said = eviction.find_responder(GUARD_RESPONDER), eviction.find_progress(GUARD_RESPONDER)
    if eviction.is_over or own is None or own.state is not ResponderState.ACTIVE or said is None:
        return False
    return said.start_time is not None and said.completion_time is None


def as_removal(eviction: PodEviction) -> Removal:
    """The Eviction as a request to evict its pod."""
    target = eviction.spec.target.pod
    names = [one.name for one in eviction.status.requesters if one.intent is EvictionIntent.EVICTION]
    return Removal(
        kind=RemovalKind.EVICTION,
        namespace=eviction.metadata.namespace,
        name=target.name if target else "",
        user=RequestUser(username=f"{_REQUESTED_BY}{', '.join(names)}"[:_MOST_NAME]),
        precondition=target.uid if target else "",
    )


def decide_response(eviction: PodEviction, facts: GuardFacts, now: datetime) -> GuardResponse:
    """What the guard says, and what it records. ``facts`` are the surroundings of ``as_removal``."""
    said = eviction.find_progress(GUARD_RESPONDER)
    if said is None or not is_guards_turn(eviction):
        return GuardResponse()
    verdict = judge_removal(as_removal(eviction), facts, now)
    if verdict.allowed:
        why = _WHY.get(verdict.reason, f"it is allowed to go ({verdict.reason})")
        return GuardResponse(progress=report_progress(said, now, message=why, is_complete=True), verdict=verdict)
    held = verdict.policy.find_pod(eviction.uid_of_pod) if verdict.policy else None
    progress = report_progress(said, now, message=verdict.message, expected_at=_expect_end(held, now))
    return GuardResponse(progress=progress, verdict=verdict)


def _expect_end(held: HeldPod | None, now: datetime) -> datetime | None:
    if held is None or held.eta_seconds is None or held.state is not PreparationState.PREPARING:
        return None
    return now + timedelta(seconds=held.eta_seconds)


# -- abandoned requests ------------------------------------------------------------------------------------------------


def list_abandoned(
    policies: Iterable[GuardPolicy], evictions: Iterable[PodEviction], now: datetime
) -> Iterator[tuple[GuardPolicy, HeldPod]]:
    """The entries that stand for an Eviction which is over, or gone: their preparations have to be undone."""
    wanted = {one.uid_of_pod for one in evictions if not one.is_over}
    for policy in policies:
        for held in policy.status.pods:
            if held.uid not in wanted and withdraw_request(held, now):
                yield policy, held


def withdraw_request(held: HeldPod, now: datetime) -> HeldPod | None:
    """The entry as one that is not requested any more; None if it stands for no Eviction, or is that already."""
    silent_since = now - timedelta(seconds=ABANDONED_SECONDS)
    if held.state is PreparationState.RELEASED or not _stands_for_eviction(held):
        return None
    if held.last_request_at is not None and held.last_request_at <= silent_since:
        return None
    return replace(held, last_request_at=silent_since)


def _stands_for_eviction(held: HeldPod) -> bool:
    """Recorded here, or by the review of the guard's own evictor."""
    if held.request is not RequestedRemoval.EVICTION:
        return False
    return held.requested_by.startswith(_REQUESTED_BY) or held.requested_by == GUARD_USER
