"""A rollout of a guarded TiKV in the lab: a StatefulSet whose stores are moved empty of leaders one after the other.

The pods of TiKV tell by a file that they run, and the Placement Driver is emulated at the addresses of its pods. The judge
looks at its books whenever a store goes.
"""

import json
import threading
import time

import pytest
from support.guard.placement_driver_servers import LABELS, PlacementDriverServers, Store
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

from lastcall.manifests.guard import guarded_namespace_objects

pytestmark = pytest.mark.timeout(270)
PORT = 2379
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "GuardPolicy",
    "metadata": {"name": "tikv"},
    "spec": {
        "selector": {"matchLabels": {"app": "tikv"}},
        "provider": {"tikv": {"pdSelector": {"matchLabels": LABELS}, "pdPort": PORT}},
    },
}
STORE = 'trap "rm -f $STORES/$POD_NAME; exit 0" TERM; touch $STORES/$POD_NAME; while :; do sleep 0.1; done'


def stateful_set(name, labels, replicas, command, environment=()):
    container = {"name": name, "image": "none", "command": ["sh", "-c", command], "env": list(environment)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"serviceName": f"{name}-peer", "replicas": replicas, "selector": {"matchLabels": labels}}
    spec |= {"template": template, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


class GuardedTikv:
    """Three stores, one server of the Placement Driver, and a judge."""

    def __init__(self, directory):
        self.stores = directory / "stores"
        self.stores.mkdir()
        self.lab = LabProcess(directory / "lab", "--nodes=3", "--guard")
        self.driver = None
        self.offences, self.departures = [], []
        self._stop = threading.Event()
        self._judge = threading.Thread(target=self._judge_all)

    def start(self):
        self.lab.start()
        wait(lambda: "guardpolicies" in self("get crd -o name"), "the guard's objects")
        wait(lambda: "lastcall-guard-releaser" in self("get clusterroles -o name"), "the guard's roles")
        for obj in (*guarded_namespace_objects("default"), POLICY):
            self("apply -f -", obj)
        environment = [
            {"name": "STORES", "value": str(self.stores)},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
        self("apply -f -", stateful_set("pd", LABELS, 1, "exec sleep infinity"))
        self("apply -f -", stateful_set("tikv", {"app": "tikv"}, 3, STORE, environment))
        wait(lambda: self.is_rolled_out("pd", 1) and self.is_rolled_out("tikv", 3), "all pods")
        address = self("get pod pd-0 -o jsonpath={.status.podIP}")
        self.driver = PlacementDriverServers(PORT, [address])
        for number, store in enumerate(self.driver.stores.values()):
            store.address = f"tikv-{number}.tikv-peer.default.svc:20160"
        self._judge.start()
        return self

    def __call__(self, line, obj=None):
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def end(self):
        self._stop.set()
        if self.driver:
            self._judge.join(30)
            self.driver.end()
        self.lab.end()

    def is_rolled_out(self, name, replicas):
        status = json.loads(self(f"get statefulset {name} -o json")).get("status", {})
        return status.get("readyReplicas") == replicas

    def uids(self):
        found = json.loads(self("get pods -l app=tikv -o json"))["items"]
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in found}

    def held(self):
        status = json.loads(self("get guardpolicy tikv -o json")).get("status", {})
        return [one for one in status.get("pods", []) if one["state"] != "Released"]

    def _judge_all(self):
        """A store is up while its file is there; when it goes it must have no leaders, and be the only one."""
        while not self._stop.wait(0.02):
            with self.driver.lock:
                for store in self.driver.stores.values():
                    self._judge_one(store)

    def _judge_one(self, store: Store):
        name = store.address.partition(".")[0]
        is_up = (self.stores / name).exists()
        if store.state == "Up" and not is_up:
            self.departures.append(name)
            led = sum(one.leader == store.id for one in self.driver.regions)
            down = [one.address for one in self.driver.stores.values() if one.state != "Up"]
            if led or down:
                self.offences.append(f"{name} went with {led} leaders, while {down} were down")
        store.state = "Up" if is_up else "Disconnected"


def wait(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} in {seconds} s"
        time.sleep(0.2)


@pytest.fixture
def tikv(tmp_path):
    made = GuardedTikv(tmp_path)
    yield made
    made.end()


def test_a_rollout_takes_one_store_after_the_other_and_none_with_leaders(tikv):
    """While the leaders cannot move the rollout waits, and a person can see why; nothing is forced."""
    tikv.start()
    before = tikv.uids()
    tikv.driver.batch = 0
    tikv("rollout restart statefulset tikv")
    wait(lambda: any("leaders" in one.get("message", "") for one in tikv.held()), "word of the leaders")
    [held] = tikv.held()
    assert (held["name"], held["state"], held["message"]) == ("tikv-2", "Preparing", "store 3 has 4 leaders")
    assert tikv.driver.evicted == {3}
    assert tikv.uids() == before
    tikv.driver.batch = 1
    said = tikv("rollout status statefulset tikv --timeout=180s")
    assert "complete" in said or "successfully" in said
    wait(lambda: tikv.driver.evicted == set(), "end of the last eviction")
    assert tikv.departures == ["tikv-2", "tikv-1", "tikv-0"]
    assert tikv.offences == []
    assert not set(before.values()) & set(tikv.uids().values())
    reasons = tikv("get events -o jsonpath={.items[*].reason}")
    assert "PreparingForDeletion" in reasons
    assert "ReadyForDeletion" in reasons
