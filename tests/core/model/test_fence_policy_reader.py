"""FencePolicies as they are read: what is right, what is wrong, and which nodes they mean."""

import pytest
from support.failover.policy_cases import BROKEN, GOOD, TOLD_LATER, agent, fencer, policy

from lastcall.errors import InvalidInput
from lastcall.model.fence_policy import FailoverMode, PowerOn, RemoveTaint
from lastcall.model.fence_policy_reader import parse_policy
from lastcall.model.fencer import TargetCheck
from lastcall.model.selectors import LabelSelector


def violations(found):
    with pytest.raises(InvalidInput) as caught:
        parse_policy(found)
    return list(caught.value.violations)


@pytest.mark.parametrize("name", GOOD)
def test_a_policy_that_keeps_the_rules(name):
    assert parse_policy(policy(**GOOD[name])).name == "p"


def test_what_is_left_out_is_careful():
    spec = parse_policy(policy(fencers=[fencer()])).spec
    assert (spec.mode, spec.power_on, spec.remove_taint) == (FailoverMode.OBSERVE, PowerOn.NEVER, RemoveTaint.OURS)
    assert (spec.suspect_after_seconds, spec.limits.settle_seconds) == (40, 60)
    assert (spec.limits.min_healthy, spec.limits.per_domain, spec.limits.per_hour) == ("51%", 1, 3)
    [one] = spec.fencers
    assert (one.kind, one.timeout_seconds, one.attempts, one.target_check) == ("manual", 30, 2, TargetCheck.REQUIRED)


@pytest.mark.parametrize(("spec", "said"), [*BROKEN, *TOLD_LATER])
def test_a_broken_rule_is_told_with_field_and_value(spec, said):
    assert [one for one in violations(policy(**spec)) if one.startswith(said)]


def test_all_violations_are_told_at_once_and_where_they_stand():
    spec = {
        "suspectAfter": "1ms",
        "fencers": [fencer("F"), fencer("b", manual={}, attempts=0), fencer("c", ec2={}, manual={})],
    }
    said = violations(policy("x", **spec))
    assert [one.partition(": ")[0] for one in said] == [
        "spec.fencers[0].name",
        "spec.fencers[1].attempts",
        "spec.suspectAfter",
        "spec.fencers[2]",
    ]
    assert "fencepolicy x" in str(pytest.raises(InvalidInput, parse_policy, policy("x", **spec)).value)


@pytest.mark.parametrize("found", [None, [], {}, {"metadata": []}, policy() | {"spec": 3}, policy(fencers="bmc")])
def test_what_is_no_policy_is_refused(found):
    assert violations(found)


def test_a_parameter_in_two_places_is_told_of_both():
    said = violations(
        policy(fencers=[agent(parameters={"ip": "b"}, secretParameters={"ip": {"name": "s", "key": "k"}})])
    )
    assert said == [
        'spec.fencers[0].agent.parameters: "ip": must stand in one place only',
        'spec.fencers[0].agent.secretParameters: "ip": must stand in one place only',
    ]


def test_secrets_are_named_by_the_node():
    spec = parse_policy(
        policy(fencers=[agent(secretParameters={"passwd": {"name": "bmc-{node}", "key": "{node}"}})])
    ).spec
    assert spec.fencers[0].agent.secret_parameters["passwd"].key_for("w1") == ("bmc-w1", "w1")


# -- which nodes are meant ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "values", "there", "absent"),
    [("In", ["a"], True, False), ("NotIn", ["a"], False, True), ("Exists", [], True, False)],
)
def test_expressions(operator, values, there, absent):
    selector = parse_policy(
        policy(nodeSelector={"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]})
    ).spec.node_selector
    assert (selector.selects({"zone": "a"}), selector.selects({})) == (there, absent)


def test_a_selector_without_requirements_means_every_node():
    assert LabelSelector().selects({})
