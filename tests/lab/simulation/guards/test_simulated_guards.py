"""The guard in a rehearsal: its real loops and webhooks, in front of an application that knows what it has to lose."""

import pytest

from lastcall.adapters.kube.resources import PODS
from lastcall.errors import InvalidInput
from lastcall_lab import virtual
from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.rules.drain_removals import list_removals
from lastcall_lab.simulation.scenario_text.reader import read_scenario

DRAIN = """
apiVersion: lastcall.dev/v1alpha1
kind: Scenario
metadata: {name: guarded}
workloads:
- {statefulSet: queue, namespace: shop, replicas: 3, preparesIn: 20s}
guard: {failurePolicy: POLICY}
timeline:
  5s: drain node-1 with lastcall
  MORE
lasts: 2m
"""


def rehearse(*more, policy="Fail", text=DRAIN):
    """The cluster at the end, its record, and when drains removed pods, after the drain had begun."""
    text = text.replace("POLICY", policy).replace("MORE", "\n  ".join(more))

    async def run():
        rehearsal = Rehearsal(read_scenario(text.encode(), "guarded"), 1)
        await rehearsal.run()
        record = rehearsal.run_record()
        assert find_violations(record) == []
        removed = [one.at - rehearsal.start - 5 for one in list_removals(record.pod_states)]
        return rehearsal.cluster, removed

    return virtual.run(run())


def calls(cluster):
    return [call for _, call, _ in cluster.guards.applications["queue"].calls]


def on_node(cluster):
    return [one["metadata"]["name"] for one in cluster.list_objects(PODS) if one["spec"].get("nodeName") == "node-1"]


def test_a_guarded_pod_goes_when_its_application_is_ready():
    cluster, [removed] = rehearse()
    assert removed >= 20
    assert on_node(cluster) == []
    assert calls(cluster)[:2] == ["health", "prepare"]
    assert "release" in calls(cluster), "its replacement is up"


@pytest.mark.parametrize(
    "fault", ["kill the guard", "kill the guard after 50 steps", "stop the guards for 5s", "have the applications flap"]
)
def test_it_goes_although_there_are_faults(fault):
    cluster, [removed] = rehearse(f"9s: {fault}")
    assert removed >= 20
    assert on_node(cluster) == []
    assert fault.partition(" after")[0].partition(" for")[0] in {one.kind for one in cluster.truth.faults}


@pytest.mark.parametrize("fault", ["stall", "silence"])
def test_it_stays_while_nothing_goes_on(fault):
    cluster, removed = rehearse(f"9s: {fault} the applications")
    assert removed == []
    assert on_node(cluster)


@pytest.mark.parametrize(
    ("lie", "soonest"), [("9s: have the applications lie", 3), ("1s: have the applications lie for 3s", 20)]
)
def test_an_application_that_lies_is_believed_no_longer_than_it_lies(lie, soonest):
    cluster, [removed] = rehearse(lie)
    assert soonest <= removed < soonest + 10
    assert on_node(cluster) == []


def test_without_guards_their_policy_decides():
    assert rehearse("1s: stop the guards")[1] == []
    cluster, [removed] = rehearse("1s: stop the guards", policy="Ignore")
    assert removed < 2
    assert calls(cluster) == []


def test_what_needs_a_guard_says_so():
    text = DRAIN.replace("guard: {failurePolicy: POLICY}\n", "").replace("MORE", "9s: stall the applications")
    with pytest.raises(InvalidInput) as caught:
        read_scenario(text.encode(), "guarded")
    assert str(caught.value).count("needs guard: lastcall") == 2
