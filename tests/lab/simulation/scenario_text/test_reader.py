"""A scenario from YAML, and what is wrong with one that is none."""

import math

import pytest

from lastcall.errors import InvalidInput
from lastcall.model.shutdown import PhasePlan
from lastcall_lab.simulation.scenario import (
    CAPACITY,
    Expectation,
    Goal,
    LeaderSettings,
    NodeGroup,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text.reader import read_scenario

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\n"


def violations(text):
    with pytest.raises(InvalidInput) as error:
        read_scenario(text.encode(), "x.yaml")
    return error.value.violations


def scenario(text=""):
    return read_scenario((HEAD + text).encode(), "x.yaml")


def test_everything_that_can_be_said():
    found = scenario("""
description: A story.
nodes:
- {name: worker, count: 4, domains: {rack: [a, b]}, labels: {disk: fast}, capacity: {cpu: 2}}
priorityClasses: {storage: 1000000}
objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}]
workloads:
- {deployment: web, namespace: shop, replicas: 6, requests: 20/s, preStop: 3s, endsIn: never, minAvailable: 50%, drains: false}
- {statefulSet: db, volume: true, writes: 6/m, priorityClassName: storage, terminationGracePeriodSeconds: 90, leader: true}
- {daemonSet: logs, maxUnavailable: 1, startsIn: 2s, readyIn: 0s, cpu: 50m, memory: 32Mi}
- {job: sums, worksFor: 5m}
agent: {shutdownGracePeriod: 90s, shutdownGracePeriodCriticalPods: 30s}
shutdownManager: kubelet
propagationDelay: 2s
bootsIn: 1m
timeline:
  2m: [stop the API server for 30s, cut the power of rack b]
  1m: reboot worker-2 for 45s
lasts: 20m
expect: web loses no request
""")
    assert (found.name, found.description, found.lasts) == ("x", "A story.", 1200)
    assert found.nodes == (
        NodeGroup(
            name="worker",
            count=4,
            domains={"rack": ("a", "b")},
            labels={"disk": "fast"},
            capacity={**CAPACITY, "cpu": "2"},
        ),
    )
    assert [one["kind"] for one in found.objects] == ["PriorityClass", "ConfigMap"]
    web, db, logs, sums = found.workloads
    assert web == ScenarioWorkload(
        kind=ScenarioWorkloadKind.DEPLOYMENT,
        name="web",
        namespace="shop",
        replicas=6,
        requests=20,
        pre_stop=3,
        ends=math.inf,
        min_available="50%",
        drains=False,
    )
    assert (db.volume, db.writes, db.priority_class, db.grace, db.leader) == (
        True,
        0.1,
        "storage",
        90,
        LeaderSettings(),
    )
    assert (logs.kind, logs.max_unavailable, logs.starts, logs.ready) == (ScenarioWorkloadKind.DAEMON_SET, "1", 2, 0)
    assert (sums.kind, sums.lives) == (ScenarioWorkloadKind.JOB, 300)
    assert found.agent.groups == (PhasePlan(priority=0, seconds=60), PhasePlan(priority=2_000_000_000, seconds=30))
    assert (found.manager, found.propagation, found.boot) == (ScenarioShutdownManager.KUBELET, 2, 60)
    assert found.timeline == (
        ScenarioEvent(at=60, verb=Verb.REBOOT, nodes=("worker-2",), lasts=45),
        ScenarioEvent(at=120, verb=Verb.API_DOWN, lasts=30),
        ScenarioEvent(at=120, verb=Verb.POWER_CUT, nodes=("rack b",)),
    )
    assert found.expect == (Expectation(goal=Goal.REQUESTS_LOST, subject="web"),)


def test_what_is_left_out():
    found = scenario()
    assert found.nodes == (NodeGroup(),)
    assert found.agent.requested_seconds == 30
    assert (found.manager, found.lasts, found.timeline, found.expect) == (ScenarioShutdownManager.LASTCALL, 600, (), ())
    assert scenario("nodes: 5").nodes == (NodeGroup(count=5),)


def test_a_repeated_key_is_told_with_its_line():
    assert violations(HEAD + "lasts: 1m\nlasts: 2m\n") == ('line 5, column 1: key "lasts" already set in map',)


def test_all_that_is_wrong_is_told_at_once():
    found = violations("""
apiVersion: v1
kind: Scenaro
nodes: [{name: node, cout: 3}, {count: 0}]
workload: []
lasts: tomorrow
""")
    assert [one.partition(":")[0] for one in found] == [
        "workload", "lasts", "apiVersion", "kind", "metadata.name", "nodes[0].cout", "nodes[1].count", "nodes[1].name",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        ("workload: []", "workload: []: unknown field, did you mean workloads?"),
        ("colour: red", 'colour: "red": unknown field, known are apiVersion, kind'),
        ("lasts: 90", 'lasts: 90: must be a duration as text, such as "30s"'),
        ("lasts: 2 hours", 'lasts: "2 hours": time: unknown unit " hours" in duration "2 hours"'),
        ("lasts: -1m", 'lasts: "-1m": must not be negative'),
        ("nodes: 0", "nodes: 0: must be a whole number from 1 to 5000"),
        ("nodes: []", "nodes: []: must be a list that is not empty"),
        ("nodes: [{domains: {rack: []}}]", 'nodes[0].domains: {"rack": []}: rack: must be a list that is not empty'),
        (
            "shutdownManager: systemd",
            'shutdownManager: "systemd": must be lastcall, lastcall-beside-kubelet, kubelet or none',
        ),
        ("agent: {shutdownGracePeriod: 30}", "agent.shutdownGracePeriod: 30: must be a duration as text"),
        ("agent: {mood: good}", 'agent.mood: "good": unknown field, did you mean mode?'),
        ("agent: 30s", 'agent: "30s": must be a mapping: the fields of an AgentConfiguration'),
        ("objects: [3]", "objects[0]: 3: must be an object with apiVersion, kind and metadata.name"),
        (
            "objects: [{kind: Foo, apiVersion: v1, metadata: {name: x}}]",
            'objects[0]: "v1 Foo": no kind that the lab has',
        ),
        ("workloads: [{replicas: 3}]", "workloads[0]: none of them: must be named by one of deployment, statefulSet"),
        ("workloads: [{deployment: a, job: b}]", "workloads[0]: deployment and job: must be named by one of"),
        ("workloads: [{deployment: A}]", 'workloads[0].deployment: "A": must be a name'),
        ("workloads: [{deployment: a, replicas: -1}]", "workloads[0].replicas: -1: must be a whole number from 0"),
        ("workloads: [{deployment: a, requests: 20}]", 'workloads[0].requests: 20: must be a rate such as "20/s"'),
        (
            "workloads: [{deployment: a, minAvailable: half}]",
            'workloads[0].minAvailable: "half": must be a whole number',
        ),
        ("workloads: [{deployment: a, minAvailable: true}]", "workloads[0].minAvailable: true: must be a whole number"),
        (
            "workloads: [{deployment: a, minAvailable: 1, maxUnavailable: 1}]",
            "workloads[0].maxUnavailable: 1: cannot be given beside minAvailable",
        ),
        ("workloads: [{deployment: a, volume: true}]", "workloads[0].volume: true: means nothing for a Deployment"),
        ("workloads: [{daemonSet: a, replicas: 2}]", "workloads[0].replicas: 2: means nothing for a DaemonSet"),
        ("workloads: [{statefulSet: a, writes: 1/s}]", 'workloads[0].writes: "1/s": needs volume: true'),
        ("workloads: [{deployment: a, cpu: lots}]", 'workloads[0].cpu: "lots": must be a quantity'),
        ("workloads: [{deployment: a, drains: 1}]", "workloads[0].drains: 1: must be true or false"),
        (
            "workloads: [{deployment: a, leader: {election: x}}]",
            'workloads[0].leader: {"election": "x"}: leader.election',
        ),
        (
            "workloads: [{deployment: a, priorityClassName: high}]",
            'workloads[0].priorityClassName: "high": there is no such PriorityClass; known are system-node-critical',
        ),
        ("workloads: [{deployment: a}, {job: a}]", 'workloads[1]: "a": is the name of another workload'),
        ("timeline: [reboot node-1]", 'timeline: ["reboot node-1"]: must be a mapping of times to sentences'),
        ("timeline: {2: reboot node-1}", 'timeline.2: "2": time: missing unit in duration "2"'),
        ("timeline: {1h: reboot node-1}", 'timeline.1h: "1h": must be before the end (lasts)'),
        ("timeline: {1m: 7}", "timeline.1m: 7: must be text"),
        ("timeline: {1m: rebot node-1}", 'timeline.1m: "rebot node-1": is not understood; it could be "reboot NODES'),
        (
            "timeline: {1m: [reboot node-1, reboot node-9]}",
            'timeline.1m[1]: "reboot node-9": "node-9" means no machine; known are node-1 to node-3, all nodes, half',
        ),
        (
            "nodes: [{domains: {rack: [a, b]}}]\ntimeline: {1m: hang rack c}",
            'timeline.1m: "hang rack c": "rack c" means no machine; known are node-1 to node-3, rack a, rack b, all nodes',
        ),
        (
            "expect: [weeb runs at the end]",
            'expect[0]: "weeb runs at the end": there is no workload weeb; known are none',
        ),
        ("expect: all is well", 'expect: "all is well": is not understood; it could be "'),
    ],
)
def test_violations(text, violation):
    [found] = violations(HEAD + text)
    assert found.startswith(violation)


@pytest.mark.parametrize("text", ["", "---\n---\n", HEAD + "---\n" + HEAD, "[]", "3", "text"])
def test_what_is_no_scenario_at_all(text):
    [found] = violations(text)
    assert found.startswith("document: ")
