"""StatefulSets, DaemonSets and Jobs whose pods or claims the API server refuses: events, and no conditions."""

from support.lab.controller_cluster import on_cluster
from support.lab.small_kubelets import kubelet
from support.lab.workloads import refuse, template, told, workload

from lastcall.adapters.kube.resources import CLAIMS, DAEMON_SETS, EVENTS, JOBS, NODES, PODS, STATEFUL_SETS
from lastcall_lab.controllers.workloads.daemon_sets import DaemonSetController
from lastcall_lab.controllers.workloads.jobs import JobController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SET = workload(replicas=1, serviceName="web", volumeClaimTemplates=[CLAIM])
JOB = {"metadata": {"name": "web"}, "spec": {"template": template(restartPolicy="Never")}}


def times(cluster, reason):
    """How often it was told."""
    return sum(event["count"] for event in cluster.all(EVENTS) if event["reason"] == reason)


@on_cluster(StatefulSetController())
async def test_a_stateful_set_tells_it_by_an_event_and_goes_on_when_it_may(cluster):
    allow = refuse(cluster, "pods", "not today")
    async with kubelet(cluster):
        await cluster.create(STATEFUL_SETS, SET)
        await cluster.until(lambda: times(cluster, "FailedCreate") >= 3)
        [why] = told(cluster, "FailedCreate")
        assert why.startswith("create Pod web-0 in StatefulSet web failed error: ")
        assert why.endswith(": not today")
        status = cluster.get(STATEFUL_SETS, "web")["status"]
        assert (status["replicas"], status["observedGeneration"]) == (0, 1)
        assert "conditions" not in status
        assert cluster.names(CLAIMS) == ["data-web-0"], "they come before the pod"
        allow()
        await cluster.until(lambda: cluster.get(STATEFUL_SETS, "web")["status"].get("readyReplicas") == 1)


@on_cluster(StatefulSetController())
async def test_a_pod_is_not_made_without_its_claim(cluster):
    allow = refuse(cluster, "persistentvolumeclaims", "not today")
    await cluster.create(STATEFUL_SETS, SET)
    await cluster.until(lambda: told(cluster, "FailedCreate"))
    [why] = told(cluster, "FailedCreate")
    assert why.startswith("create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ")
    assert cluster.names(PODS) == []
    allow()
    await cluster.until(lambda: cluster.names(PODS) == ["web-0"])


@on_cluster(DaemonSetController())
async def test_a_daemon_set_tells_it_by_an_event(cluster):
    for name in ("n1", "n2"):
        await cluster.create(NODES, {"metadata": {"name": name}}, namespace="")
        await cluster.patch(NODES, name, {"spec": {"taints": []}}, namespace="")
    allow = refuse(cluster, "pods", "not today")
    await cluster.create(DAEMON_SETS, workload())
    await cluster.until(lambda: times(cluster, "FailedCreate") >= 3)
    assert all(why.startswith("Error creating: ") for why in told(cluster, "FailedCreate"))
    status = cluster.get(DAEMON_SETS, "web")["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"], status["numberUnavailable"]) == (
        2,
        0,
        2,
    )
    assert "conditions" not in status
    allow()
    await cluster.until(lambda: cluster.count(PODS) == 2)


@on_cluster(JobController())
async def test_a_job_tries_again_after_a_second_and_ever_later_up_to_a_minute(cluster):
    allow = refuse(cluster, "pods", "not today")
    await cluster.create(JOBS, JOB)
    await cluster.settle(66)
    assert times(cluster, "FailedCreate") == 7, "at once, and after 1, 3, 7, 15, 31 and 63 seconds"
    await cluster.settle(120)
    assert times(cluster, "FailedCreate") == 9
    assert all(why.startswith("Error creating: ") for why in told(cluster, "FailedCreate"))
    status = cluster.get(JOBS, "web")["status"]
    assert status["startTime"]
    assert not status.get("active")
    assert "conditions" not in status
    allow()
    await cluster.until(lambda: cluster.count(PODS) == 1, 61)
