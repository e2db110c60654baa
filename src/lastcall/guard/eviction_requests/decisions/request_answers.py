"""What an EvictionRequest of a drain, and the Eviction for its pod, mean to the drain (pure)."""

from collections.abc import Sequence
from enum import Enum

from lastcall.guard.eviction_requests.decisions.request_outcomes import find_relevant
from lastcall.model.base import Facts
from lastcall.model.eviction_requests import (
    EVICTED,
    EVICTOR,
    FAILED,
    EvictionCondition,
    EvictionConditionReason,
    EvictionRequest,
    PodEviction,
    ResponderState,
)

PATIENCE = 60.0
"""Seconds without a word about a request, after which nothing in the cluster seems to act on EvictionRequests."""

_Reason = EvictionConditionReason
_TO_US = {
    _Reason.EVICTION_INVALID.value: "an EvictionRequest cannot evict it",
    _Reason.NO_FURTHER_RESPONDER.value: "no responder has evicted it",
    _Reason.POD_TERMINAL.value: "it has ended, and its object is there",
}
"""Reasons of conditions that are True, after which a drain has to ask the Eviction API itself."""


class RequestVerdict(Enum):
    """What the drain does about the pod."""

    EVICTED = "evicted"
    """Its end is only to be waited for."""
    WAIT = "wait"
    """It stays for the time being."""
    ASK_API = "ask the API"
    """The drain asks the Eviction API itself; budgets and webhooks hold there."""


class RequestAnswer(Facts, frozen=True):
    """``is_held``: a responder of the application has its turn."""

    verdict: RequestVerdict
    message: str = ""
    is_held: bool = False


def judge_request(request: EvictionRequest, evictions: Sequence[PodEviction], waited: float) -> RequestAnswer:
    """The answer to a drain. ``evictions`` are all of the namespace.

    ``waited`` are the seconds since the drain has requested the eviction, or any as long as nothing has acted on one.
    """
    decided = _find_true(request.status.conditions)
    if decided is not None and decided.reason in _TO_US:
        said = f": {decided.message}" if decided.message else ""
        return RequestAnswer(verdict=RequestVerdict.ASK_API, message=_TO_US[decided.reason] + said)
    if decided is not None and decided.type == EVICTED:
        return RequestAnswer(verdict=RequestVerdict.EVICTED)
    eviction = find_relevant([one for one in evictions if one.spec.target == request.spec.target])
    if eviction is not None and not eviction.is_over:
        return _describe_turn(eviction)
    if not request.status.conditions and waited >= PATIENCE:
        why = f"nothing has acted on its EvictionRequest for {PATIENCE:.0f} s"
        return RequestAnswer(verdict=RequestVerdict.ASK_API, message=why)
    message = "its EvictionRequest waits for the controller of EvictionRequests"
    return RequestAnswer(verdict=RequestVerdict.WAIT, message=message)


def _find_true(conditions: Sequence[EvictionCondition]) -> EvictionCondition | None:
    """The condition that says how it ended; what has evicted the pod counts first."""
    true = {one.type: one for one in conditions if one.status == "True"}
    return true.get(EVICTED) or true.get(FAILED)


def _describe_turn(eviction: PodEviction) -> RequestAnswer:
    active = next((one for one in eviction.status.target_responders if one.state is ResponderState.ACTIVE), None)
    if active is None:
        return RequestAnswer(verdict=RequestVerdict.WAIT, message="its EvictionRequest waits for a responder's turn")
    said = eviction.find_progress(active.name)
    text = f": {said.message}" if said and said.message else " has its turn"
    message = f"EvictionRequest: responder {active.name}{text}"
    return RequestAnswer(verdict=RequestVerdict.WAIT, message=message, is_held=active.name != EVICTOR)
