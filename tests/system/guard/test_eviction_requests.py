"""EvictionRequests in the lab, made with the real kubectl, for a pod that the provider http guards."""

import json
import sys
import time

import pytest
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import guarded_namespace_objects

pytestmark = pytest.mark.timeout(240)

APPLICATION = r"""
import http.server, json, os, pathlib, urllib.parse
here = pathlib.Path(os.environ["BOOKS"])

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        question = urllib.parse.urlsplit(self.path).path.strip("/")
        with (here / "calls").open("a") as calls:
            calls.write(question + "\n")
        state = "ready" if (here / "ready").exists() else "preparing"
        body = json.dumps({"healthy": True, "state": state, "percent": 40, "message": "moves its jobs"}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = answer
    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer((os.environ["POD_IP"], 8080), Handler).serve_forever()
"""
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "GuardPolicy",
    "metadata": {"name": "jobs"},
    "spec": {"selector": {"matchLabels": {"app": "jobs"}}, "provider": {"http": {"port": 8080, "reversible": True}}},
}


def stateful_set(books):
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": "jobs",
        "image": "none",
        "command": [sys.executable, "-c", APPLICATION],
        "env": [{"name": "BOOKS", "value": str(books)}, address],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    labels = {"app": "jobs"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "jobs"},
        "spec": {
            "serviceName": "jobs",
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def request(name, pod):
    target = {"pod": {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}
    return {
        "apiVersion": "lifecycle.k8s.io/v1alpha1",
        "kind": "EvictionRequest",
        "metadata": {"name": name},
        "spec": {"target": target, "requester": "acme.io/drain", "intent": "Eviction"},
    }


class Cluster:
    """The lab with a guard, and kubectl."""

    def __init__(self, directory):
        self.books = directory / "books"
        self.books.mkdir()
        serve = "--runtime-config=lifecycle.k8s.io/v1alpha1=true"
        self.lab = LabProcess(directory / "lab", "--nodes=1", "--guard", serve)

    def kubectl(self, line, obj=None):
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def read(self, what):
        return json.loads(self.kubectl(f"get {what} -o json"))

    def pod(self):
        found = self.read("pods")["items"]
        return found[0] if found else None

    def conditions(self, what):
        return {
            one["type"]: one["reason"]
            for one in self.read(what)["status"].get("conditions", [])
            if one["status"] == "True"
        }

    def said(self, name):
        """The state of the guard, and its message."""
        status = self.read(f"evictions.lifecycle.k8s.io {name}")["status"]
        [state] = [one["state"] for one in status["targetResponders"] if one["name"] == "lastcall.dev/guard"]
        [progress] = [one for one in status["responders"] if one["name"] == "lastcall.dev/guard"]
        return state, progress.get("message", "")

    def calls(self):
        return (self.books / "calls").read_text().split()


def wait(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} in {seconds} s"
        time.sleep(0.3)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    try:
        found.lab.start()
        wait(lambda: "guardpolicies" in found.kubectl("get crd -o name"), "the guard's objects")
        wait(lambda: "lastcall-guard-releaser" in found.kubectl("get clusterroles -o name"), "the guard's roles")
        wait(lambda: "responder" in found.kubectl("get mutatingadmissionpolicybindings -o name"), "the guard's policy")
        for obj in (*guarded_namespace_objects("default"), POLICY, stateful_set(found.books)):
            said = found.kubectl("apply -f -", obj)
            assert "created" in said or "configured" in said, said
        wait(lambda: found.read("statefulset jobs")["status"].get("readyReplicas") == 1, "pod")
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
