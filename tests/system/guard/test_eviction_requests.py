"""EvictionRequests in the lab, made with the real kubectl, for a pod that the provider http guards."""

import pytest
from support.guard.guarded_jobs import GuardedJobs, wait

pytestmark = pytest.mark.timeout(240)


def request(name, pod):
    target = {"pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}
    return {
        "apiVersion": "lifecycle.k8s.io/v1alpha1",
        "kind": "EvictionRequest",
        "metadata": {"name": name},
        "spec": {"target": target, "requester": "acme.io/drain", "intent": "Eviction"},
    }


class Cluster(GuardedJobs):
    """With EvictionRequests."""

    def __init__(self, directory):
        super().__init__(directory, "--runtime-config=lifecycle.k8s.io/v1alpha1=true")

    def said(self, name):
        """The state of the guard, and its message."""
        status = self.read(f"evictions.lifecycle.k8s.io {name}")["status"]
        [state] = [one["state"] for one in status["targetResponders"] if one["name"] == "lastcall.dev/guard"]
        [progress] = [one for one in status["responders"] if one["name"] == "lastcall.dev/guard"]
        return state, progress.get("message", "")


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    try:
        found.start(("get mutatingadmissionpolicybindings -o name", "responder"))
        yield found
    finally:
        found.lab.end()


def test_a_guarded_pod_is_held_told_of_a_withdrawal_and_evicted_when_it_is_ready(cluster):
    pod = cluster.pod()
    assert pod["spec"]["evictionResponders"] == [{"name": "lastcall.dev/guard", "priority": 10001}]
    assert "created" in cluster.kubectl("create -f -", request("first", pod))
    wait(lambda: "moves its jobs (40 % done" in cluster.kubectl("get evictions.lifecycle.k8s.io -o json"), "progress")
    assert cluster.said("pod-1-jobs-0")[0] == "Active"
    assert "deletionTimestamp" not in cluster.pod()["metadata"]

    cluster.kubectl('patch evictionrequest first --type=merge -p {"spec":{"intent":"Withdrawn"}}')
    wait(lambda: "cancel" in cluster.calls(), "cancellation in the application")
    assert cluster.said("pod-1-jobs-0")[0] == "Canceled"
    assert cluster.conditions("evictionrequest first") == {"Failed": "CanceledDueToNoRequesters"}
    assert cluster.pod()["metadata"]["uid"] == pod["metadata"]["uid"]

    assert "created" in cluster.kubectl("create -f -", request("second", pod))
    wait(lambda: cluster.calls().count("prepare") == 2, "preparation")
    assert "deletionTimestamp" not in cluster.pod()["metadata"]
    (cluster.books / "ready").touch()
    wait(lambda: cluster.conditions("evictionrequest second") == {"TargetEvicted": "PodDeleted"}, "eviction")
    assert cluster.said("pod-2-jobs-0") == ("Completed", "the application is ready")

    cluster.kubectl("delete evictionrequest first second")
    wait(lambda: "No resources found" in cluster.kubectl("get evictions.lifecycle.k8s.io"), "garbage collection")
