"""Whether a pod may be deleted now (pure)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from lastcall.guard.decisions import hold_text
from lastcall.guard.decisions.exemptions import bypass_warnings, find_exemption
from lastcall.guard.decisions.policy_choice import choose_policy
from lastcall.guard.decisions.request_record import record_request
from lastcall.guard.decisions.reservations import pods_in_front
from lastcall.model.admission import Removal, RemovalKind
from lastcall.model.base import Facts
from lastcall.model.budgets import EvictionRefused, decide_eviction
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, HoldLimitAction, PreparationState
from lastcall.model.pods import Pod

NOT_GUARDED = "not-guarded"
"""The reason of an allowance: no policy guards the pod."""

READY = "ready"
"""The reason of an allowance: the application can do without the pod."""


class RemovalVerdict(Facts, frozen=True):
    """The answer. ``reason`` is for the audit log; ``message`` says to a person why the pod is held."""

    allowed: bool
    reason: str
    message: str = ""
    warnings: tuple[str, ...] = ()
    policy: GuardPolicy | None = None
    """The policy that holds the pod, or by which it is ready."""
    record: HeldPod | None = None
    """What has to be recorded in the policy's status before the answer; None for nothing."""
    uid: str = ""
    """The pod's, if it is allowed to go because it is ready."""


def judge_removal(removal: Removal, facts: GuardFacts, now: datetime) -> RemovalVerdict:
    """Whether the pod may be removed now, from what is recorded alone. Changes nothing, so it suits a dry run too."""
    pod = removal.pod or facts.find_pod(removal.namespace, removal.name)
    if pod is None:
        return RemovalVerdict(allowed=True, reason="not-found")
    choice = choose_policy(pod, facts)
    if choice.policy is None:
        return RemovalVerdict(allowed=True, reason=NOT_GUARDED, warnings=choice.warnings)
    warnings = (*choice.warnings, *bypass_warnings(pod, facts, now))
    if exemption := find_exemption(removal, pod, facts, now):
        return RemovalVerdict(allowed=True, reason=exemption.value, warnings=warnings)
    return _judge_preparation(removal, pod, choice.policy, facts, now, warnings)


def _judge_preparation(
    removal: Removal, pod: Pod, policy: GuardPolicy, facts: GuardFacts, now: datetime, warnings: tuple[str, ...]
) -> RemovalVerdict:
    held = policy.find_pod(pod.metadata.uid)
    if held and _is_known_hold(held) and (limit := _limit_reason(held, policy, now)):
        text = f"pod {pod.key} was held for {policy.spec.hold_limit} and is allowed to go, though it is not ready"
        return RemovalVerdict(allowed=True, reason=limit, warnings=(*warnings, text))
    front = pods_in_front(pod, policy, facts)
    if held and not front and is_ready(held, facts, now):
        return RemovalVerdict(allowed=True, reason=READY, warnings=warnings, policy=policy, uid=held.uid)
    budget = _refusing_budget(removal, pod, facts)
    starts = not budget and not removal.is_dry_run
    return RemovalVerdict(
        allowed=False,
        reason=_hold_reason(held, front),
        message=hold_text.describe_hold(pod, policy, held, facts.config, front=front, budget=budget),
        warnings=warnings,
        policy=policy,
        record=record_request(removal, pod, policy, facts, now, front=front) if starts else None,
    )


def is_ready(held: HeldPod, facts: GuardFacts, now: datetime) -> bool:
    """Whether the application was ready when it was last verified, and that counts still."""
    if held.state is not PreparationState.READY or held.verified_at is None:
        return False
    return abs(now - held.verified_at) <= timedelta(seconds=facts.config.ready_seconds)


def _is_known_hold(held: HeldPod) -> bool:
    """Whether the pod is held at all, in a state that this version of the guard knows."""
    return held.state not in (PreparationState.RELEASED, PreparationState.UNKNOWN)


def _limit_reason(held: HeldPod, policy: GuardPolicy, now: datetime) -> str:
    """Which limit lets the pod go now; "" for none."""
    seconds = policy.spec.hold_limit_seconds
    if seconds is None:
        return ""
    limit = timedelta(seconds=seconds)
    if policy.spec.on_limit is HoldLimitAction.ALLOW and held.since and now - held.since >= limit:
        return "hold-limit"
    silent = held.unreachable_since
    if policy.spec.on_unreachable is HoldLimitAction.ALLOW and silent and now - silent >= limit:
        return "unreachable"
    return ""


def _refusing_budget(removal: Removal, pod: Pod, facts: GuardFacts) -> str:
    """Why a PodDisruptionBudget would refuse the eviction now; "" if none would."""
    if removal.kind is not RemovalKind.EVICTION:
        return ""
    decided = decide_eviction(pod, facts.budgets)
    if not isinstance(decided, EvictionRefused):
        return ""
    named = ", ".join(one.metadata.name for one in decided.budgets)
    return f"PodDisruptionBudget {named}: {decided.cause or decided.why.value}"


def _hold_reason(held: HeldPod | None, front: Sequence[HeldPod]) -> str:
    if front:
        return "waiting"
    return held.state.value.lower() if held else "not-prepared"
