"""Deployments on the lab's API server, in virtual time, and the arithmetic of their rollouts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import condition, moments, stays, template, told, up, workload

from lastcall.adapters.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from lastcall_lab.controllers.workloads.deployment_sets import DESIRED, HASH, HISTORY, MOST, REVISION
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.rollout_sizes import (
    ReplicaSetCounts,
    RolloutBounds,
    new_set_size,
    old_set_sizes,
    proportional_sizes,
    rollout_bounds,
)

on_deployments = on_cluster(DeploymentController(), ReplicaSetController())


def rolling(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def status(cluster):
    return cluster.get(DEPLOYMENTS, "web")["status"]


def done(cluster):
    """What ``kubectl rollout status`` waits for."""
    found = cluster.get(DEPLOYMENTS, "web")
    said, wanted = found["status"], found["spec"]["replicas"]
    seen = said.get("observedGeneration", 0) >= found["metadata"]["generation"]
    counts = [said.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return seen and counts == [wanted] * 3


async def change(cluster, image):
    containers = [{"name": "c", "image": image}]
    await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def set_of(cluster, image):
    return next(
        one for one in cluster.all(REPLICA_SETS) if one["spec"]["template"]["spec"]["containers"][0]["image"] == image
    )


def sizes(cluster):
    return sorted(one["spec"]["replicas"] for one in cluster.all(REPLICA_SETS))


# -- the life of a rollout ---------------------------------------------------------------------------------------------


@on_deployments
async def test_pods_by_a_replica_set_of_the_template(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=3))
        await cluster.until(lambda: done(cluster))
        [made] = cluster.all(REPLICA_SETS)
        letters = made["metadata"]["labels"][HASH]
        assert made["metadata"]["name"] == f"web-{letters}"
        assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: letters}
        assert all(pod["metadata"]["labels"][HASH] == letters for pod in cluster.all(PODS))
        notes = made["metadata"]["annotations"]
        assert (notes[REVISION], notes[DESIRED], notes[MOST]) == ("1", "3", "4")
        deployment = cluster.get(DEPLOYMENTS, "web")
        assert deployment["metadata"]["annotations"][REVISION] == "1"
        assert condition(deployment, "Available") == ("True", "MinimumReplicasAvailable")
        assert condition(deployment, "Progressing") == ("True", "NewReplicaSetAvailable")
        assert told(cluster, "ScalingReplicaSet") == [f"Scaled up replica set web-{letters} from 0 to 3"]


@on_deployments
async def test_it_rests_when_it_is_done(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=2))
        await cluster.until(lambda: done(cluster))
        await cluster.settle(5)
        before = cluster.server.store.revision
        await cluster.settle(1000)
        assert cluster.server.store.revision == before


@on_deployments
async def test_another_template_is_rolled_out_and_back(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=3))
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.until(lambda: not done(cluster))
        await cluster.until(lambda: done(cluster))
        assert sizes(cluster) == [0, 3]
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "2"
        await change(cluster, "i:1")
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster))
        assert cluster.count(REPLICA_SETS) == 2, "the old set is used again"
        notes = set_of(cluster, "i:1")["metadata"]["annotations"]
        assert (notes[REVISION], notes[HISTORY]) == ("3", "1")
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "3"


@on_deployments
async def test_a_bad_template_stops_where_the_bounds_are_and_is_told_after_the_deadline(cluster):
    async with kubelet(cluster, ready_after=lambda pod: None if "bad" in str(pod["spec"]) else 1.0):
        await cluster.create(DEPLOYMENTS, workload(replicas=4, progressDeadlineSeconds=60))
        await cluster.until(lambda: done(cluster))
        await change(cluster, "bad")
        await cluster.settle(50)
        assert condition(cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("True", "ReplicaSetUpdated")
        assert (set_of(cluster, "i:1")["spec"]["replicas"], set_of(cluster, "bad")["spec"]["replicas"]) == (3, 2)
        await cluster.settle(15)
        deployment = cluster.get(DEPLOYMENTS, "web")
        assert condition(deployment, "Progressing") == ("False", "ProgressDeadlineExceeded")
        assert condition(deployment, "Available") == ("True", "MinimumReplicasAvailable")
        await change(cluster, "i:1")
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster))
        await cluster.settle()
        deployment = cluster.get(DEPLOYMENTS, "web")
        assert condition(deployment, "Progressing") == ("True", "NewReplicaSetAvailable")


@on_deployments
async def test_recreate_waits_until_the_last_old_pod_is_gone(cluster):
    async with kubelet(cluster, stops_after=20.0) as node:
        await cluster.create(DEPLOYMENTS, workload(replicas=3, strategy={"type": "Recreate"}))
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.settle(10)
        assert cluster.count(PODS) == 3, "they are still ending"
        await cluster.until(lambda: done(cluster))
        for pods in moments(node):
            assert len({pod["metadata"]["labels"][HASH] for pod in pods.values()}) <= 1


@on_deployments
async def test_paused_changes_nothing_but_the_size(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=2, paused=True))
        await cluster.settle()
        assert cluster.count(REPLICA_SETS) == 0
        assert condition(cluster.get(DEPLOYMENTS, "web"), "Progressing") == ("Unknown", "DeploymentPaused")
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await cluster.until(lambda: done(cluster))
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, "replicas": 4}})
        await change(cluster, "i:2")
        await cluster.settle(10)
        assert [one["spec"]["replicas"] for one in cluster.all(REPLICA_SETS)] == [4], "the old template, and more of it"
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster))
        assert sizes(cluster) == [0, 4]


@on_deployments
async def test_old_sets_beyond_the_limit_are_forgotten(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=1, revisionHistoryLimit=1))
        for image in ("i:2", "i:3", "i:4"):
            await cluster.until(lambda: done(cluster))
            await change(cluster, image)
            await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster))
        await cluster.settle()
        images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in cluster.all(REPLICA_SETS)}
        assert images == {"i:3", "i:4"}


@on_deployments
async def test_scaled_in_the_middle_of_a_rollout_the_sets_keep_their_proportion(cluster):
    never = kubelet(cluster, ready_after=lambda pod: None if "i:2" in str(pod["spec"]) else 1.0)
    async with never:
        await cluster.create(DEPLOYMENTS, workload(replicas=10, strategy=rolling(3, 2)))
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.settle(5)
        assert (set_of(cluster, "i:1")["spec"]["replicas"], set_of(cluster, "i:2")["spec"]["replicas"]) == (8, 5)
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await cluster.settle(5)
        assert (set_of(cluster, "i:1")["spec"]["replicas"], set_of(cluster, "i:2")["spec"]["replicas"]) == (11, 7)


@on_deployments
async def test_scaled_to_nothing_and_back(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=3))
        await cluster.until(lambda: done(cluster))
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        await cluster.until(lambda: cluster.count(PODS) == 0)
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster))
        assert cluster.count(REPLICA_SETS) == 1


@on_deployments
async def test_a_restart_by_annotation_is_a_rollout(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=2))
        await cluster.until(lambda: done(cluster))
        before = set(cluster.names(PODS))
        note = {"kubectl.kubernetes.io/restartedAt": "2027-01-15T08:00:00Z"}
        await cluster.patch(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": {"annotations": note}}}})
        await cluster.settle(0.5)
        await cluster.until(lambda: done(cluster) and cluster.count(PODS) == 2)
        assert not before & set(cluster.names(PODS))


@on_deployments
async def test_minimum_seconds_of_readiness_hold_a_rollout_back(cluster):
    async with kubelet(cluster):
        await cluster.create(DEPLOYMENTS, workload(replicas=2, minReadySeconds=30, strategy=rolling(1, 0)))
        await cluster.until(lambda: status(cluster).get("readyReplicas") == 2)
        assert not status(cluster).get("availableReplicas")
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.settle(20)
        assert sizes(cluster) == [1, 2], "the first new pod does not count yet"
        await cluster.until(lambda: done(cluster))


@on_deployments
async def test_a_set_that_matches_is_adopted_and_one_that_does_not_any_more_is_released(cluster):
    orphan = workload("orphan", replicas=1)
    orphan["metadata"]["labels"] = {"app": "web"}
    await cluster.create(REPLICA_SETS, orphan)
    await cluster.create(DEPLOYMENTS, workload(replicas=1))
    await cluster.settle()
    [adopted] = cluster.all(REPLICA_SETS)
    [owner] = adopted["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Deployment", "web", True)
    await cluster.patch(REPLICA_SETS, "orphan", {"metadata": {"labels": {"app": "other"}}})
    await cluster.until(lambda: cluster.count(REPLICA_SETS) == 2)
    assert not cluster.get(REPLICA_SETS, "orphan")["metadata"].get("ownerReferences")


@on_deployments
async def test_a_name_that_is_taken_gets_another_hash(cluster):
    await cluster.create(DEPLOYMENTS, workload(replicas=1))
    await cluster.until(lambda: cluster.count(REPLICA_SETS) == 1)
    taken = cluster.names(REPLICA_SETS)[0]
    await cluster.delete(DEPLOYMENTS, "web")
    labels = {"app": "other"}
    await cluster.delete(REPLICA_SETS, taken)
    await cluster.create(
        REPLICA_SETS,
        workload(taken, replicas=0, selector={"matchLabels": labels}, template=template(labels=labels)),
    )
    await cluster.create(DEPLOYMENTS, workload(replicas=1))
    await cluster.until(lambda: cluster.count(REPLICA_SETS) == 2)
    assert cluster.get(DEPLOYMENTS, "web")["status"]["collisionCount"] == 1


@settings(max_examples=12, deadline=None)
@given(
    replicas=st.integers(1, 6),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    ready=st.integers(1, 9),
    stop=st.integers(1, 9),
    images=st.lists(st.sampled_from(["i:1", "i:2", "i:3"]), min_size=1, max_size=4),
    pause=st.integers(0, 12),
)
def test_a_rollout_keeps_its_bounds_whatever_comes_in_between(replicas, surge, unavailable, ready, stop, images, pause):
    if not surge and not unavailable:
        surge = 1

    @on_cluster(DeploymentController(), ReplicaSetController())
    async def scenario(cluster):
        delay = cluster.random.uniform
        async with kubelet(
            cluster, ready_after=lambda _: delay(0.1, ready), stops_after=lambda _: delay(0.1, stop)
        ) as node:
            await cluster.create(DEPLOYMENTS, workload(replicas=replicas, strategy=rolling(surge, unavailable)))
            await cluster.until(lambda: done(cluster))
            node.seen[:] = [(kind, pod) for kind, pod in node.seen if up(pod)][-replicas:]
            for image in images:
                await change(cluster, image)
                await cluster.settle(pause)
            await cluster.until(lambda: done(cluster))
            allowed = rollout_bounds(replicas, surge, unavailable)
            for pods in list(moments(node))[replicas:]:
                assert sum(map(stays, pods.values())) <= allowed.max_pods
                assert sum(map(up, pods.values())) >= allowed.min_available

    scenario()


# -- the arithmetic ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", RolloutBounds(4, 1, 1)),
        (3, "25%", "25%", RolloutBounds(3, 1, 0)),
        (10, 3, 2, RolloutBounds(10, 3, 2)),
        (1, 0, "25%", RolloutBounds(1, 0, 1)),
        (2, 0, 5, RolloutBounds(2, 0, 2)),
        (0, "25%", "25%", RolloutBounds(0, 0, 0)),
        (3, None, None, RolloutBounds(3, 0, 1)),
    ],
)
def test_bounds(replicas, surge, unavailable, expected):
    assert rollout_bounds(replicas, surge, unavailable) == expected


@pytest.mark.parametrize(
    ("new", "old", "size"),
    [
        (ReplicaSetCounts("n", 0), [ReplicaSetCounts("o", 10, 10)], 3),
        (ReplicaSetCounts("n", 3), [ReplicaSetCounts("o", 8, 8)], 5),
        (ReplicaSetCounts("n", 3), [ReplicaSetCounts("o", 10, 10)], 3),
        (ReplicaSetCounts("n", 9), [ReplicaSetCounts("o", 1, 1)], 10),
        (ReplicaSetCounts("n", 12), [], 10),
    ],
)
def test_the_new_set_grows_as_far_as_there_is_room(new, old, size):
    assert new_set_size(new, old, RolloutBounds(10, 3, 2)) == size


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (ReplicaSetCounts("n", 3), [ReplicaSetCounts("o", 10, 10)], {"o": 8}),
        (ReplicaSetCounts("n", 5), [ReplicaSetCounts("o", 8, 8)], {}),
        (ReplicaSetCounts("n", 5), [ReplicaSetCounts("o", 8, 7)], {}),
        (ReplicaSetCounts("n", 10, 9), [ReplicaSetCounts("b", 5, 0)], {"b": 0}),
        (
            ReplicaSetCounts("n", 0),
            [ReplicaSetCounts("a", 8, 8, age=("1", "")), ReplicaSetCounts("b", 5, 0, age=("2", ""))],
            {"b": 0},
        ),
        (ReplicaSetCounts("n", 10, 10), [ReplicaSetCounts("a", 1, 1), ReplicaSetCounts("b", 2, 2)], {"a": 0, "b": 0}),
        (ReplicaSetCounts("n", 2, 2), [ReplicaSetCounts("o", 8, 13)], {"o": 6}),
    ],
)
def test_old_sets_shrink_by_what_may_be_missing(new, old, expected):
    assert old_set_sizes(new, old, RolloutBounds(10, 3, 2)) == expected


parts = st.lists(
    st.builds(
        ReplicaSetCounts, st.uuids().map(str), st.integers(0, 9), st.integers(0, 12), st.none() | st.integers(1, 20)
    ),
    max_size=4,
)


@given(parts, st.integers(0, 12), st.integers(0, 12), st.integers(0, 9), st.integers(0, 4), st.integers(0, 4))
def test_no_step_makes_more_unavailable_than_allowed(old, size, available, replicas, surge, unavailable):
    allowed = rollout_bounds(replicas, surge, unavailable)
    new = ReplicaSetCounts("n", size, available)
    changed = old_set_sizes(new, old, allowed)
    before = new.surely_available + sum(part.surely_available for part in old)
    after = new.surely_available + sum(
        min(part.surely_available, changed.get(part.name, part.replicas)) for part in old
    )
    assert after >= min(before, allowed.min_available)
    assert all(0 <= value < part.replicas for part in old for value in [changed.get(part.name, -1)] if value >= 0)
    assert new_set_size(new, old, allowed) <= max(allowed.replicas, 0)
    total = new_set_size(new, old, allowed) + sum(part.replicas for part in old)
    assert total <= max(allowed.max_pods, size + sum(part.replicas for part in old))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 12), st.integers(0, 4))
def test_shares_come_to_what_the_deployment_wants(present, replicas, surge):
    allowed = RolloutBounds(replicas, surge, 0)
    old = [ReplicaSetCounts(str(age), size, size, age=(str(age), "")) for age, size in enumerate(present)]
    changed = proportional_sizes(old, allowed, present=sum(present))
    wanted = allowed.max_pods if replicas else 0
    if wanted >= sum(present):
        assert sum(changed.values()) == wanted
    else:  # the rest of a rounding is taken from one set, which has no more pods than it has
        assert wanted <= sum(changed.values()) < sum(present)
    assert all(size >= 0 for size in changed.values())
