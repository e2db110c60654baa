"""``lastcall drain`` in a rehearsal: the real loop and adapters, which can be killed and run again."""

import pytest

from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.names import DRAIN_MARK, DRAINS_NAMESPACE
from lastcall_lab import virtual
from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import (
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)

WEB = ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=4, max_unavailable="1")
HELD = ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=4, max_unavailable="0")
LOGS = ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs")


def event(at, verb, *nodes, **more):
    return ScenarioEvent(at=at, verb=verb, nodes=nodes, **more)


def rehearse(*timeline, workload=WEB, lasts=240.0, objects=()):
    """The cluster at the end, and what was told about its nodes."""
    scenario = Scenario(
        "drains",
        nodes=(NodeGroup(count=3),),
        workloads=(workload, LOGS),
        objects=objects,
        timeline=timeline,
        lasts=lasts,
    )

    async def run():
        rehearsal = Rehearsal(scenario, 1)
        await rehearsal.run()
        assert find_violations(rehearsal.run_record()) == []
        cluster = rehearsal.cluster
        assert (leases(cluster) == []) is not any(one.process.alive and not one.is_over for one in cluster.drains.all)
        return cluster, [(one.node, one.what) for one in cluster.truth.notices]

    return virtual.run(run())


def pods_on(cluster, node):
    """The names of the workloads of its pods."""
    return sorted(
        {one["metadata"]["labels"]["app"] for one in cluster.list_objects(PODS) if one["spec"]["nodeName"] == node}
    )


def node_of(cluster, name):
    return next(one for one in cluster.list_objects(NODES) if one["metadata"]["name"] == name)


def leases(cluster):
    return [one for one in cluster.list_objects(LEASES) if one["metadata"]["namespace"] == DRAINS_NAMESPACE]


def test_nodes_are_drained_in_one_run_and_stay_cordoned_until_somebody_uncordons_them():
    cluster, told = rehearse(
        event(10, Verb.LASTCALL_DRAIN, "node-1", "node-2"), event(200, Verb.UNCORDON, "node-2"), lasts=230.0
    )
    assert [pods_on(cluster, node) for node in ("node-1", "node-2")] == [["logs"], ["logs"]]
    assert {("node-1", "drained by lastcall"), ("node-2", "drained by lastcall")} <= set(told)
    assert [bool(node_of(cluster, name)["spec"].get("unschedulable")) for name in ("node-1", "node-2")] == [True, False]
    assert len(cluster.drains.all) == 1, "one run for both nodes"


@pytest.mark.parametrize("steps", [0, 5, 40, 90])
def test_a_drain_that_is_killed_is_run_again_and_goes_on(steps):
    cluster, told = rehearse(
        event(10, Verb.LASTCALL_DRAIN, "node-1"), event(10.01, Verb.KILL_DRAIN, amount=float(steps), lasts=2.0)
    )
    assert [one.kind for one in cluster.truth.faults] == ["drain with lastcall", "kill the drains"]
    assert pods_on(cluster, "node-1") == ["logs"]
    assert ("node-1", "drained by lastcall") in told
    assert DRAIN_MARK not in (node_of(cluster, "node-1")["metadata"].get("annotations") or {})


@pytest.mark.parametrize(("policy", "left"), [("", ["logs", "web"]), ("delete", ["logs"]), ("force", ["logs"])])
def test_what_happens_at_the_end_of_its_time(policy, left):
    cluster, told = rehearse(
        event(10, Verb.LASTCALL_DRAIN, "node-1", amount=30.0, on_timeout=policy), workload=HELD, lasts=120.0
    )
    assert pods_on(cluster, "node-1") == left
    assert any("may not be evicted yet, and lastcall waits" in what for _, what in told)
    assert any("is deleted by lastcall" in what for _, what in told) is bool(policy)
    assert any("not drained by lastcall" in what for _, what in told) is not policy


def test_a_right_that_is_missing_is_named_and_given_back():
    cluster, told = rehearse(
        event(8, Verb.TAKE_RIGHT, right="create pods/eviction", lasts=20.0),
        event(10, Verb.LASTCALL_DRAIN, "node-1"),
        event(60, Verb.LASTCALL_DRAIN, "node-2"),
        lasts=120.0,
    )
    assert pods_on(cluster, "node-1") == ["logs", "web"]
    assert any('cannot create resource "pods/eviction"' in what for node, what in told if node == "node-1")
    assert pods_on(cluster, "node-2") == ["logs"]
    assert "take a right from the drains" in [one.kind for one in cluster.truth.faults]


def test_a_pod_that_nobody_replaces_is_refused_and_nothing_is_evicted():
    bare = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare", "namespace": "default", "labels": {"app": "bare"}},
        "spec": {"containers": [{"name": "main", "image": "work"}], "nodeName": "node-1"},
    }
    cluster, told = rehearse(event(10, Verb.LASTCALL_DRAIN, "node-1"), objects=(bare,), lasts=60.0)
    assert "bare" in pods_on(cluster, "node-1")
    assert not node_of(cluster, "node-1")["spec"].get("unschedulable")
    assert any("lastcall drains nothing: default/bare" in what for _, what in told)


def test_a_second_drain_of_the_same_node_ends_and_names_the_first():
    cluster, told = rehearse(
        event(10, Verb.LASTCALL_DRAIN, "node-1"),
        event(30, Verb.LASTCALL_DRAIN, "node-1", "node-2"),
        workload=HELD,
        lasts=60.0,
    )
    assert any("lastcall drain has ended" in what and "drain-1-1" in what for node, what in told if node == "node-2")
    assert not node_of(cluster, "node-2")["spec"].get("unschedulable")
