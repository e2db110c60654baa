"""A StatefulSet of real servers on three nodes of a lab, with or without a guard, and how its pods are treated."""

import base64
import json
import os
import signal
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import yaml
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import guarded_namespace_objects
from lastcall.names import GUARD_READY


def guard_policy(name, provider):
    """A GuardPolicy for the pods with the label ``app``."""
    return {
        "apiVersion": "lastcall.dev/v1alpha1",
        "kind": "GuardPolicy",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "provider": {provider: {}}},
    }


def wait(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what if isinstance(what, str) else what()} in {seconds} s"
        time.sleep(0.2)


RUN = r"""
run() {
  "$@" &
  child=$!
  trap 'while [ -e "$SHARED/slow" ]; do sleep 0.1; done; kill -TERM $child' TERM
  while kill -0 $child 2>/dev/null; do wait $child || true; done
}
"""
"""Bash: a program that gets SIGTERM late while there is the file ``slow``, as one that first takes its leave elsewhere."""


class GuardedLab:
    """``name`` is that of the StatefulSet, of its label ``app``, of its GuardPolicy, and of its provider."""

    name = ""

    def __init__(self, directory, *, guarded):
        self.shared = directory
        """A directory that the pods know as SHARED."""
        self.guarded = guarded
        self.lab = LabProcess(directory / "lab", "--nodes=3", *(["--guard"] if guarded else []))
        self.frozen = []
        self._reading = None

    def start(self, *objects):
        """Applies the objects, and waits until all members are there and, if it is wanted, a guard leads."""
        self.lab.start()
        if self.guarded:
            wait(lambda: "guardpolicies" in self("get crd -o name"), "the guard's objects")
            wait(lambda: "lastcall-guard-releaser" in self("get clusterroles -o name"), "the guard's roles")
            for obj in [*guarded_namespace_objects("default"), *self.policies()]:
                self("apply -f -", obj)
        for obj in objects:
            self("apply -f -", obj)
        wait(self.is_whole, "all members", 180)
        wait(lambda: self.guarded is False or "nobody" not in self.guard_leader(), "a guard that leads")
        return self

    def end(self):
        self.thaw()
        self.lab.end()

    def policies(self):
        """What is applied of the guard's."""
        return [guard_policy(self.name, self.name)]

    def __call__(self, line, obj=None):
        """What kubectl prints, errors too."""
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def read(self, path):
        """An object, or the items of a list, as the API server has them now; None if there is none.

        kubectl is for what people do: it takes a hundred times as much CPU.
        """
        if self._reading is None:
            config = yaml.safe_load(self.lab.kubeconfig.read_text())
            [cluster], [user] = [one["cluster"] for one in config["clusters"]], [one["user"] for one in config["users"]]
            trust = base64.b64decode(cluster["certificate-authority-data"]).decode()
            self._reading = cluster["server"], user["token"], ssl.create_default_context(cadata=trust)
        server, token, context = self._reading
        request = urllib.request.Request(f"{server}{path}", headers={"authorization": f"Bearer {token}"})  # noqa: S310 - to the lab
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310 - the same
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
                return None
        return found["items"] if found["kind"].endswith("List") else found

    # -- the application -----------------------------------------------------------------------------------------------

    def is_whole(self):
        """Whether all members are there, and one leads."""
        raise NotImplementedError

    def leading_pod(self):
        """The name of the pod that takes the writes."""
        raise NotImplementedError

    def lead_by(self, name):
        """Has this pod lead, where an application can be told so; otherwise whoever leads goes on."""

    def clear(self):
        """Removes what clients have written, if a replacement has to copy it: the next state does not need it."""

    def replica_pods(self):
        """The names of the others."""
        leader = self.leading_pod()
        return [name for name in self.pods() if name != leader]

    def count_ready(self, name=""):
        """How many pods of a StatefulSet are ready."""
        found = self.read(f"/apis/apps/v1/namespaces/default/statefulsets/{name or self.name}")
        return found.get("status", {}).get("readyReplicas", 0)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def guard_leader(self):
        lease = self.read("/apis/coordination.k8s.io/v1/namespaces/lastcall-system/leases/lastcall-guard")
        return lease["spec"].get("holderIdentity") or "nobody"

    def pods(self, name=""):
        """The pods of a StatefulSet by name."""
        found = self.read(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{name or self.name}")
        return {one["metadata"]["name"]: one for one in found}

    def find(self, name):
        """One pod; None if there is none."""
        return self.read(f"/api/v1/namespaces/default/pods/{name}")

    def held(self, policy=""):
        """What the policy says of each held pod."""
        if not self.guarded:
            return {}
        found = self.read(f"/apis/lastcall.dev/v1alpha1/namespaces/default/guardpolicies/{policy or self.name}")
        status = found.get("status", {})
        return {one["name"]: one for one in status.get("pods", []) if one["state"] != "Released"}

    def guard_condition(self, name):
        """What the guard says on the pod; None if it says nothing."""
        pod = self.find(name) or {"status": {}}
        found = pod["status"].get("conditions", ())
        return next((one for one in found if one["type"] == GUARD_READY), None)

    def told_about(self, reason):
        """The kind and name of what Events of this reason are about."""
        found = self.read("/api/v1/namespaces/default/events")
        about = [one["involvedObject"] for one in found if one["reason"] == reason]
        return {(one["kind"], one["name"]) for one in about}

    def delete_until_gone(self, name, options="", seconds=90):
        """As a person who asks again: what kubectl said each time."""
        uid, said = self.find(name)["metadata"]["uid"], []
        end = time.monotonic() + seconds
        while (pod := self.find(name)) and pod["metadata"]["uid"] == uid:
            assert time.monotonic() < end, said
            if "deletionTimestamp" not in pod["metadata"]:
                said.append(self(f"delete pod {name} --wait=false {options}"))
            time.sleep(1)
        return said

    def slow_down(self, wanted):
        """Whether the pods' ends take longer than anybody waits (``RUN``), from now on."""
        if wanted:
            (self.shared / "slow").touch()
        else:
            (self.shared / "slow").unlink(missing_ok=True)

    # -- processes -----------------------------------------------------------------------------------------------------

    def freeze(self, *names):
        """SIGSTOP to all processes of these pods."""
        for name in names:
            uid = self.find(name)["metadata"]["uid"]
            found = find_pod_processes(uid)
            assert found, f"no process of {name}"
            for number in found:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGSTOP)
            self.frozen += found

    def thaw(self):
        for number in self.frozen:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)
        self.frozen.clear()


def find_pod_processes(uid):
    """The processes of a pod of the lab, parents first: all below the shims of its containers."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes()
            if b"lastcall-shim" in words and f"_{uid}/".encode() in words:
                found += _find_descendants(int(path.name))
    return found


def _find_descendants(number):
    children = []
    with suppress(OSError):
        for thread in Path(f"/proc/{number}/task").iterdir():
            children += map(int, (thread / "children").read_text().split())
    return [*children, *(one for child in children for one in _find_descendants(child))]
