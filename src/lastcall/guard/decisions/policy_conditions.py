"""The conditions of a GuardPolicy (pure)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lastcall.guard.decisions.point_of_no_return import describe_point_of_no_return, is_irreversible
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyCondition, HoldLimitAction

ACCEPTED = "Accepted"
INVALID = "Invalid"
"""The reason of Accepted=False: pods of the policy are held, and nothing prepares them."""

MOST_MESSAGE = 2000
"""Characters of all violations together."""


_WITHOUT_LIMIT = "the guard follows it; without holdLimit the value Allow of onLimit and onUnreachable has no effect"


def find_fault(policy: GuardPolicy) -> str:
    """Why the guard cannot follow the policy as it is now, as its condition says; "" if it can, or that is not known."""
    said = next((one for one in policy.status.conditions if one.type == ACCEPTED), None)
    if said is None or said.status != "False" or said.observed_generation != policy.metadata.generation:
        return ""
    return said.message


def accepted_condition(policy: GuardPolicy, violations: Sequence[str], now: datetime) -> GuardPolicyCondition | None:
    """The condition that the policy should have; None if it has it already."""
    before = next((one for one in policy.status.conditions if one.type == ACCEPTED), None)
    after = GuardPolicyCondition(
        type=ACCEPTED,
        status="False" if violations else "True",
        reason=INVALID if violations else ACCEPTED,
        message="; ".join(violations)[:MOST_MESSAGE] or _describe_accepted(policy),
        last_transition_time=now.replace(microsecond=0),  # as metav1.Time
        observed_generation=policy.metadata.generation,
    )
    if before and before.status == after.status:
        after = replace(after, last_transition_time=before.last_transition_time)
    return None if after == before else after


def _describe_accepted(policy: GuardPolicy) -> str:
    spec = policy.spec
    allows = HoldLimitAction.ALLOW in (spec.on_limit, spec.on_unreachable)
    said = _WITHOUT_LIMIT if allows and spec.hold_limit_seconds is None else "the guard follows it"
    return f"{said}; {describe_point_of_no_return(policy)}" if is_irreversible(policy) else said
