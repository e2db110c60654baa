"""A lab of one node with a guard, and a pod that the provider http guards: it is ready when the test says so."""

import contextlib
import json
import sys
import time

import pytest
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import guarded_namespace_objects

APPLICATION = r"""
import http.server, json, os, pathlib, time, urllib.parse
here = pathlib.Path(os.environ["BOOKS"])

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        question = urllib.parse.urlsplit(self.path).path.strip("/")
        with (here / "calls").open("a") as calls:
            calls.write(question + "\n")
        while question == "cancel" and (here / "hangs").exists():
            time.sleep(0.1)
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


class GuardedJobs:
    """The lab with a guard, and kubectl."""

    def __init__(self, directory, *options):
        self.books = directory / "books"
        self.books.mkdir()
        self.lab = LabProcess(directory / "lab", "--nodes=1", "--guard", *options)

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

    @contextlib.contextmanager
    def running(self, *more):
        """Itself from when it is started, with ``more`` as there, until its lab ends."""
        try:
            self.start(*more)
            yield self
        finally:
            self.lab.end()

    def start(self, *more):
        """Until the guard's objects, and what ``more`` names by a kubectl line and a word of its output, are there."""
        self.lab.start()
        expected = [
            ("get crd -o name", "guardpolicies"),
            ("get clusterroles -o name", "lastcall-guard-releaser"),
            *more,
        ]
        for line, word in expected:
            wait(lambda line=line, word=word: word in self.kubectl(line), word)
        for obj in (*guarded_namespace_objects("default"), POLICY, stateful_set(self.books)):
            said = self.kubectl("apply -f -", obj)
            assert "created" in said or "configured" in said, said
        wait(lambda: self.read("statefulset jobs")["status"].get("readyReplicas") == 1, "pod")

    def calls(self):
        return (self.books / "calls").read_text().split()


@pytest.fixture(name="cluster")
def cluster_of_a_test(tmp_path):
    """One for each test."""
    with GuardedJobs(tmp_path).running() as cluster:
        yield cluster


def wait(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} in {seconds} s"
        time.sleep(0.3)
