"""StatefulSets on the lab's API server, in virtual time."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import moments, told, up, workload

from lastcall.adapters.kube.informer import ChangeKind
from lastcall.adapters.kube.resources import CLAIMS, PODS, STATEFUL_SETS, dict_resource
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController

REVISIONS = dict_resource("apps", "v1", "controllerrevisions")
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}

on_sets = on_cluster(StatefulSetController())


def stateful(replicas=3, **spec):
    return workload(replicas=replicas, serviceName="web", **spec)


def status(cluster):
    return cluster.get(STATEFUL_SETS, "web")["status"]


def ready(cluster, replicas):
    return status(cluster).get("readyReplicas", 0) == replicas == status(cluster)["replicas"]


def done(cluster):
    """What ``kubectl rollout status`` waits for."""
    found = cluster.get(STATEFUL_SETS, "web")
    said = found["status"]
    seen = said.get("observedGeneration", 0) >= found["metadata"]["generation"]
    return seen and ready(cluster, found["spec"]["replicas"]) and said["updateRevision"] == said["currentRevision"]


def images(cluster):
    return [pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)]


def claims(cluster):
    """Who owns each claim."""
    return {
        one["metadata"]["name"]: [owner["kind"] for owner in one["metadata"].get("ownerReferences") or ()]
        for one in cluster.all(CLAIMS)
    }


async def change(cluster, image, **spec):
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    await cluster.patch(STATEFUL_SETS, "web", {"spec": {"template": template, **spec}})


async def scale(cluster, replicas):
    await cluster.patch(STATEFUL_SETS, "web", {"spec": {"replicas": replicas}})


@on_sets
async def test_one_after_the_other_each_with_its_identity(cluster):
    async with kubelet(cluster, ready_after=5.0):
        await cluster.create(STATEFUL_SETS, stateful())
        await cluster.settle(7)
        assert cluster.names(PODS) == ["web-0", "web-1"], "the third waits until the second is ready"
        await cluster.until(lambda: ready(cluster, 3))
        pod = cluster.get(PODS, "web-2")
        [revision] = cluster.all(REVISIONS)
        assert pod["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "web-2",
            "apps.kubernetes.io/pod-index": "2",
            "controller-revision-hash": revision["metadata"]["name"],
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-2", "web")
        assert "create Pod web-0 in StatefulSet web successful" in told(cluster, "SuccessfulCreate")
        assert status(cluster)["currentRevision"] == status(cluster)["updateRevision"] == revision["metadata"]["name"]


@on_sets
async def test_all_at_once(cluster):
    await cluster.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel"))
    await cluster.until(lambda: cluster.count(PODS) == 3)
    await scale(cluster, 0)
    await cluster.until(lambda: cluster.count(PODS) == 0)


@on_sets
async def test_it_rests_when_it_is_done(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(volumeClaimTemplates=[CLAIM]))
        await cluster.until(lambda: done(cluster))
        await cluster.settle(5)
        before = cluster.server.store.revision
        await cluster.settle(1000)
        assert cluster.server.store.revision == before


@on_sets
async def test_a_number_comes_back_only_when_no_pod_of_that_name_is_there(cluster):
    async with kubelet(cluster, stops_after=25.0) as node:
        await cluster.create(STATEFUL_SETS, stateful(2))
        await cluster.until(lambda: ready(cluster, 2))
        before = cluster.get(PODS, "web-0")["metadata"]["uid"]
        await cluster.delete(PODS, "web-0")
        await cluster.settle(20)
        assert cluster.get(PODS, "web-0")["metadata"]["uid"] == before, "it is still ending"
        await cluster.until(lambda: ready(cluster, 2) and cluster.get(PODS, "web-0")["metadata"]["uid"] != before)
        assert [kind for kind, pod in node.seen if pod["metadata"]["uid"] == before][-1] is ChangeKind.DELETED


@on_sets
async def test_a_pod_that_somebody_else_has_made_keeps_its_name(cluster):
    stranger = {"metadata": {"name": "web-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await cluster.create(PODS, stranger)
    await cluster.create(STATEFUL_SETS, stateful(1))
    await cluster.settle(30)
    assert "ownerReferences" not in cluster.get(PODS, "web-0")["metadata"]
    await cluster.delete(PODS, "web-0", grace=0)
    await cluster.until(lambda: cluster.count(PODS) == 1)
    assert cluster.get(PODS, "web-0")["metadata"]["ownerReferences"][0]["name"] == "web"


@on_sets
async def test_finished_pods_are_replaced(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2))
        await cluster.until(lambda: ready(cluster, 2))
        before = cluster.get(PODS, "web-1")["metadata"]["uid"]
        await cluster.patch(PODS, "web-1", {"status": {"phase": "Failed", "reason": "Terminated"}}, "status")
        await cluster.until(lambda: ready(cluster, 2) and cluster.get(PODS, "web-1")["metadata"]["uid"] != before)


@on_sets
async def test_it_shrinks_from_the_end_one_at_a_time(cluster):
    async with kubelet(cluster, stops_after=5.0) as node:
        await cluster.create(STATEFUL_SETS, stateful(4))
        await cluster.until(lambda: ready(cluster, 4))
        await scale(cluster, 1)
        await cluster.until(lambda: ready(cluster, 1))
        gone = [pod["metadata"]["name"] for kind, pod in node.seen if kind is ChangeKind.DELETED]
        assert gone == ["web-3", "web-2", "web-1"]
        for pods in moments(node):
            assert sum("deletionTimestamp" in pod["metadata"] for pod in pods.values()) <= 1


@on_sets
async def test_ordinals_may_begin_elsewhere(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2, ordinals={"start": 5}))
        await cluster.until(lambda: ready(cluster, 2))
        assert cluster.names(PODS) == ["web-5", "web-6"]
        assert cluster.get(PODS, "web-6")["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "6"
        await cluster.patch(STATEFUL_SETS, "web", {"spec": {"ordinals": {"start": 4}}})
        await cluster.until(lambda: cluster.names(PODS) == ["web-4", "web-5"] and ready(cluster, 2))


# -- updates -----------------------------------------------------------------------------------------------------------


@on_sets
async def test_updates_go_from_the_end_and_wait_for_each(cluster):
    async with kubelet(cluster, ready_after=3.0) as node:
        await cluster.create(STATEFUL_SETS, stateful())
        await cluster.until(lambda: done(cluster))
        await change(cluster, "i:2")
        await cluster.settle(4.5)
        assert images(cluster) == ["i:1", "i:1", "i:2"]
        said = status(cluster)
        assert said["currentRevision"] != said["updateRevision"]
        await cluster.until(lambda: done(cluster))
        assert images(cluster) == ["i:2"] * 3
        gone = [pod["metadata"]["name"] for kind, pod in node.seen if kind is ChangeKind.DELETED]
        assert gone == ["web-2", "web-1", "web-0"]
        assert [one["revision"] for one in cluster.all(REVISIONS)].count(2) == 1


@on_sets
async def test_below_the_partition_everything_stays_as_it_was_even_when_it_comes_back(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful())
        await cluster.until(lambda: done(cluster))
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        below = [cluster.get(PODS, name)["metadata"]["uid"] for name in ("web-0", "web-1")]
        await change(cluster, "i:2", updateStrategy=rolling)
        await cluster.until(lambda: images(cluster)[2:] == ["i:2"] and ready(cluster, 3))
        await cluster.settle(5)
        assert status(cluster)["updatedReplicas"] == 1
        assert status(cluster)["currentReplicas"] == 2
        assert [cluster.get(PODS, name)["metadata"]["uid"] for name in ("web-0", "web-1")] == below
        await cluster.delete(PODS, "web-0")
        await cluster.settle(5)
        await cluster.until(lambda: ready(cluster, 3))
        assert images(cluster) == ["i:1", "i:1", "i:2"]
        await cluster.patch(STATEFUL_SETS, "web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
        await cluster.until(lambda: done(cluster))
        assert images(cluster) == ["i:2"] * 3


@on_sets
async def test_pods_of_a_revision_between_are_replaced_too(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel"))
        await cluster.settle(0.3)
        await cluster.delete(PODS, "web-0", grace=0)
        await change(cluster, "i:2")
        await cluster.settle(0.3)
        assert "i:2" in images(cluster)
        await change(cluster, "i:3")
        await cluster.until(lambda: done(cluster))
        assert images(cluster) == ["i:3"] * 3


@on_sets
async def test_on_delete_waits_for_the_user(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2, updateStrategy={"type": "OnDelete"}))
        await cluster.until(lambda: ready(cluster, 2))
        await change(cluster, "i:2")
        await cluster.settle(20)
        assert images(cluster) == ["i:1", "i:1"]
        await cluster.delete(PODS, "web-0")
        await cluster.until(lambda: images(cluster) == ["i:2", "i:1"])


@on_sets
async def test_several_at_once_if_several_may_be_missing(cluster):
    async with kubelet(cluster, stops_after=5.0) as node:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
        await cluster.create(STATEFUL_SETS, stateful(4, podManagementPolicy="Parallel", updateStrategy=strategy))
        await cluster.until(lambda: done(cluster))
        begun = len(node.seen)
        await change(cluster, "i:2")
        await cluster.settle(0.5)
        assert sum("deletionTimestamp" in pod["metadata"] for pod in cluster.all(PODS)) == 2
        await cluster.until(lambda: done(cluster))
        assert all(sum(map(up, pods.values())) >= 2 for pods in list(moments(node))[begun:])


@on_sets
async def test_going_back_is_a_revision_too_and_old_ones_are_forgotten(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(1, revisionHistoryLimit=1))
        await cluster.until(lambda: done(cluster))
        first = status(cluster)["currentRevision"]
        for image in ("i:2", "i:1"):
            await change(cluster, image)
            await cluster.settle(0.5)
            await cluster.until(lambda: done(cluster))
        assert status(cluster)["currentRevision"] == first
        assert cluster.get(REVISIONS, first)["revision"] == 3
        for image in ("i:3", "i:4"):
            await change(cluster, image)
            await cluster.settle(0.5)
            await cluster.until(lambda: done(cluster))
        await cluster.settle()
        assert sorted(one["revision"] for one in cluster.all(REVISIONS)) == [4, 5]


@on_sets
async def test_a_set_that_is_being_deleted_makes_its_revision_no_more(cluster):
    """Otherwise the garbage collector and the set would delete and make it for ever, while the set waits for its pods."""
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(1))
        await cluster.until(lambda: done(cluster))
        await cluster.delete(STATEFUL_SETS, "web", propagation="Foreground")
        [revision] = cluster.names(REVISIONS)
        await cluster.delete(REVISIONS, revision)
        await cluster.settle()
        assert cluster.names(REVISIONS) == []


@on_sets
async def test_minimum_seconds_of_readiness_hold_the_next_one_back(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2, minReadySeconds=30))
        await cluster.settle(20)
        assert cluster.names(PODS) == ["web-0"]
        assert (status(cluster)["readyReplicas"], status(cluster)["availableReplicas"]) == (1, 0)
        await cluster.until(lambda: ready(cluster, 2))


# -- claims ------------------------------------------------------------------------------------------------------------


@on_sets
async def test_each_number_has_its_claims_for_ever(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2, volumeClaimTemplates=[CLAIM]))
        await cluster.until(lambda: ready(cluster, 2))
        assert claims(cluster) == {"data-web-0": [], "data-web-1": []}
        assert cluster.get(CLAIMS, "data-web-0")["metadata"]["labels"] == {"app": "web"}
        [volume] = [one for one in cluster.get(PODS, "web-1")["spec"]["volumes"] if one["name"] == "data"]
        assert volume["persistentVolumeClaim"] == {"claimName": "data-web-1"}
        await scale(cluster, 0)
        await cluster.until(lambda: cluster.count(PODS) == 0)
        assert len(claims(cluster)) == 2


@on_sets
async def test_claims_that_go_with_the_set_or_with_a_number(cluster):
    async with kubelet(cluster, stops_after=5.0):
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        spec = {"volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
        await cluster.create(STATEFUL_SETS, stateful(2, **spec))
        await cluster.until(lambda: ready(cluster, 2))
        await cluster.settle()
        assert claims(cluster) == {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]}
        await scale(cluster, 1)
        await cluster.settle(2)
        assert claims(cluster) == {"data-web-0": ["StatefulSet"], "data-web-1": ["Pod"]}
        await cluster.until(lambda: cluster.count(PODS) == 1)
        await scale(cluster, 2)
        await cluster.settle(20)
        assert cluster.count(PODS) == 1, "the claim goes with the pod that is gone"
        await cluster.delete(CLAIMS, "data-web-1")
        await cluster.patch(CLAIMS, "data-web-1", {"metadata": {"finalizers": None}})
        await cluster.until(lambda: ready(cluster, 2))
        await cluster.patch(
            STATEFUL_SETS, "web", {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}
        )
        await cluster.until(lambda: set(map(tuple, claims(cluster).values())) == {()})


# -- adoption ----------------------------------------------------------------------------------------------------------


@on_sets
async def test_orphans_are_adopted_and_pods_that_do_not_match_any_more_released(cluster):
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, stateful(2))
        await cluster.until(lambda: ready(cluster, 2))
        before = cluster.get(PODS, "web-1")["metadata"]["uid"]
        await cluster.delete(STATEFUL_SETS, "web", propagation="Orphan")
        await cluster.patch(STATEFUL_SETS, "web", {"metadata": {"finalizers": None}})
        for pod in cluster.names(PODS):
            await cluster.patch(PODS, pod, {"metadata": {"ownerReferences": None}})
        for revision in cluster.names(REVISIONS):
            await cluster.patch(REVISIONS, revision, {"metadata": {"ownerReferences": None}})
        await cluster.create(STATEFUL_SETS, stateful(2))
        await cluster.until(lambda: ready(cluster, 2))
        assert cluster.get(PODS, "web-1")["metadata"]["uid"] == before
        assert cluster.count(REVISIONS) == 1
        await cluster.patch(PODS, "web-1", {"metadata": {"labels": {"app": "other"}}})
        await cluster.until(lambda: not cluster.get(PODS, "web-1")["metadata"].get("ownerReferences"))


@settings(max_examples=12, deadline=None)
@given(
    policy=st.sampled_from(["OrderedReady", "Parallel"]),
    changes=st.lists(
        st.one_of(
            st.tuples(st.just("scale"), st.integers(0, 4)),
            st.tuples(st.just("image"), st.sampled_from(["i:1", "i:2", "i:3"])),
            st.tuples(st.just("delete"), st.integers(0, 3)),
            st.tuples(st.just("wait"), st.integers(1, 15)),
        ),
        max_size=8,
    ),
    stop=st.integers(1, 20),
)
def test_two_of_one_identity_never_exist_at_once(policy, changes, stop):
    @on_cluster(StatefulSetController())
    async def scenario(cluster):
        async with kubelet(cluster, stops_after=lambda _: cluster.random.uniform(0.1, stop)) as node:
            await cluster.create(STATEFUL_SETS, stateful(3, podManagementPolicy=policy))
            for what, value in changes:
                await cluster.settle(0.3)
                if what == "scale":
                    await scale(cluster, value)
                elif what == "image":
                    await change(cluster, value)
                elif what == "delete" and cluster.get(PODS, f"web-{value}"):
                    await cluster.delete(PODS, f"web-{value}")
                elif what == "wait":
                    await cluster.settle(value)
            await cluster.settle(0.5)
            await cluster.until(lambda: done(cluster))
            present = {}
            for kind, pod in node.seen:
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                assert present.setdefault(name, uid) == uid
                if kind is ChangeKind.DELETED:
                    del present[name]

    scenario()
