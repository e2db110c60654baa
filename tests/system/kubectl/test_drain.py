"""``kubectl lastcall drain`` beside the unmodified ``kubectl drain``: the same pods go, in the same words."""

import json
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest
from support.failover.controller_process import ControllerProcess
from support.kube.kubectl import Kubectl, items, kubectl, lab, pod, workload  # noqa: F401  (fixtures)

from lastcall.names import BALANCER_EXCLUSION, DRAIN_MARK, DRAINS_NAMESPACE, SYSTEM_NAMESPACE, TO_BE_DELETED

pytestmark = pytest.mark.timeout(180)

BIN = Path(sys.executable).parent
PROGRAMS = ("kubectl", "lastcall")


class Plugin(Kubectl):
    """``kubectl lastcall``, with kubectl's own process out of the way of signals."""

    def _command(self, line, more):
        return [BIN / "kubectl-lastcall", *shlex.split(line), *map(str, more)]


@pytest.fixture
def lastcall(lab, kubectl, tmp_path):  # noqa: F811
    lab.kubectl(DRAINS_NAMESPACE)
    return Plugin(lab.kubeconfig, tmp_path, kubectl.namespace)


@pytest.fixture
def node(lab, request):  # noqa: F811
    """A node of the test's own, which nobody else's pods run on."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    yield lab.node(name)
    lab.remove_node(name)


@pytest.fixture(params=PROGRAMS)
def drain(request, kubectl, lastcall):  # noqa: F811
    """Either program."""
    return kubectl if request.param == "kubectl" else lastcall


def replica_set(name, node, replicas=2, **spec):
    return workload("ReplicaSet", name, replicas=replicas, pod_spec={"nodeName": node, **spec})


def running(kubectl, *objects):  # noqa: F811
    """Creates them, and waits until their pods run."""
    kubectl("create -f -", given=items(*objects))
    expected = sum(one["spec"].get("replicas", 1) for one in objects)
    kubectl.until("get pods -o name --field-selector=status.phase=Running", lambda said: said.count("pod/") >= expected)


def names(kubectl, labels=""):  # noqa: F811
    found = kubectl.json(f"get pods -l {labels}" if labels else "get pods")["items"]
    return sorted(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found)


def uids(kubectl):  # noqa: F811
    return {one["metadata"]["uid"] for one in kubectl.json("get pods")["items"]}


def conditions(lab, node):  # noqa: F811
    found = lab.stored("nodes", "", node)["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in found if one["type"].startswith("Drain")}


def mark(lab, node):  # noqa: F811
    text = (lab.stored("nodes", "", node)["metadata"].get("annotations") or {}).get(DRAIN_MARK)
    return text and json.loads(text)


def test_pods_that_come_back_are_evicted(kubectl, lab, node, drain):  # noqa: F811
    running(kubectl, replica_set("web", node))
    before, known = names(kubectl), uids(kubectl)
    said = drain(f"drain {node}").splitlines()
    assert said[0] == f"node/{node} cordoned"
    assert {*said[1:3]} == {f"evicting pod {name}" for name in before}
    assert {*said[3:5]} == {f"pod/{name.split('/')[1]} evicted" for name in before}
    assert said[5:] == [f"node/{node} drained"]
    assert lab.stored("nodes", "", node)["spec"]["unschedulable"] is True
    assert not known & uids(kubectl)


def test_pods_without_a_controller(kubectl, lab, node, drain):  # noqa: F811
    """lastcall does not cordon a node on which it then evicts nothing."""
    running(kubectl, pod("bare", node=node))
    name = f"{kubectl.namespace}/bare"
    said = drain.run("drain", node)
    assert said.code == 1
    assert f"cannot delete Pods that declare no controller (use --force to override): {name}\n" in said.err
    assert names(kubectl) == [name]
    said = drain.run(f"drain {node} --force")
    assert said.err.startswith(f"Warning: deleting Pods that declare no controller: {name}\n")
    assert said.out.endswith(f"evicting pod {name}\npod/bare evicted\nnode/{node} drained\n")


def test_pods_of_daemon_sets_and_emptied_directories(kubectl, node, drain):  # noqa: F811
    beside = workload("DaemonSet", "beside", pod_spec={"nodeSelector": {"kubernetes.io/hostname": node}})
    kubectl("create -f -", given=beside)
    kubectl.until("get pods -l app=beside -o wide", lambda said: "Running" in said and node in said)
    running(kubectl, replica_set("web", node, replicas=1, volumes=[{"name": "cache", "emptyDir": {}}]))
    [agent], [web] = names(kubectl, "app=beside"), names(kubectl, "app=web")
    said = drain.fails(f"drain {node}")
    assert f"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): {agent}" in said
    assert f"cannot delete Pods with local storage (use --delete-emptydir-data to override): {web}" in said
    said = drain.run(f"drain {node} --ignore-daemonsets --delete-emptydir-data")
    assert said.code == 0
    assert f"ignoring DaemonSet-managed Pods: {agent}" in said.err
    assert names(kubectl, "app=beside") == [agent]
    assert f"pod/{web.split('/')[1]} evicted\n" in said.out


@pytest.mark.parametrize(("where", "words"), [("client", "dry run"), ("server", "server dry run")])
def test_dry(kubectl, lab, node, drain, where, words):  # noqa: F811
    running(kubectl, replica_set("web", node))
    before = names(kubectl)
    said = drain(f"drain {node} --dry-run={where}").splitlines()
    assert said[0] == f"node/{node} cordoned ({words})"
    assert {*said[1:-1]} == {f"evicting pod {name} ({words})" for name in before}
    assert said[-1] == f"node/{node} drained ({words})"
    assert names(kubectl) == before
    assert not lab.stored("nodes", "", node)["spec"].get("unschedulable")


def test_some_pods_by_deletion(kubectl, lab, node, drain):  # noqa: F811
    running(kubectl, pod("web", node=node), pod("db", node=node))
    kubectl("create pdb web --selector=app=web --min-available=1")
    said = drain(f"drain {node} --force --disable-eviction --pod-selector=app=web")
    assert said.endswith(f"pod/web deleted\nnode/{node} drained\n")
    asked = [one for one in lab.plane.server.audit.records if one.namespace == kubectl.namespace]
    assert [one for one in asked if one.subresource == "eviction"] == []
    assert names(kubectl) == [f"{kubectl.namespace}/db"]


@pytest.fixture
def blocked(kubectl, lab, node):  # noqa: F811
    """A budget that allows no disruption until a second replica is ready."""
    other = lab.node(f"{node}-2")
    running(
        kubectl, workload("Deployment", "web", replicas=1, pod_spec={"nodeSelector": {"kubernetes.io/hostname": node}})
    )
    kubectl("create pdb web --selector=app=web --min-available=1")
    kubectl.until("get pdb web -o json", lambda said: json.loads(said).get("status", {}).get("currentHealthy") == 1)
    yield other
    lab.remove_node(other)


def scale_up(kubectl):  # noqa: F811
    """The new replica runs on any node."""
    patch = {"spec": {"replicas": 2, "template": {"spec": {"nodeSelector": None}}}}
    kubectl("patch deployment web --type=merge -p", json.dumps(patch))


def test_a_budget_that_blocks_until_a_replica_is_ready(kubectl, lab, node, blocked, drain):  # noqa: F811
    with drain.running(f"drain {node}") as run:
        run.until("will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.")
        assert len(names(kubectl)) == 1
        scale_up(kubectl)
        assert run.process.wait(60) == 0
        assert f"node/{node} drained\n" in run.said


@pytest.fixture
def singleton(kubectl, lab, node):  # noqa: F811
    """A Deployment with one replica, which its budget demands, on one of two nodes; its node."""
    other = lab.node(f"{node}-2")
    patch = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node, other]}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [patch]}]}
    }
    running(kubectl, workload("Deployment", "web", replicas=1, pod_spec={"affinity": {"nodeAffinity": required}}))
    kubectl("create pdb web --selector=app=web --min-available=1")
    kubectl.until("get pdb web -o json", lambda said: json.loads(said).get("status", {}).get("currentHealthy") == 1)
    yield kubectl.json("get pods")["items"][0]["spec"]["nodeName"]
    lab.remove_node(other)


def test_a_singleton_gets_its_new_pod_first(kubectl, singleton, lastcall):  # noqa: F811
    known = uids(kubectl)
    said = lastcall.run(f"drain {singleton} --surge")
    assert (said.code, "is restarted, so that a new pod is ready before the old one ends" in said.out) == (0, True)
    [new] = kubectl.json("get pods --field-selector=status.phase=Running")["items"]
    assert new["metadata"]["uid"] not in known
    assert new["spec"]["nodeName"] != singleton
    assert "lastcall.dev/drain-surge" not in kubectl("get deployment web -o yaml")


def test_two_drains_of_overlapping_nodes(kubectl, lab, node, blocked, lastcall):  # noqa: F811
    with lastcall.running(f"drain {node} --reason", "'new kernel'") as run:
        run.until("will retry after 5s")
        said = lastcall.run(f"drain {blocked} {node}")
        assert said.code == 1
        assert re.search(rf"node {node}: lastcall-drain/\S+ has it since \S+ \(new kernel\)", said.err.replace("'", ""))
        assert not lab.stored("nodes", "", blocked)["spec"].get("unschedulable")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(60) == 130


def test_ctrl_c_and_the_next_run(kubectl, lab, node, blocked, lastcall):  # noqa: F811
    with lastcall.running(f"drain {node}") as run:
        run.until("will retry after 5s")
        assert conditions(lab, node)["DrainInProgress"] == ("True", "LastcallDrainStarted")
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(60) == 130
        assert "the same command goes on" in run.said
    assert conditions(lab, node) == dict.fromkeys(("DrainInProgress", "Drained"), ("False", "LastcallDrainInterrupted"))
    assert mark(lab, node)["cordoned"]
    assert lab.stored("leases.coordination.k8s.io", DRAINS_NAMESPACE, f"node-{node}") is None
    scale_up(kubectl)
    said = lastcall(f"drain {node}")
    assert said.startswith(f"node/{node} already cordoned\n")
    assert said.endswith(f"node/{node} drained\n")
    assert mark(lab, node) is None
    assert conditions(lab, node)["Drained"] == ("True", "LastcallDrainCompleted")


def test_a_run_that_was_killed_is_followed(kubectl, lab, node, blocked, lastcall):  # noqa: F811
    with lastcall.running(f"drain {node}") as run:
        run.until("will retry after 5s")
        run.process.kill()
        run.process.wait(60)
    before = mark(lab, node)
    scale_up(kubectl)
    said = lastcall.run(f"drain {node} --timeout=2m")
    assert (
        said.code,
        f"waiting up to 30 s, to see whether Lease lastcall-drains/node-{node} is renewed" in said.err,
    ) == (0, True)
    assert before["cordoned"]
    assert lab.stored("nodes", "", node)["spec"]["unschedulable"]


def test_the_time_is_over_and_the_cordon_goes_back(kubectl, lab, node, blocked, lastcall):  # noqa: F811
    said = lastcall.run(f"drain {node} --timeout=1s --uncordon-on-failure")
    assert said.code == 1
    assert said.out.endswith(f"node/{node} uncordoned\n")
    assert "global timeout reached: 1s" in said.err
    assert f"There are pending nodes to be drained:\n {node}\n" in said.err
    assert not lab.stored("nodes", "", node)["spec"].get("unschedulable")


def test_pods_of_several_budgets_fail_at_once_and_their_names_are_told(kubectl, lab, node, blocked, lastcall):  # noqa: F811
    kubectl("create pdb more --selector=app=web --max-unavailable=1")
    said = lastcall.run(f"drain {node}")
    assert said.code == 1
    assert (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support." in said.err
    )
    assert "leave one budget for each pod" in said.err
    assert lab.stored("nodes", "", node)["spec"]["unschedulable"], "left cordoned, as kubectl leaves it"


@pytest.mark.parametrize("key", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"])
def test_other_owners_are_respected(kubectl, lab, node, lastcall, key):  # noqa: F811
    running(kubectl, replica_set("web", node))
    kubectl(f"taint node {node} {key}=x:NoSchedule")
    said = lastcall.run(f"drain {node}")
    assert (said.code, said.out) == (1, "")
    assert f"(taint {key}): leave the node to it, or use --ignore-owners" in said.err
    assert lastcall(f"drain {node} --ignore-owners").endswith(f"node/{node} drained\n")


def excluded(lab, node):  # noqa: F811
    """What tells external load balancers that the node leaves."""
    found = lab.stored("nodes", "", node)
    taints = [one["key"] for one in found["spec"].get("taints") or ()]
    return BALANCER_EXCLUSION in (found["metadata"].get("labels") or {}), TO_BE_DELETED in taints


def test_external_load_balancers_get_the_node_back_after_uncordon(kubectl, lab, node, lastcall, tmp_path):  # noqa: F811
    lab.kubectl(SYSTEM_NAMESPACE)
    running(kubectl, replica_set("web", node))
    options = "--exclude-from-load-balancers=label --exclude-from-load-balancers=taint"
    said = lastcall.run(f"drain {node} {options}")
    assert (said.code, f"{node}: external load balancers leave it out until it is uncordoned" in said.err) == (0, True)
    assert excluded(lab, node) == (True, True)
    assert lastcall(f"drain {node} {options}").endswith(f"node/{node} drained\n"), "its own taint is nobody else's"
    controller = ControllerProcess(tmp_path, lab.kubeconfig, "--mode=Observe")
    try:
        kubectl(f"uncordon {node}")
        controller.until(lambda: excluded(lab, node) == (False, False))
    finally:
        controller.kill()


def test_a_pod_that_another_tool_is_to_leave_alone_is_not_evicted(kubectl, lab, node, lastcall):  # noqa: F811
    running(kubectl, replica_set("web", node, replicas=1), pod("db", node=node))
    kubectl("annotate pod db karpenter.sh/do-not-disrupt=true")
    with lastcall.running(f"drain {node} --force") as run:
        run.until("pod/web-", " evicted")
        kubectl("annotate pod db karpenter.sh/do-not-disrupt-")
        assert run.process.wait(60) == 0
        assert run.said.index("/db") < run.said.index("pod/db evicted")
        assert "karpenter.sh/do-not-disrupt: true" in run.said
