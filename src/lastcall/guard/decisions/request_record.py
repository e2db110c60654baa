"""What is recorded of a request that is refused: with it a preparation begins (pure)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from lastcall.guard.decisions.owners import list_owners
from lastcall.guard.decisions.requesters import is_workload_controller
from lastcall.guard.decisions.reservations import application_of
from lastcall.model.admission import Removal, RemovalKind
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState, RequestedRemoval
from lastcall.model.pods import Pod

REPEATED_SECONDS = 30.0
"""A request that is repeated is recorded so often at most: a drain asks every five seconds."""


def record_request(
    removal: Removal, pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime, *, front: Sequence[HeldPod]
) -> HeldPod | None:
    """The pod's entry with this request; None if nothing has to be written.

    ``front`` are the pods that have taken all places before this one: no preparation begins then.
    """
    held = policy.find_pod(pod.metadata.uid)
    if held and held.state is not PreparationState.RELEASED:
        return _repeat_request(held, removal, now)
    if front:
        return None
    entry = new_entry(pod, policy, facts, now, request=_request_kind(removal), requested_by=removal.user.username)
    return msgspec.structs.replace(entry, grace_period_seconds=removal.grace_period_seconds)


def new_entry(
    pod: Pod,
    policy: GuardPolicy,
    facts: GuardFacts,
    now: datetime,
    *,
    request: RequestedRemoval,
    requested_by: str,
) -> HeldPod:
    """The entry with which a preparation begins."""
    workload = list_owners(pod, facts).workload
    return HeldPod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        state=PreparationState.PREPARING,
        since=now,
        requested_by=requested_by,
        group=application_of(pod, policy, facts),
        workload_uid=workload.metadata.uid if workload else "",
        request=request,
        last_request_at=now,
    )


def record_other_refusal(held: HeldPod | None, allowed_at: datetime, now: datetime) -> HeldPod | None:
    """The entry of a pod that was allowed to go and is asked for again; None if nothing has to be written.

    Its preparation is kept for as long as somebody asks.
    """
    if held is None or held.state is not PreparationState.READY:
        return None
    is_due = held.last_request_at is None or now - held.last_request_at >= timedelta(seconds=REPEATED_SECONDS)
    if held.allowed_at and not is_due:
        return None
    return msgspec.structs.replace(held, allowed_at=allowed_at, last_request_at=now)


def _repeat_request(held: HeldPod, removal: Removal, now: datetime) -> HeldPod | None:
    """The last request counts. That of a workload's controller is not replaced by another's: it is nudged when ready."""
    by_controller = is_workload_controller(removal.user.username)
    was_by_controller = is_workload_controller(held.requested_by) and held.request is RequestedRemoval.DELETE
    is_due = held.last_request_at is None or now - held.last_request_at >= timedelta(seconds=REPEATED_SECONDS)
    if not is_due and (was_by_controller or not by_controller):
        return None
    if was_by_controller and not by_controller:
        return msgspec.structs.replace(held, last_request_at=now)
    return msgspec.structs.replace(
        held,
        requested_by=removal.user.username,
        request=_request_kind(removal),
        grace_period_seconds=removal.grace_period_seconds,
        last_request_at=now,
    )


def _request_kind(removal: Removal) -> RequestedRemoval:
    return RequestedRemoval.EVICTION if removal.kind is RemovalKind.EVICTION else RequestedRemoval.DELETE
