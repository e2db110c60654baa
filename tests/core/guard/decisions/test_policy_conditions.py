"""The condition by which a person sees that the guard cannot follow a policy."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lastcall.guard.decisions.policy_conditions import accepted_condition, find_fault
from lastcall.model.guard_policy import GuardPolicy, GuardPolicyMeta, GuardSpec, GuardStatus, HoldLimitAction

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
POLICY = GuardPolicy(metadata=GuardPolicyMeta(name="db", generation=3), spec=GuardSpec(provider={"redis": {}}))


def with_condition(condition):
    return replace(POLICY, status=GuardStatus(conditions=(condition,)))


def test_a_policy_that_is_followed():
    found = accepted_condition(POLICY, [], NOW)
    assert (found.type, found.status, found.reason, found.observed_generation) == ("Accepted", "True", "Accepted", 3)
    assert found.last_transition_time == NOW
    assert accepted_condition(with_condition(found), [], NOW + timedelta(hours=1)) is None


def test_a_policy_that_cannot_be_followed_says_why():
    good = accepted_condition(POLICY, [], NOW)
    later = NOW + timedelta(hours=1)
    found = accepted_condition(with_condition(good), ["spec.provider: 'rediss': no provider has this name"], later)
    assert (found.status, found.reason, found.last_transition_time) == ("False", "Invalid", later)
    assert found.message == "spec.provider: 'rediss': no provider has this name"
    again = accepted_condition(with_condition(found), ["another fault"], later + timedelta(hours=1))
    assert (again.message, again.last_transition_time) == ("another fault", later)


def test_another_generation_is_another_word():
    good = accepted_condition(POLICY, [], NOW)
    newer = replace(with_condition(good), metadata=replace(POLICY.metadata, generation=4))
    assert accepted_condition(newer, [], NOW).observed_generation == 4


def test_a_fault_is_that_of_the_policy_as_it_is_now():
    bad = with_condition(accepted_condition(POLICY, ["another fault"], NOW))
    assert find_fault(bad) == "another fault"
    assert find_fault(replace(bad, metadata=replace(POLICY.metadata, generation=4))) == "", "it was changed since"
    assert find_fault(with_condition(accepted_condition(POLICY, [], NOW))) == ""
    assert find_fault(POLICY) == "", "nobody has looked yet"


@pytest.mark.parametrize("field", ["on_limit", "on_unreachable"])
def test_allow_without_a_limit_is_said_to_have_no_effect(field):
    allowing = replace(POLICY, spec=replace(POLICY.spec, **{field: HoldLimitAction.ALLOW}))
    assert "without holdLimit" in accepted_condition(allowing, [], NOW).message
    limited = replace(allowing, spec=replace(allowing.spec, hold_limit="5m"))
    assert accepted_condition(limited, [], NOW).message == "the guard follows it"


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ({"redis": {}}, "the guard follows it"),
        ({"http": {"port": 80, "reversible": True}}, "the guard follows it"),
        (
            {"http": {"port": 80}},
            "the guard follows it; point of no return: a preparation by provider http cannot be undone once it has begun",
        ),
    ],
)
def test_the_point_of_no_return_is_said_before_anything_is_prepared(provider, said):
    policy = replace(POLICY, spec=replace(POLICY.spec, provider=provider))
    assert accepted_condition(policy, [], NOW).message == said
