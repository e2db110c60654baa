"""Jobs on the lab's API server, in virtual time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import condition, stays, told

from lastcall.adapters.kube.informer import ChangeKind
from lastcall.adapters.kube.resources import JOBS, PODS
from lastcall_lab.controllers.cluster.garbage_collector import GarbageCollector
from lastcall_lab.controllers.objects.served_kinds import ServedKind
from lastcall_lab.controllers.workloads import job_indexes
from lastcall_lab.controllers.workloads.job_pods import TRACKING
from lastcall_lab.controllers.workloads.job_ttl import TTLAfterFinishedController
from lastcall_lab.controllers.workloads.jobs import JobController, JobTimes

on_jobs = on_cluster(JobController())


def job(*, name="work", template=None, **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **(template or {})}
    return {"metadata": {"name": name}, "spec": {**spec, "template": {"spec": pod}}}


def status(cluster, name="work"):
    return cluster.get(JOBS, name)["status"]


def over(cluster):
    found = cluster.get(JOBS, "work")
    return condition(found, "Complete") or condition(found, "Failed")


def exits(code, seconds=1.0):
    return lambda pod: (seconds, code)


def index(pod):
    return int(pod["metadata"]["annotations"][job_indexes.INDEX])


def made(node):
    """The uids of the pods that there were, in order."""
    return list(dict.fromkeys(pod["metadata"]["uid"] for _, pod in node.seen))


# -- success -----------------------------------------------------------------------------------------------------------


@on_jobs
async def test_as_many_successes_as_asked_for_so_many_at_once(cluster):
    async with kubelet(cluster, work=exits(0, 5.0)) as node:
        await cluster.create(JOBS, job(completions=5, parallelism=2))
        await cluster.settle(3)
        assert (status(cluster)["active"], status(cluster)["ready"]) == (2, 2)
        assert all(TRACKING in pod["metadata"]["finalizers"] for pod in cluster.all(PODS))
        await cluster.until(lambda: over(cluster))
        found = status(cluster)
        assert condition(cluster.get(JOBS, "work"), "SuccessCriteriaMet") == ("True", "CompletionsReached")
        assert condition(cluster.get(JOBS, "work"), "Complete") == ("True", "CompletionsReached")
        assert (found["succeeded"], found.get("failed", 0), found.get("active", 0)) == (5, 0, 0)
        assert found["uncountedTerminatedPods"] == {}
        assert found["startTime"] < found["completionTime"]
        assert len(made(node)) == 5
        assert not any(TRACKING in pod["metadata"].get("finalizers", ()) for pod in cluster.all(PODS))
        assert told(cluster, "Completed") == ["Job completed"]


@on_jobs
async def test_a_work_queue_is_done_when_one_has_succeeded_and_all_have_ended(cluster):
    async with kubelet(
        cluster, work=lambda pod: (2.0, 0) if pod["spec"]["nodeName"] == "n1" else (20.0, 0), nodes=["n1", "n2"]
    ):
        await cluster.create(JOBS, job(completions=None, parallelism=3))
        await cluster.settle(15)
        assert not over(cluster)
        await cluster.until(lambda: over(cluster))
        assert status(cluster)["succeeded"] == 3


@on_jobs
async def test_it_rests_when_it_is_over(cluster):
    async with kubelet(cluster, work=exits(0)):
        await cluster.create(JOBS, job(completions=2))
        await cluster.until(lambda: over(cluster))
        await cluster.settle(5)
        before = cluster.server.store.revision
        await cluster.settle(1000)
        assert cluster.server.store.revision == before


# -- failure -----------------------------------------------------------------------------------------------------------


@on_jobs
async def test_failures_are_tried_again_after_pauses_that_double(cluster):
    async with kubelet(cluster, ready_after=0.0, work=exits(1, 0.0)) as node:
        await cluster.create(JOBS, job(backoffLimit=3))
        await cluster.until(lambda: over(cluster))
        found = cluster.get(JOBS, "work")
        assert condition(found, "FailureTarget") == ("True", "BackoffLimitExceeded")
        assert condition(found, "Failed") == ("True", "BackoffLimitExceeded")
        assert found["status"]["failed"] == 4
        assert "completionTime" not in found["status"]
        assert told(cluster, "BackoffLimitExceeded") == ["Job has reached the specified backoff limit"]
        times = [pod["metadata"]["creationTimestamp"] for kind, pod in node.seen if kind is ChangeKind.ADDED]
        seconds = [int(time[14:16]) * 60 + int(time[17:19]) for time in times]
        pauses = [later - sooner for sooner, later in zip(seconds, seconds[1:], strict=False)]
        assert pauses == pytest.approx([10, 20, 40], abs=1)


@on_jobs
async def test_a_deadline_ends_what_runs(cluster):
    async with kubelet(cluster, stops_after=5.0):
        await cluster.create(JOBS, job(completions=2, parallelism=2, activeDeadlineSeconds=30))
        await cluster.settle(31)
        found = cluster.get(JOBS, "work")
        assert condition(found, "FailureTarget") == ("True", "DeadlineExceeded")
        assert condition(found, "Failed") is None, "its pods are still ending"
        assert found["status"]["terminating"] == 2
        await cluster.until(lambda: over(cluster))
        assert status(cluster)["failed"] == 2


def policy(action, **rule):
    return {"rules": [{"action": action, **rule}]}


DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@on_jobs
async def test_disrupted_pods_do_not_count_if_the_policy_says_so(cluster):
    async with kubelet(cluster, stops_after=3.0) as node:
        await cluster.create(JOBS, job(backoffLimit=0, podFailurePolicy=policy("Ignore", **DISRUPTED)))
        await cluster.until(lambda: status(cluster).get("ready") == 1)
        [first] = cluster.names(PODS)
        said = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        conditions = [*cluster.get(PODS, first)["status"]["conditions"], said]
        await cluster.patch(PODS, first, {"status": {"conditions": conditions}}, "status")
        await cluster.delete(PODS, first)
        await cluster.settle(2)
        assert cluster.count(PODS) == 1, "its end is waited for"
        await cluster.until(lambda: cluster.count(PODS) == 1 and cluster.names(PODS) != [first])
        await cluster.settle(2)
        assert status(cluster).get("failed", 0) == 0
        assert not over(cluster)
        assert len(made(node)) == 2


@on_jobs
async def test_an_exit_code_may_fail_the_job_at_once(cluster):
    codes = {"operator": "In", "values": [42]}
    async with kubelet(cluster, work=lambda pod: (1.0, 42) if pod["spec"]["nodeName"] == "n1" else (50.0, 0)):
        await cluster.create(
            JOBS, job(completions=3, parallelism=3, podFailurePolicy=policy("FailJob", onExitCodes=codes))
        )
        await cluster.until(lambda: over(cluster), seconds=40)
        found = cluster.get(JOBS, "work")
        assert condition(found, "Failed") == ("True", "PodFailurePolicy")
        message = found["status"]["conditions"][-1]["message"]
        assert "failed with exit code 42 matching FailJob rule at index 0" in message


@on_jobs
async def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced_at_once(cluster):
    async with kubelet(cluster, stops_after=60.0):
        await cluster.create(JOBS, job())
        await cluster.until(lambda: status(cluster).get("ready") == 1)
        await cluster.delete(PODS, cluster.names(PODS)[0])
        await cluster.settle(15)
        assert cluster.count(PODS) == 2, "after the pause, beside the one that ends"
        assert (status(cluster)["failed"], status(cluster)["terminating"]) == (1, 1)


@on_jobs
async def test_with_the_policy_failed_it_is_replaced_when_it_has_gone(cluster):
    async with kubelet(cluster, stops_after=60.0):
        await cluster.create(JOBS, job(podReplacementPolicy="Failed"))
        await cluster.until(lambda: status(cluster).get("ready") == 1)
        [first] = cluster.names(PODS)
        await cluster.delete(PODS, first)
        await cluster.settle(50)
        assert cluster.names(PODS) == [first]
        assert status(cluster).get("failed", 0) == 0, "it may succeed yet"
        await cluster.settle(40)
        assert cluster.count(PODS) == 1
        assert cluster.names(PODS) != [first]
        assert status(cluster)["failed"] == 1


@on_jobs
async def test_restarts_in_the_pod_count_too(cluster):
    async with kubelet(cluster):
        await cluster.create(JOBS, job(backoffLimit=2, template={"restartPolicy": "OnFailure"}))
        await cluster.until(lambda: status(cluster).get("ready") == 1)
        containers = [{"name": "c", "restartCount": 2, "image": "i", "imageID": "", "ready": True}]
        await cluster.patch(PODS, cluster.names(PODS)[0], {"status": {"containerStatuses": containers}}, "status")
        await cluster.until(lambda: over(cluster))
        assert condition(cluster.get(JOBS, "work"), "Failed") == ("True", "BackoffLimitExceeded")


# -- indexes -----------------------------------------------------------------------------------------------------------


@on_jobs
async def test_each_index_succeeds_once(cluster):
    failures = [2]

    def work(pod):
        return 1.0, int(index(pod) in failures and failures.pop() > 0)

    async with kubelet(cluster, work=work) as node:
        await cluster.create(JOBS, job(completions=4, parallelism=2, completionMode="Indexed"))
        await cluster.until(lambda: cluster.count(PODS) == 2)
        pod = min(cluster.all(PODS), key=index)
        assert pod["metadata"]["name"].startswith("work-0-")
        assert pod["spec"]["hostname"] == "work-0"
        assert pod["metadata"]["labels"][job_indexes.INDEX] == "0"
        variable = pod["spec"]["containers"][0]["env"][0]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{job_indexes.INDEX}']"
        await cluster.until(lambda: over(cluster))
        assert status(cluster)["completedIndexes"] == "0-3"
        begun = sorted(index(pod) for kind, pod in node.seen if kind is ChangeKind.ADDED)
        assert begun == [0, 1, 2, 2, 3]
        assert status(cluster)["failed"] == 1


@on_jobs
async def test_each_index_has_its_own_limit(cluster):
    async with kubelet(cluster, ready_after=0.1, work=lambda pod: (0.1, int(index(pod) == 1))) as node:
        await cluster.create(JOBS, job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1))
        await cluster.until(lambda: over(cluster))
        found = cluster.get(JOBS, "work")
        assert condition(found, "Failed") == ("True", "FailedIndexes")
        assert (found["status"]["completedIndexes"], found["status"]["failedIndexes"]) == ("0,2", "1")
        assert found["status"]["failed"] == 2
        counts = [
            pod["metadata"]["annotations"][job_indexes.FAILURES]
            for kind, pod in node.seen
            if kind is ChangeKind.ADDED and index(pod) == 1
        ]
        assert counts == ["0", "1"]


@on_jobs
async def test_a_success_policy_ends_the_rest(cluster):
    async with kubelet(cluster, work=lambda pod: (1.0, 0) if index(pod) == 0 else (500.0, 0)):
        rules = {"rules": [{"succeededIndexes": "0"}]}
        await cluster.create(JOBS, job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=rules))
        await cluster.until(lambda: over(cluster), seconds=60)
        found = cluster.get(JOBS, "work")
        assert condition(found, "Complete") == ("True", "SuccessPolicy")
        assert found["status"]["completedIndexes"] == "0"


# -- suspension, deletion ----------------------------------------------------------------------------------------------


@on_jobs
async def test_suspended_it_runs_nothing_and_nothing_is_counted(cluster):
    async with kubelet(cluster, stops_after=2.0, work=exits(0, 20.0)):
        await cluster.create(JOBS, job(suspend=True, parallelism=2, completions=2))
        await cluster.settle(5)
        assert cluster.count(PODS) == 0
        assert condition(cluster.get(JOBS, "work"), "Suspended") == ("True", "JobSuspended")
        assert "startTime" not in status(cluster)
        await cluster.patch(JOBS, "work", {"spec": {"suspend": False}})
        await cluster.until(lambda: status(cluster).get("ready") == 2)
        assert condition(cluster.get(JOBS, "work"), "Suspended") == ("False", "JobResumed")
        await cluster.patch(JOBS, "work", {"spec": {"suspend": True}})
        await cluster.until(lambda: cluster.count(PODS) == 0)
        assert status(cluster).get("failed", 0) == 0
        await cluster.patch(JOBS, "work", {"spec": {"suspend": False}})
        await cluster.until(lambda: over(cluster))
        assert status(cluster)["succeeded"] == 2
        assert told(cluster, "Suspended") == ["Job suspended"]


@on_jobs
async def test_fewer_at_once(cluster):
    async with kubelet(cluster, work=exits(0, 30.0)):
        await cluster.create(JOBS, job(parallelism=4, completions=6))
        await cluster.until(lambda: status(cluster).get("ready") == 4)
        await cluster.patch(JOBS, "work", {"spec": {"parallelism": 1}})
        await cluster.until(lambda: status(cluster).get("active") == 1)
        await cluster.settle(3)
        assert cluster.count(PODS) == 1
        assert status(cluster).get("failed", 0) == 0


KINDS = {
    ("batch/v1", "Job"): ServedKind("jobs.batch", namespaced=True),
    ("v1", "Pod"): ServedKind("pods", namespaced=True),
}


@on_cluster(JobController(), TTLAfterFinishedController(), GarbageCollector(KINDS))
async def test_when_its_time_is_up_it_goes_with_its_pods(cluster):
    async with kubelet(cluster, work=exits(0)):
        await cluster.create(JOBS, job(ttlSecondsAfterFinished=60))
        await cluster.until(lambda: over(cluster))
        await cluster.settle(50)
        assert cluster.count(JOBS) == 1
        await cluster.until(lambda: cluster.count(JOBS) == cluster.count(PODS) == 0)


@on_cluster(JobController(), GarbageCollector(KINDS))
async def test_pods_of_a_job_that_was_deleted_are_let_go(cluster):
    async with kubelet(cluster):
        await cluster.create(JOBS, job(completions=2, parallelism=2))
        await cluster.until(lambda: status(cluster).get("ready") == 2)
        await cluster.delete(JOBS, "work", propagation="Background")
        await cluster.until(lambda: cluster.count(PODS) == 0)


@settings(max_examples=15, deadline=None)
@given(
    completions=st.integers(1, 5),
    parallelism=st.integers(1, 3),
    indexed=st.booleans(),
    replacement=st.sampled_from(["Failed", "TerminatingOrFailed"]),
    codes=st.lists(st.integers(0, 1), min_size=1, max_size=6),
    deletions=st.lists(st.integers(1, 8), max_size=3),
    seed=st.integers(0, 99),
)
def test_every_pod_is_counted_once(completions, parallelism, indexed, replacement, codes, deletions, seed):
    @on_cluster(JobController(JobTimes(first_backoff=0.5, longest_backoff=2.0)))
    async def scenario(cluster):
        pending = list(codes)
        delay = cluster.random.uniform

        def work(pod):
            return delay(0.1, 4), pending.pop() if pending else 0

        async with kubelet(cluster, work=work, stops_after=lambda _: delay(0.1, 4)) as node:
            mode = "Indexed" if indexed else "NonIndexed"
            spec = {"completionMode": mode, "podReplacementPolicy": replacement, "backoffLimit": 100}
            await cluster.create(JOBS, job(completions=completions, parallelism=parallelism, **spec))
            for pause in deletions:
                await cluster.settle(pause)
                if names := cluster.names(PODS):
                    await cluster.delete(PODS, names[seed % len(names)])
            await cluster.until(lambda: over(cluster))
            found = status(cluster)
            last = {}
            for _, pod in node.seen:
                last[pod["metadata"]["uid"]] = pod
            phases = [pod["status"]["phase"] for pod in last.values()]
            assert found["succeeded"] == completions
            assert found["succeeded"] + found.get("failed", 0) == len(last), phases
            for pods in _moments(node):
                assert sum(map(stays, pods)) <= parallelism

    scenario()


def _moments(node):
    present = {}
    for kind, pod in node.seen:
        present[pod["metadata"]["uid"]] = pod
        if kind is ChangeKind.DELETED:
            del present[pod["metadata"]["uid"]]
        yield list(present.values())
