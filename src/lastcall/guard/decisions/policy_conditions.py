"""The conditions of a GuardPolicy (pure)."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lastcall.model.guard_policy import GuardPolicy, GuardPolicyCondition

ACCEPTED = "Accepted"
INVALID = "Invalid"
"""The reason of Accepted=False: pods of the policy are held, and nothing prepares them."""

MOST_MESSAGE = 2000
"""Characters of all violations together."""


def accepted_condition(policy: GuardPolicy, violations: Sequence[str], now: datetime) -> GuardPolicyCondition | None:
    """The condition that the policy should have; None if it has it already."""
    before = next((one for one in policy.status.conditions if one.type == ACCEPTED), None)
    after = GuardPolicyCondition(
        type=ACCEPTED,
        status="False" if violations else "True",
        reason=INVALID if violations else ACCEPTED,
        message="; ".join(violations)[:MOST_MESSAGE] or "the guard follows it",
        last_transition_time=now.replace(microsecond=0),  # as metav1.Time
        observed_generation=policy.metadata.generation,
    )
    if before and before.status == after.status:
        after = replace(after, last_transition_time=before.last_transition_time)
    return None if after == before else after
