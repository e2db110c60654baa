"""EvictionRequests in the lab, made with the real kubectl, for a pod that the provider http guards."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.guard.guarded_jobs import GuardedJobs, wait

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("eviction-requests")]


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

    def forget(self):
        """As at the beginning: the application is not ready to lose its pod."""
        (self.books / "ready").unlink(missing_ok=True)
        (self.books / "calls").unlink(missing_ok=True)
        wait(lambda: self.read("statefulset jobs")["status"].get("readyReplicas") == 1, "pod")

    def said(self, name):
        """The state of the guard, and its message."""
        status = self.read(f"evictions.lifecycle.k8s.io {name}")["status"]
        [state] = [one["state"] for one in status["targetResponders"] if one["name"] == "lastcall.dev/guard"]
        [progress] = [one for one in status["responders"] if one["name"] == "lastcall.dev/guard"]
        return state, progress.get("message", "")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    responder = ("get mutatingadmissionpolicybindings -o name", "responder")
    with Cluster(tmp_path_factory.mktemp("lab")).running(responder) as cluster:
        yield cluster


def test_a_guarded_pod_is_held_told_of_a_withdrawal_and_evicted_when_it_is_ready(cluster):
    cluster.forget()
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


def drain(cluster):
    """The program, under way."""
    program, options = str(Path(sys.executable).parent / "lastcall"), ["--ignore-daemonsets", "--eviction-requests"]
    environment = os.environ | {"KUBECONFIG": str(cluster.lab.kubeconfig)}
    with (cluster.books / "drain").open("wb") as file:
        return subprocess.Popen([program, "drain", "lab-1", *options], stdout=file, stderr=file, env=environment)


def end(run):
    if run.poll() is None:
        run.send_signal(signal.SIGINT)
    return run.wait(100)


def test_a_drain_requests_the_eviction_withdraws_at_ctrl_c_and_goes_on(cluster):
    cluster.forget()
    pod, said = cluster.pod(), cluster.books / "drain"
    request = f"evictionrequest lastcall.dev.drain-{pod['metadata']['uid']}"
    run = drain(cluster)
    try:
        wait(lambda: "responder lastcall.dev/guard: " in said.read_text(), "answer of the guard")
        wait(lambda: "moves its jobs (40 % done" in said.read_text(), "progress")
        assert cluster.read(request)["spec"]["requester"] == "lastcall.dev/drain"
        [eviction] = cluster.read("evictions.lifecycle.k8s.io")["items"]
        assert cluster.said(eviction["metadata"]["name"])[0] == "Active"
    finally:
        assert end(run) == 130
    assert cluster.read(request)["spec"]["intent"] == "Withdrawn"
    wait(lambda: "cancel" in cluster.calls(), "cancellation in the application")
    assert "deletionTimestamp" not in cluster.pod()["metadata"]

    run = drain(cluster)
    try:
        wait(lambda: cluster.read(request)["spec"]["intent"] == "Eviction", "request")
        wait(lambda: cluster.calls().count("prepare") == 2, "preparation")
        (cluster.books / "ready").touch()
        assert run.wait(100) == 0
    finally:
        end(run)
    assert "pod/jobs-0 evicted" in said.read_text()
    assert "node/lab-1 drained" in said.read_text()
    wait(lambda: "No resources found" in cluster.kubectl("get evictionrequests"), "garbage collection")
    assert "uncordoned" in cluster.kubectl("uncordon lab-1")
