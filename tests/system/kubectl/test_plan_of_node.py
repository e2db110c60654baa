"""``lastcall plan --node`` against the lab: what it reads, what it says, and what it says if that fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl, items, kubectl, lab, pod  # noqa: F401  (fixtures)

from lastcall.manifests.daemon_set import agent_config_map

BIN = Path(sys.executable).parent
CONFIG = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n"
CONFIG += "shutdownGracePeriodCriticalPods: 10s\n"
SOCKETS = "/var/lib/kubelet/plugins/csi.test"


class Lastcall(Kubectl):
    """The program in place of kubectl."""

    def _command(self, line, more):
        return [BIN / "lastcall", *line.split(), *map(str, more)]


@pytest.fixture(scope="module")
def cluster(lab):  # noqa: F811
    """A node with a CSI driver and DNS of low priority, and two pods that need both."""
    system, shop = lab.kubectl("kube-system"), lab.kubectl("shop")
    driver = pod("driver", hostNetwork=True, volumes=[{"name": "p", "hostPath": {"path": SOCKETS}}])
    dns = {"metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}}, "apiVersion": "v1", "kind": "Service"}
    dns["spec"] = {"selector": {"k8s-app": "kube-dns"}, "ports": [{"port": 53}]}
    system("apply -f -", given=items(dns, driver, pod("coredns", labels={"k8s-app": "kube-dns"})))
    csi = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    csi["spec"] = {"drivers": [{"name": "csi.test", "nodeID": "n1"}]}
    size = {"accessModes": ["ReadWriteOnce"]}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}}
    volume["spec"] = {**size, "capacity": {"storage": "1Gi"}, "csi": {"driver": "csi.test", "volumeHandle": "h"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    claim["spec"] = {**size, "volumeName": "pv", "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    mounted = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    db = pod("db", priorityClassName="system-cluster-critical", volumes=mounted)
    shop("apply -f -", given=items(csi, volume, claim, db, pod("web", node="n1"), pod("elsewhere", node="n2")))
    return lab


@pytest.fixture
def lastcall(cluster, tmp_path):
    return Lastcall(cluster.kubeconfig, tmp_path)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "agent.yaml").write_text(CONFIG)
    return tmp_path / "agent.yaml"


def test_the_plan_of_a_node(lastcall, config):
    plan = json.loads(lastcall(f"plan --node n1 --config {config} -o json"))
    pods = [
        [(one["name"], one["priority"], one["prioritySource"]) for one in phase["pods"]] for phase in plan["phases"]
    ]
    assert pods == [
        [("coredns", 0, "Watch"), ("driver", 0, "Watch"), ("web", 0, "Watch")],
        [("db", 2_000_000_000, "Watch")],
    ]
    found = [(one["kind"], one["name"], [user["name"] for user in one["users"]]) for one in plan["inversions"]]
    assert found == [("DNS", "coredns", ["db"]), ("CSI", "driver", ["db"])]
    assert plan["inversions"][1]["mend"]["priorityClassName"] == "system-node-critical"
    assert plan["notEnded"] == []


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_same_for_people(lastcall, config, columns):
    said = lastcall(f"plan --node n1 --config {config}", COLUMNS=columns)
    assert "warning: kube-system/driver (CSI driver csi.test) ends in phase 1" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= max(int(columns), 60)


def test_the_configuration_of_the_installed_agents(lastcall, cluster):
    said = lastcall.fails("plan --node n1", code=2)
    assert "--config: missing, and in namespace lastcall-system no ConfigMap of an agent has agent.yaml" in said
    installed = cluster.kubectl("lastcall-system")
    installed("create -f -", given=agent_config_map("lastcall-system"))
    try:
        assert "mode Observe" in lastcall("plan --node n1")
    finally:
        installed("delete configmap lastcall-agent")


def test_as_a_plugin_of_kubectl(lastcall, config):
    path = f"{BIN}:{os.environ['PATH']}"
    plugin = Kubectl(lastcall.environment["KUBECONFIG"], config.parent)
    plugin._command = lambda line, more: [BIN / "kubectl", *line.split(), *map(str, more)]
    assert "shop/db" in plugin(f"lastcall plan --node n1 --config {config}", PATH=path)
    offered = plugin("__complete lastcall plan --node n", PATH=path).splitlines()
    assert offered[0] == "n1"
    assert plugin("__complete lastcall plan --node n", PATH=path, KUBECONFIG="/none").splitlines()[-1] == ":0"


def test_a_node_that_does_not_exist(lastcall, config):
    said = lastcall.fails(f"plan --node n11 --config {config}", code=2)
    assert said == 'lastcall: --node: "n11": there is no such node; similar: n1\n'


def test_a_server_that_is_down(lastcall, config, tmp_path):
    document = json.loads(
        subprocess.check_output([BIN / "kubectl", "config", "view", "--raw", "-o", "json"], env=lastcall.environment)
    )
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "down").write_text(json.dumps(document))
    said = lastcall.fails(f"plan --node n1 --config {config} --kubeconfig {tmp_path / 'down'}")
    assert "127.0.0.1:1" in said
    assert "Traceback" not in said
