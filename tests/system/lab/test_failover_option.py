"""A node whose plug is pulled: with ``lab up --failover`` its StatefulSet runs elsewhere, by the real kubectl's words."""

import json
import time

import pytest
from support.common.libraries import need_library
from support.kube.kubectl import Kubectl
from support.lab.up_process import LabProcess, run

pytestmark = pytest.mark.timeout(450)
need_library("sushy", "the extra redfish is not installed")

DB = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "db"},
    "spec": {
        "replicas": 1,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "containers": [
                    {
                        "name": "db",
                        "image": "busybox",
                        "command": ["sh", "-c", "while true; do echo $HOSTNAME >> /data/log; sleep 0.2; done"],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }
                ]
            },
        },
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
    },
}
QUICK = {"spec": {"suspectAfter": "21s"}}


class Cluster:
    """A lab with the controller, and the real kubectl."""

    def __init__(self, directory):
        self.process = LabProcess(directory, "--nodes=3", "--failover")
        self.process.start()
        home = directory / "home"
        home.mkdir(exist_ok=True)
        self.kubectl = Kubectl(self.process.kubeconfig, home)
        self.where = f"--kubeconfig={self.process.kubeconfig}"

    def read(self, what):
        return json.loads(self.kubectl(f"get {what} -o json"))

    def until(self, what, check, seconds=180):
        end = time.monotonic() + seconds
        while True:
            try:
                obj = self.read(what)
                if check(obj):
                    return obj
            except AssertionError:  # kubectl has not found it
                obj = None
            assert time.monotonic() < end, (obj, self.process.said)
            time.sleep(0.3)

    def power(self, node, to):
        out, said, code = run("power", node, to, self.where)
        assert code == 0, said


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path / "lab")
    yield made
    made.process.end()


def ready(pod):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def taints(node):
    return [taint["key"] for taint in node["spec"].get("taints", ())]


def test_a_stateful_set_fails_over_and_the_node_comes_back(cluster):
    cluster.until("fencepolicies.lastcall.dev lab", lambda policy: policy["spec"]["mode"] == "Enforce")
    cluster.kubectl("patch fencepolicies.lastcall.dev lab --type=merge -p", json.dumps(QUICK))
    cluster.kubectl("apply -f -", given=DB)
    before = cluster.until("pod db-0", ready)
    node = before["spec"]["nodeName"]
    cluster.power(node, "off")

    after = cluster.until("pod db-0", lambda pod: pod["metadata"]["uid"] != before["metadata"]["uid"] and ready(pod))
    assert after["spec"]["nodeName"] != node
    assert "node.kubernetes.io/out-of-service" in taints(cluster.read(f"node {node}"))
    assert {one["spec"]["nodeName"] for one in cluster.read("volumeattachments")["items"]} == {
        after["spec"]["nodeName"]
    }
    said = cluster.kubectl("get events -A -o jsonpath={.items[*].reason}").split()
    assert {"FailoverBegun", "FenceOff"} <= set(said)

    cluster.power(node, "on")
    back = cluster.until(f"node {node}", lambda one: ready(one) and not taints(one))
    assert "lastcall.dev/failover" not in back["metadata"].get("annotations", {})
    assert cluster.read("pod db-0")["metadata"]["uid"] == after["metadata"]["uid"], "it stays where it is"
