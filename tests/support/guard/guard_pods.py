"""A lab with the guard in two pods, as ``lastcall manifests guard`` describes them, and one guarded pod that is held."""

import base64
import contextlib
import json
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import yaml
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess, run

from lastcall.manifests.guard import GuardChoices, guard_objects, guarded_namespace_objects
from lastcall.manifests.guard_webhooks import FAIL

SYSTEM = "lastcall-system"
GUARD = "lastcall-guard"
LOAD = Path(__file__).parents[3] / "bench" / "guard_load.py"
UID = "00000000-0000-0000-0000-000000000000"
"""Stands in a review for its uid, which differs in each."""
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "GuardPolicy",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "db"}}, "provider": {"redis": {}}},
}
"""No Redis answers, so the pod is held for ever."""
POD = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "db", "image": "i", "command": ["sleep", "1h"]}],
    },
}
WORKLOAD = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db", "namespace": "default"},
    "spec": {"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": POD},
}


def guard_manifests(kubeconfig, *, drain_seconds=None):
    """Those of ``lastcall manifests guard``, but for what a pod of the lab cannot have: an image, another user."""
    for obj in guard_objects(GuardChoices(failure_policy=FAIL)):
        if obj["kind"] == "Deployment":
            spec = obj["spec"]["template"]["spec"]
            del spec["securityContext"]
            [container] = spec["containers"]
            container["command"] = [sys.executable, "-m", "lastcall"]
            container["args"].append(f"--kubeconfig={kubeconfig}")
            if drain_seconds is not None:
                container["args"].append(f"--drain-seconds={drain_seconds}")
        yield obj


class GuardPods:
    """The lab, with ``options`` of ``lastcall lab up``; ``drain_seconds`` of the guard's replicas."""

    def __init__(self, directory, *options, drain_seconds=None):
        self.directory = directory
        self.lab = LabProcess(directory / "lab", "--nodes=2", *options)
        self._drain_seconds = drain_seconds

    def start(self, *more):
        """With ``more`` objects, until a guard holds the pod."""
        self.lab.start()
        guard = guard_manifests(self.directory / f"{GUARD}.kubeconfig", drain_seconds=self._drain_seconds)
        for obj in [*more, *guard, *guarded_namespace_objects("default"), WORKLOAD]:
            self("apply -f -", obj)
        self.write_kubeconfig(GUARD)
        self.wait("the kind GuardPolicy", lambda: "db" in self("apply -f -", POLICY))
        self.wait("a guard that holds the pod", lambda: "TooManyRequests" in self.try_delete())
        return self

    def end(self):
        self.lab.end()

    def __call__(self, line, obj=None):
        """What kubectl says, errors too."""
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def wait(self, what, condition, seconds=90):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"no {what} in {seconds} s: {self.describe()}")
            time.sleep(0.2)

    def describe(self):
        """For a failure."""
        return self("get pods -A -o wide"), self.try_delete()

    def try_delete(self):
        """What is said about the deletion of the guarded pod, which is not carried out."""
        return self("delete pod db-0 --dry-run=server --wait=false")

    def webhooks(self):
        found = json.loads(self(f"get validatingwebhookconfiguration {GUARD} -o json"))
        return found.get("webhooks") or []

    def write_kubeconfig(self, account):
        """The access of a ServiceAccount; its path."""
        config = yaml.safe_load(self.lab.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self(f"create token {account} -n {SYSTEM}").strip()}
        path = self.directory / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    # -- replicas ------------------------------------------------------------------------------------------------------

    def uids(self):
        """The uids of the guard's pods."""
        found = json.loads(self(f"get pods -n {SYSTEM} -l app.kubernetes.io/component=guard -o json"))["items"]
        return {one["metadata"]["uid"] for one in found}

    def roll(self):
        """Replaces both replicas, one after the other, until the old ones are gone."""
        before = self.uids()
        self(f"rollout restart deployment {GUARD} -n {SYSTEM}")
        said = self(f"rollout status deployment {GUARD} -n {SYSTEM} --timeout=140s")
        assert "successfully rolled out" in said, said
        self.wait("replicas without the old ones", lambda: not before & self.uids())

    def reach(self):
        """What ``ReviewLoad`` needs: where a node reaches the guard's Service, whom to trust, and what to ask."""
        name = f"{GUARD}.{SYSTEM}.svc"
        self.wait("the node's proxy", self._doors)
        host, _, port = self._doors()[0].rpartition(":")
        client = self.webhooks()[0]["clientConfig"]
        authority = base64.b64decode(client["caBundle"]).decode()
        where = {"host": host, "port": int(port), "name": name, "path": client["service"]["path"]}
        context = ssl.create_default_context(cadata=authority)
        self.wait("a replica behind the node's proxy", lambda: _shakes_hands(host, int(port), name, context))
        return where | {"authority": authority, "body": self._review(), "expect": '"allowed":false'}

    def _doors(self):
        said, _, _ = run("status", f"--kubeconfig={self.lab.kubeconfig}", "-o", "json")
        services = json.loads(said)["nodes"][0]["services"]
        return [one.partition(" at ")[2] for one in services if one.startswith(f"{SYSTEM}/{GUARD} at ")]

    def _review(self, size=8192):
        """Of the guarded pod's DELETE, with so many bytes."""
        found = json.loads(self("get pod db-0 -o json"))
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        resource = {"group": "", "version": "v1", "resource": "pods"}
        request = {"uid": UID, "kind": kind, "resource": resource, "name": "db-0", "namespace": "default"}
        request |= {"operation": "DELETE", "userInfo": {"username": "ann", "groups": ["system:authenticated"]}}
        request |= {"object": None, "oldObject": found, "dryRun": False, "options": {"kind": "DeleteOptions"}}
        whole = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        notes = found["metadata"].setdefault("annotations", {})
        notes["padding"] = ""
        notes["padding"] = "x" * (size - len(json.dumps(whole)))
        return json.dumps(whole)


def _shakes_hands(host, port, name, context):
    """Whether a connection reaches a replica: the proxy learns of them later than the API server."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 3) as made:
        context.wrap_socket(made, server_hostname=name).close()
        return True
    return False


class ReviewLoad:
    """``rate`` reviews a second over kept connections while the context lasts; then ``figures`` of ``guard_load``."""

    def __init__(self, reach, *, rate):
        self._asked = reach | {"rate": rate, "count": 10**6}
        self.figures = None

    def __enter__(self):
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, LOAD], stdin=pipe, stdout=pipe, text=True)
        self._process.stdin.write(json.dumps(self._asked))
        self._process.stdin.close()
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self.figures = json.loads(self._process.stdout.read())
        self._process.wait(60)
        self._process.stdout.close()
