"""What the guard says of an application on its pods: the condition ``lastcall.dev/GuardReady`` (pure).

An agent with the kubelet's identity may read its own pods and no GuardPolicy. It waits for this condition when its node
shuts down.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec.structs import replace

from lastcall.guard.decisions.policy_choice import choose_policy
from lastcall.guard.decisions.verdict import is_ready
from lastcall.model.base import Facts
from lastcall.model.foreign_text import plain_text
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState
from lastcall.model.pods import Pod, StatusCondition
from lastcall.names import GUARD_READY

NOT_REQUESTED = "NotRequested"
"""The reason while nobody asks for the pod's deletion. The others are the states of a preparation."""

MOST_MESSAGE = 300
"""Characters of a provider's message that are repeated."""


class ConditionChange(Facts, frozen=True):
    """The condition that a pod lacks; None if it has one and is not guarded any more."""

    pod: Pod
    condition: StatusCondition | None


def list_condition_changes(
    facts: GuardFacts, now: datetime, *, written: Mapping[str, StatusCondition | None]
) -> Iterator[ConditionChange]:
    """What has to be written to the pods of a namespace.

    ``written``: what was written a moment ago, by the pod's uid, because the pods may be older than that.
    """
    for pod in facts.pods:
        if pod.metadata.deletion_timestamp is not None or pod.is_finished or not pod.spec.node_name:
            continue
        uid = pod.metadata.uid
        before = written[uid] if uid in written else find_condition(pod)
        policy = choose_policy(pod, facts).policy
        after = guard_condition(pod, policy, facts, now) if policy else None
        if after != (replace(before, last_transition_time=None) if before else None):
            yield ConditionChange(pod=pod, condition=after)


def find_condition(pod: Pod) -> StatusCondition | None:
    """The pod's condition; None if it has none."""
    return next((one for one in pod.status.conditions or () if one.type == GUARD_READY), None)


def guard_condition(pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime) -> StatusCondition:
    """The condition of a pod that the policy guards, without the time of its transition.

    The time of its probe says when the application was verified: what was ready may be lost again.
    """
    held = policy.find_pod(pod.metadata.uid)
    if held is None or held.state is PreparationState.RELEASED:
        return _condition(is_true=False, reason=NOT_REQUESTED, message=f"guarded by GuardPolicy {policy.name}")
    is_true = is_ready(held, facts, now)
    condition = _condition(is_true=is_true, reason=held.state.value, message=_describe(held, policy))
    if not is_true or held.verified_at is None:
        return condition
    return replace(condition, last_probe_time=f"{held.verified_at:%Y-%m-%dT%H:%M:%SZ}")


def _describe(held: HeldPod, policy: GuardPolicy) -> str:
    said = plain_text(held.message)[:MOST_MESSAGE]
    done = f" ({held.percent} % done)" if held.percent is not None and held.state is PreparationState.PREPARING else ""
    return f"GuardPolicy {policy.name}: {said or held.state.value.lower()}{done}"


def _condition(*, is_true: bool, reason: str, message: str) -> StatusCondition:
    return StatusCondition(type=GUARD_READY, status="True" if is_true else "False", reason=reason, message=message)
