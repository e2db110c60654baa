"""Which FencePolicy holds for a node when some of them are broken, and what their status says."""

from datetime import UTC, datetime, timedelta

import pytest
from support.failover.policy_cases import GOOD, fencer, policy

from lastcall.failover.limits.policy_choice import choose_policy, ordered_entries, policy_status, storm_limits
from lastcall.failover.reporting.fencer_failures import PolicyFencers
from lastcall.model.fence_policy_reader import parse_policy

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FIRST = "2026-11-21T12:00:00Z"
BROKEN = {"suspectAfter": "1ms"}
NOBODY_LOST = PolicyFencers()


def held(labels, *policies):
    return choose_policy(labels, ordered_entries(policies))


def test_the_limits_are_those_of_the_storm_guard():
    found = storm_limits(parse_policy(policy(**GOOD["everything"])).spec.limits)
    assert (found.min_healthy, found.per_domain, found.per_hour, found.settle) == ("0%", 2, 10, 0)


@pytest.mark.parametrize("name", GOOD)
def test_whatever_a_policy_may_say_is_a_limit(name):
    assert storm_limits(parse_policy(policy(**GOOD[name])).spec.limits)


def selecting(name, priority=0, **labels):
    return policy(name, priority=priority, nodeSelector={"matchLabels": labels})


def test_the_greatest_priority_holds():
    policies = [policy("all"), selecting("gpu", 10, gpu="yes"), selecting("more", 20, gpu="yes")]
    assert held({}, *policies).name == "all"
    assert held({"gpu": "yes"}, *policies).name == held({"gpu": "yes"}, *reversed(policies)).name == "more"


def test_of_equals_the_first_by_name_holds():
    assert held({"a": "b"}, selecting("y", a="b"), selecting("x", a="b"), policy("z")).name == "x"


def test_a_node_that_no_policy_selects_is_told_so():
    assert held({"a": "c"}, selecting("x", a="b")).why == held({}).why == "no FencePolicy selects the node"


def test_a_broken_policy_keeps_its_nodes_from_the_next():
    broken = policy("broken", **BROKEN, priority=5, nodeSelector={"matchLabels": {"gpu": "yes"}})
    rest = policy("rest")
    found = held({"gpu": "yes"}, rest, broken)
    assert (found.policy, found.name) == (None, "broken")
    assert found.why == (
        'FencePolicy broken selects the node, and is not valid: spec.suspectAfter: "1ms": must be 1s to 1h'
    )
    assert held({}, rest, broken).name == "rest"
    assert held({"gpu": "yes"}, broken, policy("first", priority=6)).name == "first"


@pytest.mark.parametrize("selector", [{"matchLabels": {"a": 1}}, {"matchExpressions": [{"key": "a"}]}, 7])
def test_a_policy_whose_selector_cannot_be_read_stands_before_every_node(selector):
    found = held({}, policy("broken", priority=1, nodeSelector=selector), policy("rest"))
    assert (found.policy, found.name) == (None, "broken")


@pytest.mark.parametrize("thing", [None, {}, {"metadata": 3, "spec": []}])
def test_what_is_no_object_holds_everything_back(thing):
    assert held({}, thing, policy("rest")).policy is None


# -- the status --------------------------------------------------------------------------------------------------------


def told(obj, *, nodes=0, now=NOW, fencers=NOBODY_LOST):
    [entry] = ordered_entries([obj])
    lists = {"fencers": fencers.status_entries, "heldBack": []}
    return policy_status(obj, entry, nodes=nodes, conditions=[fencers.working_condition], told=lists, now=now)


def at_generation(generation, found=None, **spec):
    obj = policy(**spec)
    return obj | {"metadata": {"name": "p", "generation": generation}, **({"status": found} if found else {})}


def test_a_policy_that_is_heeded():
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "it is heeded",
        "observedGeneration": 3,
        "lastTransitionTime": FIRST,
    }
    asked = {
        "type": "FencersWorking",
        "status": "Unknown",
        "reason": "NotAsked",
        "message": "no fencer was asked: no node is lost for which this policy holds",
        "observedGeneration": 3,
        "lastTransitionTime": FIRST,
    }
    assert told(at_generation(3), nodes=7) == {
        "conditions": [condition, asked],
        "fencers": [],
        "heldBack": [],
        "nodes": 7,
        "observedGeneration": 3,
    }


def test_a_policy_that_is_not_says_why():
    condition, _ = told(at_generation(1, fencers=[fencer(ec2={}, manual={})]))["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Invalid")
    assert condition["message"].startswith("spec.fencers[0]: ec2 and manual given")


def test_what_is_written_already_is_not_written_again():
    first = told(at_generation(1), nodes=2)
    later = NOW + timedelta(hours=1)
    assert told(at_generation(1, first), nodes=2, now=later) is None
    assert told(at_generation(1, first), nodes=3, now=later)["nodes"] == 3


def test_the_time_is_that_of_the_last_change():
    first, later = told(at_generation(1)), NOW + timedelta(hours=1)
    same, _ = told(at_generation(2, first), now=later)["conditions"]
    assert (same["observedGeneration"], same["lastTransitionTime"]) == (2, FIRST)
    other, _ = told(at_generation(2, first, **BROKEN), now=later)["conditions"]
    assert other["lastTransitionTime"] == "2026-11-21T13:00:00Z"
