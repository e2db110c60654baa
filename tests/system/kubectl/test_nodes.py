"""The unmodified kubectl and nodes: cordon, taint, and drain in all its variants, in its own words."""

import json
import re

import pytest
from support.kube.kubectl import items, kubectl, lab, pod, rows, workload  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def node(lab, request):  # noqa: F811
    """A node of the test's own, which nobody else's pods run on."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    yield lab.node(name)
    lab.remove_node(name)


def running(kubectl, *objects):  # noqa: F811
    """Creates them, and waits until their pods run."""
    kubectl("create -f -", given=items(*objects))
    expected = sum(one["spec"].get("replicas", 1) for one in objects)
    kubectl.until("get pods -o name --field-selector=status.phase=Running", lambda said: said.count("pod/") >= expected)


def replica_set(name, node, **spec):  # noqa: F811
    return workload("ReplicaSet", name, replicas=2, pod_spec={"nodeName": node, **spec})


def names(kubectl, node, labels=""):  # noqa: F811
    """The pods on a node, as ``namespace/name``, in order."""
    line = f"get pods --field-selector spec.nodeName={node} -o name"
    found = kubectl(f"{line} -l {labels}" if labels else line).split()
    return [f"{kubectl.namespace}/{one.removeprefix('pod/')}" for one in found]


# -- cordon and taint --------------------------------------------------------------------------------------------------


def test_cordon_and_uncordon(kubectl, lab, node):  # noqa: F811
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert kubectl("cordon", node) == f"node/{node} already cordoned\n"
    assert rows(kubectl("get node", node))[1][1] == "Ready,SchedulingDisabled"
    assert "Unschedulable:      true" in kubectl("describe node", node)
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"
    assert kubectl("uncordon", node) == f"node/{node} already uncordoned\n"
    assert kubectl(f"cordon {node} --dry-run=server") == f"node/{node} cordoned (server dry run)\n"
    assert not lab.stored("nodes", "", node)["spec"].get("unschedulable")
    assert kubectl.fails("cordon nosuch") == 'Error from server (NotFound): nodes "nosuch" not found\n'


def test_taint(kubectl, lab, node):  # noqa: F811
    assert kubectl(f"taint node {node} disk=slow:NoSchedule") == f"node/{node} tainted\n"
    assert kubectl.fails(f"taint node {node} disk=fast:NoSchedule") == (
        f"error: node {node} already has disk taint(s) with same effect(s) and --overwrite is false\n"
    )
    assert kubectl(f"taint node {node} disk=fast:NoSchedule --overwrite") == f"node/{node} modified\n"
    assert "disk=fast:NoSchedule" in kubectl("describe node", node)
    assert kubectl(f"taint node {node} disk-") == f"node/{node} untainted\n"
    assert kubectl.fails(f"taint node {node} disk-") == 'error: taint "disk" not found\n'
    assert kubectl.fails(f"taint node {node} a=b:Never").startswith("error: invalid taint effect: Never")


def test_label_nodes(kubectl, node):  # noqa: F811
    assert kubectl(f"label node {node} node-role.kubernetes.io/worker=") == f"node/{node} labeled\n"
    assert rows(kubectl("get node", node))[1][2] == "worker"
    assert kubectl("get nodes -o name -l node-role.kubernetes.io/worker") == f"node/{node}\n"


# -- drain -------------------------------------------------------------------------------------------------------------


def test_drain_evicts_what_will_come_back(kubectl, lab, node):  # noqa: F811
    running(kubectl, replica_set("web", node))
    before = names(kubectl, node)
    said = kubectl(f"drain {node}").splitlines()
    assert said[0] == f"node/{node} cordoned"
    assert {*said[1:3]} == {f"evicting pod {name}" for name in before}
    assert {*said[3:5]} == {f"pod/{name.split('/')[1]} evicted" for name in before}
    assert said[5:] == [f"node/{node} drained"]
    assert lab.stored("nodes", "", node)["spec"]["unschedulable"] is True


def test_drain_refuses_pods_without_a_controller(kubectl, node):  # noqa: F811
    running(kubectl, pod("bare", node=node))
    name = f"{kubectl.namespace}/bare"
    said = kubectl.run("drain", node)
    refusal = f"cannot delete Pods that declare no controller (use --force to override): {name}"
    assert (said.out, said.code) == (f"node/{node} cordoned\n", 1)
    assert said.err == (
        f'error: unable to drain node "{node}" due to error: {refusal}, continuing command...\n'
        f"There are pending nodes to be drained:\n {node}\n{refusal}\n"
    )
    said = kubectl.run(f"drain {node} --force")
    assert said.err == f"Warning: deleting Pods that declare no controller: {name}\n"
    assert said.out.endswith(f"evicting pod {name}\npod/bare evicted\nnode/{node} drained\n")


def test_drain_refuses_emptied_directories(kubectl, node):  # noqa: F811
    running(kubectl, replica_set("web", node, volumes=[{"name": "cache", "emptyDir": {}}]))
    a, b = names(kubectl, node)
    said = kubectl.fails(f"drain {node}")
    assert f"cannot delete Pods with local storage (use --delete-emptydir-data to override): {a}, {b}\n" in said
    assert kubectl(f"drain {node} --delete-emptydir-data").endswith(f"node/{node} drained\n")


def test_drain_and_daemon_sets(kubectl, node):  # noqa: F811
    beside = workload("DaemonSet", "beside", pod_spec={"nodeSelector": {"kubernetes.io/hostname": node}})
    kubectl("create -f -", given=beside)
    kubectl.until("get pods -l app=beside -o wide", lambda said: "Running" in said and node in said)
    [name] = names(kubectl, node)
    said = kubectl.fails(f"drain {node}")
    assert f"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): {name}\n" in said
    said = kubectl.run(f"drain {node} --ignore-daemonsets")
    assert (said.code, said.err) == (0, f"Warning: ignoring DaemonSet-managed Pods: {name}\n")
    assert said.out == f"node/{node} already cordoned\nnode/{node} drained\n"
    assert names(kubectl, node) == [name]


def test_drain_dry(kubectl, lab, node):  # noqa: F811
    running(kubectl, replica_set("web", node))
    before = names(kubectl, node)
    for where, words in (("client", "dry run"), ("server", "server dry run")):
        said = kubectl(f"drain {node} --dry-run={where}").splitlines()
        assert said[0] == f"node/{node} cordoned ({words})"
        assert {*said[1:-1]} == {f"evicting pod {name} ({words})" for name in before}
        assert said[-1] == f"node/{node} drained ({words})"
    assert names(kubectl, node) == before
    assert not lab.stored("nodes", "", node)["spec"].get("unschedulable")


def test_drain_only_some_pods(kubectl, node):  # noqa: F811
    running(kubectl, replica_set("web", node), replica_set("db", node))
    db = names(kubectl, node, "app=db")
    said = kubectl(f"drain {node} --pod-selector=app=web")
    assert said.count(" evicted\n") == 2
    assert names(kubectl, node, "app=db") == db


def test_drain_by_deletion(kubectl, lab, node):  # noqa: F811
    """``--disable-eviction`` asks no budget."""
    running(kubectl, pod("web", node=node))
    budget(kubectl)
    said = kubectl(f"drain {node} --force --disable-eviction")
    assert said == f"node/{node} cordoned\npod/web deleted\nnode/{node} drained\n"
    asked = [one for one in lab.plane.server.audit.records if one.namespace == kubectl.namespace]
    assert [one for one in asked if one.subresource == "eviction"] == []


def budget(kubectl):  # noqa: F811
    """One that allows no disruption of the one pod ``web``."""
    kubectl("create pdb web --selector=app=web --min-available=1")
    status = {
        "observedGeneration": 1,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
        "disruptionsAllowed": 0,
    }
    kubectl("patch pdb web --subresource=status --type=merge -p", json.dumps({"status": status}))


def test_drain_and_a_budget_that_refuses(kubectl, node):  # noqa: F811
    running(kubectl, pod("web", node=node))
    budget(kubectl)
    space = kubectl.namespace
    said = kubectl.run(f"drain {node} --force --timeout=4s")
    late = f'error when evicting pods/"web" -n "{space}": global timeout reached: 4s'
    assert said.code == 1
    assert said.out.startswith(f"node/{node} cordoned\nevicting pod {space}/web\n")
    assert said.err == (
        f"Warning: deleting Pods that declare no controller: {space}/web\n"
        f'error when evicting pods/"web" -n "{space}" (will retry after 5s): '
        "Cannot evict pod as it would violate the pod's disruption budget.\n"
        f'There are pending pods in node "{node}" when an error occurred: {late}\npod/web\n'
        f'error: unable to drain node "{node}" due to error: {late}, continuing command...\n'
        f"There are pending nodes to be drained:\n {node}\n{late}\n"
    )
    assert kubectl("get pod web -o name") == "pod/web\n"


def test_drain_goes_on_when_the_budget_allows_it(kubectl, node):  # noqa: F811
    running(kubectl, pod("web", node=node))
    budget(kubectl)
    with kubectl.running(f"drain {node} --force --timeout=60s") as drain:
        drain.until("will retry after 5s")
        kubectl("delete pdb web")
        assert drain.process.wait(60) == 0
        assert drain.said.endswith(f"pod/web evicted\nnode/{node} drained\n")


def test_drain_waits_for_the_pods_grace(kubectl, lab, node):  # noqa: F811
    running(kubectl, pod("web", node=node, labels={"ends": "late"}))
    with kubectl.running(f"drain {node} --force --grace-period=10 --timeout=60s") as drain:
        drain.until("evicting pod")
        kubectl.until("get pod web", lambda said: "Terminating" in said)
        assert drain.process.poll() is None
        assert lab.stored("pods", kubectl.namespace, "web")["metadata"]["deletionGracePeriodSeconds"] == 10
        assert drain.process.wait(60) == 0


def test_drain_several_nodes(kubectl, lab, node):  # noqa: F811
    running(kubectl, replica_set("web", node))
    kubectl(f"label node {node} drained=soon")
    said = kubectl("drain --selector=drained=soon")
    assert said.endswith(f"node/{node} drained\n")
    assert kubectl.fails(f"drain {node} nosuch") == 'Error from server (NotFound): nodes "nosuch" not found\n'


def test_delete_a_node(kubectl, lab, node):  # noqa: F811
    assert kubectl("delete node", node) == f'node "{node}" deleted\n'
    assert lab.stored("nodes", "", node) is None
