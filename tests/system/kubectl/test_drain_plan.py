"""``lastcall drain --plan`` beside ``kubectl drain --dry-run=client``: the same pods go, stay and are refused, in the same words."""

import json
import os
import sys
from pathlib import Path

import pytest
from support.kube.kubectl import Kubectl, items, lab, pod, workload  # noqa: F401  (fixtures)

BIN = Path(sys.executable).parent
OPTIONS = ("--force", "--ignore-daemonsets", "--delete-emptydir-data")
CACHE = [{"name": "cache", "emptyDir": {}}]
NAMESPACE = "shop"
KEPT = ["batch.kubernetes.io/job-tracking"]
"""Keeps an orphan from the garbage collector, and is no obstacle to a drain."""
GONE = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gone", "uid": "0", "controller": True}


class Plugin(Kubectl):
    """kubectl without options before the plugin's name, which it forbids."""

    def _command(self, line, more):
        return [BIN / "kubectl", *line.split(" "), *map(str, more)]


def with_metadata(one, **metadata):
    return {**one, "metadata": {**one["metadata"], **metadata}}


@pytest.fixture(scope="module")
def cluster(lab):  # noqa: F811
    """A node with a pod of each kind that kubectl's filters know, and one of each that is finished."""
    shop = lab.kubectl(NAMESPACE)
    here = {"nodeName": "n1"}
    mirror = with_metadata(pod("mirror"), annotations={"kubernetes.io/config.mirror": "0"})
    done = {"restartPolicy": "Never"}
    shop(
        "create -f -",
        given=items(
            workload("ReplicaSet", "web", replicas=2, pod_spec=here),
            workload("ReplicaSet", "cached", replicas=1, pod_spec={**here, "volumes": CACHE}),
            workload("DaemonSet", "beside", pod_spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}}),
            pod("bare"),
            pod("bare-cached", volumes=CACHE),
            pod("done", **done),
            pod("done-cached", volumes=CACHE, **done),
            mirror,
            with_metadata(pod("orphan"), ownerReferences=[GONE], finalizers=KEPT),
        ),
    )
    shop.until("get pods -o name --field-selector spec.nodeName=n1", lambda said: said.count("pod/") >= 10)
    for name in ("done", "done-cached"):
        shop(f"patch pod {name} --subresource=status --type=merge -p", '{"status":{"phase":"Succeeded"}}')
    return lab


@pytest.fixture
def kubectl(cluster):
    return cluster.kubectl(NAMESPACE)


@pytest.fixture
def plugin(cluster, tmp_path):
    plugin = Plugin(cluster.kubeconfig, tmp_path)
    plugin.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    return plugin


def plan_of(plugin, line, code):
    said = plugin.run(f"lastcall drain {line} --plan -o json")
    assert said.code == code, said
    return json.loads(said.out)


def names(pods):
    return sorted(f"{one['namespace']}/{one['name']}" for one in pods)


def refusals(plan):
    """As kubectl joins them."""
    by_reason = {}
    for one in plan["refuse"]:
        by_reason.setdefault(one["why"], []).append(f"{one['namespace']}/{one['name']}")
    return {
        f"{'' if why.startswith('cannot delete') else 'cannot delete '}{why}: {', '.join(pods)}"
        for why, pods in by_reason.items()
    }


@pytest.mark.parametrize("chosen", range(8))
def test_all_combinations_of_options(kubectl, plugin, chosen):
    options = " ".join(option for bit, option in enumerate(OPTIONS) if chosen >> bit & 1)
    said = kubectl.run(f"drain n1 --dry-run=client {options}")
    plan = plan_of(plugin, f"n1 {options}".strip(), code=said.code)
    found = refusals(plan)
    assert bool(found) is bool(said.code)
    assert [text for text in found if text not in said.err] == []
    assert said.err.count("cannot delete ") == 2 * len(found)  # once for the node, once at the end
    if not found:
        going = [line.split()[2] for line in said.out.splitlines() if line.startswith("evicting pod ")]
        assert sorted(going) == names(one for tier in plan["evict"] for one in tier)
        kept = [name for one in plan["skip"] if "DaemonSet" in one["why"] for name in names([one])]
        assert f"ignoring DaemonSet-managed Pods: {', '.join(kept)}" in said.err


def test_a_pod_selector_chooses(kubectl, plugin):
    said = kubectl("drain n1 --dry-run=client --pod-selector app=web").splitlines()
    going = [line.split()[2] for line in said if line.startswith("evicting pod ")]
    plan = plan_of(plugin, "n1 --pod-selector app=web", code=0)
    assert sorted(going) == names(one for tier in plan["evict"] for one in tier)
    assert len(going) == 2


def test_no_node_of_a_selector(kubectl, plugin):
    assert kubectl.run("drain -l no=node --dry-run=client") == ("", "", 0)
    said = plugin.run("lastcall drain -l no=node --plan")
    assert (said.out, said.code) == ("", 0)
    assert said.err.endswith("No resources found\n")


def test_nodes_of_a_selector(plugin):
    assert plan_of(plugin, "-l kubernetes.io/hostname=n1", code=1)["nodes"] == ["n1"]


def test_names_and_a_selector(kubectl, plugin):
    rule = "cannot specify both a node name and a --selector option"
    assert rule in kubectl.fails("drain n1 -l a=b --dry-run=client")
    assert rule in plugin.fails("lastcall drain n1 -l a=b --plan", code=2)


def test_a_node_that_does_not_exist(plugin):
    said = plugin.fails("lastcall drain n11 --plan", code=2)
    assert said == 'kubectl lastcall: NODE: "n11": there is no such node; similar: n1\n'


def test_a_state_that_kubectl_printed_is_the_cluster(kubectl, plugin, tmp_path):
    kinds = "nodes,pods,daemonsets,replicasets,poddisruptionbudgets,endpointslices"
    (tmp_path / "state.json").write_text(kubectl(f"get {kinds} -A -o json"))
    line = "n1 --force --ignore-daemonsets --delete-emptydir-data"
    assert plan_of(plugin, f"{line} --state {tmp_path}/state.json", code=0) == plan_of(plugin, line, code=0)


def test_of_kinds_that_are_not_served_nothing_is_said(plugin):
    """The lab has no ReplicationControllers and no GuardPolicies: no pod belongs to one, and nothing is guarded."""
    said = plugin.run("lastcall drain n1 --plan")
    assert [line for line in said.err.splitlines() if line.startswith("warning: ")] == []


def test_kinds_that_may_not_be_read(cluster, plugin):
    """Of Nodes and Pods alone a plan can be made, and it says what it does not know."""
    admin = cluster.kubectl(NAMESPACE)
    admin("create clusterrole looker --verb=get,list --resource=nodes,pods")
    admin(f"create serviceaccount looker -n {NAMESPACE}")
    admin(f"create clusterrolebinding looker --clusterrole=looker --serviceaccount={NAMESPACE}:looker")
    token = admin(f"create token looker -n {NAMESPACE}").strip()
    limited = plugin.environment["KUBECONFIG"] = str(plugin._home / "limited")
    Path(limited).write_text(admin("config view --raw --minify --flatten"))
    plugin("config set-credentials looker --token", token)
    plugin("config set-context --current --user looker")
    said = plugin.run("lastcall drain n1 --plan --force --ignore-daemonsets --delete-emptydir-data -o json")
    assert said.code == 0, said
    assert "warning: poddisruptionbudgets are not counted: " in said.err
    assert "warning: daemonsets are not counted: " in said.err
    assert "warning: leases are not counted: " in said.err, "the namespace medik8s-leases may be there"
    admin("create clusterrole looker-of-namespaces --verb=get --resource=namespaces")
    admin(
        f"create clusterrolebinding namespaces --clusterrole=looker-of-namespaces --serviceaccount={NAMESPACE}:looker"
    )
    assert "leases" not in plugin.run("lastcall drain n1 --plan").err, "it is not there"
    assert "no DaemonSet is known; these are assumed to exist: shop/beside, shop/gone" in said.err
