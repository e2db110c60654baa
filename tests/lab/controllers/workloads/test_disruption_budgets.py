"""The disruption controller on the lab's API server, in virtual time, with evictions in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import condition, moments, told, up, workload

from lastcall.adapters.kube.resources import BUDGETS, DEPLOYMENTS, JOBS, PODS, STATEFUL_SETS
from lastcall.errors import TooManyRequests
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.disruption_budgets import (
    DisruptionController,
    DisruptionTimes,
    HealthyPodsNeed,
    healthy_pods_need,
)
from lastcall_lab.controllers.workloads.jobs import JobController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController

on_budgets = on_cluster(
    DisruptionController(), DeploymentController(), ReplicaSetController(), StatefulSetController(), JobController()
)


def budget(**spec):
    return {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def pod(name, **metadata):
    return {
        "metadata": {"name": name, "labels": {"app": "web"}, **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def counts(cluster):
    """Healthy now, healthy at least, expected, allowed."""
    status = cluster.get(BUDGETS, "b")["status"]
    return tuple(status[name] for name in ("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"))


@on_budgets
async def test_a_fixed_minimum_is_counted_by_pods(cluster):
    await cluster.create(BUDGETS, budget(minAvailable=2))
    await cluster.settle()
    assert counts(cluster) == (0, 2, 0, 0)
    assert told(cluster, "NoPods") == ["No matching pods found"]
    for name in ("a", "b", "c"):
        await cluster.create(PODS, pod(name))
        await cluster.bind(name, "n1")
        await cluster.ready(name)
    await cluster.until(lambda: counts(cluster) == (3, 2, 3, 1))
    found = cluster.get(BUDGETS, "b")
    assert condition(found, "DisruptionAllowed") == ("True", "SufficientPods")
    assert found["status"]["observedGeneration"] == 1
    await cluster.ready("a", ready=False)
    await cluster.until(lambda: counts(cluster) == (2, 2, 3, 0))
    assert condition(cluster.get(BUDGETS, "b"), "DisruptionAllowed") == ("False", "InsufficientPods")
    await cluster.patch(BUDGETS, "b", {"spec": {"minAvailable": 1}})
    await cluster.until(lambda: counts(cluster) == (2, 1, 3, 1))
    assert cluster.get(BUDGETS, "b")["status"]["observedGeneration"] == 2


@on_budgets
async def test_everything_else_by_what_the_owners_want(cluster):
    async with kubelet(cluster):
        await cluster.create(BUDGETS, budget(maxUnavailable="30%"))
        await cluster.create(DEPLOYMENTS, workload("web", replicas=4))
        await cluster.until(lambda: counts(cluster) == (4, 2, 4, 2))
        await cluster.create(STATEFUL_SETS, workload("db", replicas=2, serviceName="db"))
        await cluster.until(lambda: counts(cluster) == (6, 4, 6, 2))
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        await cluster.until(lambda: counts(cluster) == (3, 2, 3, 1))


@on_budgets
async def test_a_rollout_does_not_count_twice(cluster):
    async with kubelet(cluster, ready_after=lambda one: None if "i:2" in str(one["spec"]) else 1.0):
        await cluster.create(BUDGETS, budget(minAvailable="50%"))
        await cluster.create(DEPLOYMENTS, workload("web", replicas=4))
        await cluster.until(lambda: counts(cluster) == (4, 2, 4, 2))
        containers = [{"name": "c", "image": "i:2"}]
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})
        await cluster.settle(20)
        assert counts(cluster) == (3, 2, 4, 1)


@on_budgets
async def test_pods_of_jobs_cannot_be_counted_by_their_owner(cluster):
    async with kubelet(cluster):
        await cluster.create(BUDGETS, budget(maxUnavailable=1))
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod("x")["spec"], "restartPolicy": "Never"}}
        await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
        await cluster.until(
            lambda: condition(cluster.get(BUDGETS, "b"), "DisruptionAllowed") == ("False", "SyncFailed")
        )
        [said] = cluster.get(BUDGETS, "b")["status"]["conditions"]
        assert said["message"] == "jobs.batch does not implement the scale subresource"
        assert counts(cluster)[3] == 0
        await cluster.patch(BUDGETS, "b", {"spec": {"maxUnavailable": None, "minAvailable": 0}})
        await cluster.until(lambda: counts(cluster) == (1, 0, 1, 1))


@on_budgets
async def test_pods_of_nobody_are_told_of(cluster):
    await cluster.create(BUDGETS, budget(maxUnavailable=1))
    await cluster.create(PODS, pod("a"))
    await cluster.until(lambda: told(cluster, "UnmanagedPods"))
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in told(cluster, "UnmanagedPods")[0]


@on_budgets
async def test_an_eviction_spends_until_the_pod_is_replaced(cluster):
    async with kubelet(cluster, stops_after=10.0):
        await cluster.create(BUDGETS, budget(maxUnavailable=1))
        await cluster.create(DEPLOYMENTS, workload("web", replicas=3))
        await cluster.until(lambda: counts(cluster) == (3, 2, 3, 1))
        first, second, _ = cluster.names(PODS)
        await cluster.client.evict(first, namespace="default")
        with pytest.raises(TooManyRequests):
            await cluster.client.evict(second, namespace="default")
        await cluster.until(lambda: counts(cluster) == (2, 2, 3, 0))
        assert not cluster.get(BUDGETS, "b")["status"].get("disruptedPods"), "it has been seen going"
        await cluster.until(lambda: counts(cluster) == (3, 2, 3, 1))
        await cluster.client.evict(second, namespace="default")


@on_cluster(DisruptionController(DisruptionTimes(deletion_timeout=60.0)))
async def test_evicted_pods_that_stay_count_again_after_a_while(cluster):
    for name in ("a", "b"):
        await cluster.create(PODS, pod(name))
        await cluster.bind(name, "n1")
        await cluster.ready(name)
    await cluster.create(BUDGETS, budget(minAvailable=1))
    await cluster.until(lambda: counts(cluster) == (2, 1, 2, 1))
    noted = {"a": "2027-01-15T08:00:01Z"}
    await cluster.patch(BUDGETS, "b", {"status": {"disruptedPods": noted, "disruptionsAllowed": 0}}, "status")
    await cluster.settle(30)
    assert counts(cluster) == (1, 1, 2, 0)
    assert cluster.get(BUDGETS, "b")["status"]["disruptedPods"] == noted
    await cluster.settle(40)
    assert counts(cluster) == (2, 1, 2, 1)
    assert told(cluster, "NotDeleted") == ["Pod was expected by PDB default/b to be deleted but it wasn't"]


@on_budgets
async def test_a_pod_that_was_to_go_and_stays_is_not_disrupted_any_more(cluster):
    await cluster.create(PODS, pod("a"))
    said = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    said["lastTransitionTime"] = "2027-01-15T08:00:00Z"
    await cluster.patch(PODS, "a", {"status": {"conditions": [said]}}, "status")
    await cluster.settle(110)
    assert condition(cluster.get(PODS, "a"), "DisruptionTarget") == ("True", "EvictionByEvictionAPI")
    await cluster.settle(20)
    assert condition(cluster.get(PODS, "a"), "DisruptionTarget")[0] == "False"


@on_budgets
async def test_it_rests(cluster):
    async with kubelet(cluster):
        await cluster.create(BUDGETS, budget(maxUnavailable=1))
        await cluster.create(DEPLOYMENTS, workload("web", replicas=2))
        await cluster.until(lambda: counts(cluster)[0] == 2)
        await cluster.settle(5)
        before = cluster.server.store.revision
        await cluster.settle(1000)
        assert cluster.server.store.revision == before


@settings(max_examples=10, deadline=None)
@given(
    replicas=st.integers(2, 6),
    least=st.integers(1, 5),
    stop=st.integers(1, 10),
    pause=st.floats(0.1, 3),
    seed=st.integers(0, 99),
)
def test_evictions_never_leave_fewer_than_the_budget_wants(replicas, least, stop, pause, seed):
    @on_cluster(DisruptionController(), DeploymentController(), ReplicaSetController())
    async def scenario(cluster):
        async with kubelet(cluster, stops_after=lambda _: cluster.random.uniform(0.1, stop)) as node:
            await cluster.create(BUDGETS, budget(minAvailable=least))
            await cluster.create(DEPLOYMENTS, workload("web", replicas=replicas))
            await cluster.until(lambda: counts(cluster)[0] == replicas)
            begun, evicted = len(node.seen), 0
            for number in range(12):
                names = cluster.names(PODS)
                try:
                    await cluster.client.evict(names[(seed + number) % len(names)], namespace="default")
                    evicted += 1
                except TooManyRequests:
                    pass
                await cluster.settle(pause)
            assert bool(evicted) is (replicas > least)
            for pods in list(moments(node))[begun:]:
                assert sum(map(up, pods.values())) >= min(least, replicas)

    scenario()


@pytest.mark.parametrize(
    ("spec", "pods", "need"),
    [
        ({"minAvailable": 2}, 3, HealthyPodsNeed(3, 2)),
        ({"minAvailable": 2}, 0, HealthyPodsNeed(0, 2)),
        ({}, 3, HealthyPodsNeed(0, 0)),
        ({"maxUnavailable": 1}, 3, HealthyPodsNeed(5, 4, ())),
        ({"maxUnavailable": "50%"}, 3, HealthyPodsNeed(5, 2, ())),
        ({"maxUnavailable": 9}, 3, HealthyPodsNeed(5, 0, ())),
        ({"minAvailable": "50%"}, 3, HealthyPodsNeed(5, 3, ())),
        ({"minAvailable": "0%"}, 3, HealthyPodsNeed(5, 0, ())),
    ],
)
def test_needs(spec, pods, need):
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
    view = View()
    place = {"name": "s", "namespace": "default", "uid": "u"}
    view.apply("statefulsets.apps", {"metadata": place, "spec": {"replicas": 5}}, None)
    covered = [{"metadata": {"name": str(n), "namespace": "default", "ownerReferences": [owner]}} for n in range(pods)]
    assert healthy_pods_need({"spec": spec}, covered, view) == need


def test_nothing_is_allowed_of_what_nobody_wants_and_only_the_known_version_is_replaced():
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
    place = {"name": "s", "namespace": "default", "uid": "u"}
    one = pod("a", namespace="default", uid="a", ownerReferences=[owner])
    one["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    found = budget(maxUnavailable=1)
    found["metadata"] |= {"namespace": "default", "uid": "b", "resourceVersion": "7", "generation": 1}
    view = View()
    view.apply("statefulsets.apps", {"metadata": place, "spec": {"replicas": 0}}, None)
    view.apply("pods", one, None)
    view.apply("poddisruptionbudgets.policy", found, None)
    [patch] = DisruptionController().decide(ObjectRef("poddisruptionbudgets.policy", "default", "b"), view, 0.0).actions
    assert patch.body["status"]["currentHealthy"] == 1
    assert patch.body["status"]["disruptionsAllowed"] == 0
    assert patch.revision == "7"
