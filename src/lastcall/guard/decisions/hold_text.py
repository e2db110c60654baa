"""What a person reads about a pod that is held (pure)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from lastcall.guard.decisions.point_of_no_return import is_irreversible
from lastcall.guard.decisions.policy_conditions import find_fault
from lastcall.model.duration import format_elapsed
from lastcall.model.foreign_text import plain_text
from lastcall.model.guard_config import GuardConfig
from lastcall.model.guard_policy import GuardPolicy, HeldPod, HoldLimitAction, PreparationState
from lastcall.model.pods import Pod

MOST_MESSAGE = 300
"""Characters of a provider's message that are repeated."""


def describe_hold(
    pod: Pod,
    policy: GuardPolicy,
    held: HeldPod | None,
    config: GuardConfig,
    *,
    front: Sequence[HeldPod],
    budget: str,
) -> str:
    """One sentence: what is waited for, since when, how far it is, until when, and the command that shows more.

    ``budget`` says why a PodDisruptionBudget would refuse the eviction.
    """
    if front:
        what = _describe_front(front)
    elif held is None or held.state is PreparationState.RELEASED:
        what = _describe_beginning(policy, budget)
    else:
        what = _describe_state(held)
    figures = "" if held is None or front else _describe_figures(held, policy)
    more = config.format_command(policy=policy.name, namespace=pod.metadata.namespace, pod=pod.metadata.name)
    return f"pod {pod.key} is held by GuardPolicy {policy.name}: {what}{figures}; see: {more}"


def describe_other_refusal(name: str, allowed_at: datetime) -> str:
    """The same about a pod that was allowed to go, and is asked for again."""
    others = "another admission webhook, a PodDisruptionBudget or a precondition has refused it"
    return f"pod {name} was allowed to go at {format_time(allowed_at)} and is still there: {others}"


def _describe_beginning(policy: GuardPolicy, budget: str) -> str:
    if fault := find_fault(policy):
        return f"the guard cannot follow this policy: {plain_text(fault)[:MOST_MESSAGE]}"
    if budget:
        return f"its application does not prepare yet: {budget}"
    return f"its application begins to prepare{', which cannot be undone' if is_irreversible(policy) else ''}"


def _describe_front(front: Sequence[HeldPod]) -> str:
    first = front[0]
    others = f" and {len(front) - 1} more" if len(front) > 1 else ""
    return f"pod {first.name}{others} of the same application is in front ({first.state.value})"


def _describe_state(held: HeldPod) -> str:
    said = plain_text(held.message)[:MOST_MESSAGE]
    match held.state:
        case PreparationState.READY:
            return "its application was ready and is being verified again"
        case PreparationState.STALLED:
            return f"the preparation makes no progress and needs a person: {said or 'no reason was given'}"
        case PreparationState.UNHEALTHY:
            return f"its application is short of members already: {said or 'no reason was given'}"
        case PreparationState.UNKNOWN:
            return (
                f"a newer version of the guard prepares its application, in a way that this one does not know: {said}"
            )
        case _:
            return said or "its application prepares"


def _describe_figures(held: HeldPod, policy: GuardPolicy) -> str:
    parts = []
    if held.percent is not None:
        parts.append(f"{held.percent} % done")
    if held.since:
        parts.append(f"since {format_time(held.since)}")
    if held.requested_by:
        parts.append(f"requested by {plain_text(held.requested_by)}")
    if held.eta_seconds is not None:
        parts.append(f"about {format_elapsed(held.eta_seconds)} left")
    limit = policy.spec.hold_limit_seconds
    if limit is not None and held.since and policy.spec.on_limit is HoldLimitAction.ALLOW:
        parts.append(f"allowed at {format_time(held.since + timedelta(seconds=limit))}")
    elif limit is not None and held.since:
        parts.append(f"limit {format_time(held.since + timedelta(seconds=limit))}, held on after it")
    return f" ({', '.join(parts)})" if parts else ""


@lru_cache(maxsize=256)  # the time since when a pod is held is in each of its refusals
def format_time(at: datetime) -> str:
    """UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
