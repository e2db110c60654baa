"""Preparations for the shutdown of a node, whose agent is not held: it waits for the outcome, and the deadline wins (pure).

The agent records the shutdown with its deadline on the Node. A pod that is prepared for it is requested again and again
as long as that stands; so a cancelled shutdown is an abandoned request, and its preparations are undone.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from lastcall.guard.decisions.exemptions import KUBELET, is_bypassed
from lastcall.guard.decisions.policy_choice import choose_policy
from lastcall.guard.decisions.request_record import new_entry
from lastcall.guard.decisions.reservations import pods_in_front
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState, RequestedRemoval
from lastcall.model.pods import Pod
from lastcall.names import MIRROR_ANNOTATION

REPEATED_SECONDS = 20.0
"""Between two records of the same shutdown."""

LATE_SECONDS = 60.0
"""So long after its deadline a machine may still run."""


def is_shutting_down(deadline: datetime, now: datetime) -> bool:
    """Whether the machine may still run. The mark of one that is off stays until its next boot."""
    return now < deadline + timedelta(seconds=LATE_SECONDS)


def list_shutdown_requests(
    policy: GuardPolicy, facts: GuardFacts, deadlines: Mapping[str, datetime], now: datetime
) -> Iterator[HeldPod]:
    """The entries that the policy's pods on these nodes need: new ones, and those whose request is due to be repeated.

    ``deadlines`` are those of recorded shutdowns, by the Node's name.
    """
    for pod in facts.pods:
        deadline = deadlines.get(pod.spec.node_name)
        if deadline and is_shutting_down(deadline, now) and _is_prepared_by(policy, pod, facts, now):
            entry = request_by_shutdown(pod, policy, facts, now)
            if entry:
                yield entry


def request_by_shutdown(pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime) -> HeldPod | None:
    """The pod's entry with this request; None if nothing has to be written, or all places of its application are taken.

    A preparation that somebody else has requested goes on as it is.
    """
    held = policy.find_pod(pod.metadata.uid)
    if held is None or held.state is PreparationState.RELEASED:
        if pods_in_front(pod, policy, facts):
            return None
        user = f"{KUBELET}{pod.spec.node_name}"
        return new_entry(pod, policy, facts, now, request=RequestedRemoval.NODE_SHUTDOWN, requested_by=user)
    if held.request is not RequestedRemoval.NODE_SHUTDOWN:
        return None
    last = held.last_request_at
    if last and now - last < timedelta(seconds=REPEATED_SECONDS):
        return None
    return replace(held, last_request_at=now)


def _is_prepared_by(policy: GuardPolicy, pod: Pod, facts: GuardFacts, now: datetime) -> bool:
    if pod.metadata.deletion_timestamp is not None or pod.is_finished:
        return False
    if MIRROR_ANNOTATION in (pod.metadata.annotations or {}) or is_bypassed(pod, facts, now):
        return False
    chosen = choose_policy(pod, facts).policy
    return chosen is not None and chosen.metadata.uid == policy.metadata.uid
