"""``lastcall drain`` and ``lastcall controller`` at etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

The chart is installed, and each program has the rights of its service account alone; the nodes are hollow. kubectl, in
processes of its own, watches the budgets.
"""

import asyncio
import contextlib
import shlex
import signal
import sys
import threading
from pathlib import Path

import pytest
from support.common.libraries import need_library
from support.failover.controller_process import ControllerProcess
from support.kube.kubectl import PROGRAM, Kubectl, items, workload
from support.kube.real_cluster import RealCluster, missing_programs
from support.traffic.budget_watcher import BudgetWatcher

from lastcall.adapters.kube.resources import EVENTS, LEASES, NODES
from lastcall.aio import cancel_and_wait
from lastcall.names import BALANCER_EXCLUSION, DRAIN_MARK, DRAINER, DRAINS_NAMESPACE, SYSTEM_NAMESPACE, TO_BE_DELETED

need_library("helm_python", "Helm as a library exists for Linux on x86-64 alone")
pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(missing_programs()), reason=missing_programs() or "all programs are there"),
]

NODE_NAMES = ("a", "b", "c", "d")
WORKLOADS = {"web": ("Deployment", 6, 5), "db": ("StatefulSet", 3, 2)}
"""Kind, replicas, and how many a budget demands."""
OPTIONS = (
    "--ignore-daemonsets --delete-emptydir-data --exclude-from-load-balancers=label --exclude-from-load-balancers=taint"
)
LASTCALL = Path(sys.executable).parent / "lastcall"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Four nodes and the chart; who drains has the rights that the how-to gives."""
    with RealCluster(tmp_path_factory.mktemp("real")) as cluster:
        cluster.install_chart()
        admin = cluster.kubectl("default")
        subject = f"--clusterrole={DRAINER} --serviceaccount=default:admin"
        cluster.account("default", "admin")
        admin(f"create clusterrolebinding drainers {subject}")
        admin(
            f"create rolebinding drainers --namespace={DRAINS_NAMESPACE} --role={DRAINER} --serviceaccount=default:admin"
        )
        for node in NODE_NAMES:
            cluster.node(node)
        yield cluster


@pytest.fixture
def drain(cluster, tmp_path):
    """``lastcall`` as the service account."""
    return Kubectl(cluster.account("default", "admin"), tmp_path, "", LASTCALL)


@pytest.fixture
def shop(cluster, request):
    """The workloads with their budgets, whole, on schedulable nodes."""
    kubectl = cluster.kubectl(request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))
    kubectl("uncordon", *NODE_NAMES)
    for name, (kind, replicas, least) in WORKLOADS.items():
        made = workload(kind, name, replicas=replicas, pod_spec={"terminationGracePeriodSeconds": 1})
        made["spec"]["template"]["metadata"]["labels"]["ends"] = "late"
        kubectl("create -f -", given=items(made, budget(name, least)))
    for name, (_, replicas, _) in WORKLOADS.items():
        kubectl.until(f"get pdb {name} -o jsonpath={{.status.currentHealthy}}", str(replicas).__eq__)
    yield kubectl
    kubectl(f"delete namespace {kubectl.namespace}")


def budget(name, least):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": name}}},
    }


def block(kubectl):
    """No budget of ``db`` allows anything."""
    kubectl("patch pdb db --type=merge -p", '{"spec": {"minAvailable": 3}}')
    kubectl.until("get pdb db -o jsonpath={.status.disruptionsAllowed}", "0".__eq__)


def unblock(kubectl):
    kubectl("patch pdb db --type=merge -p", '{"spec": {"minAvailable": 2}}')


def place_of_db(kubectl):
    """The nodes of its pods."""
    return sorted(set(kubectl("get pods -l app=db -o jsonpath={.items[*].spec.nodeName}").split()))


def conditions(cluster, node):
    found = cluster.read(NODES, node)["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in found if one["type"].startswith("Drain")}


def excluded(cluster, node):
    """What tells external load balancers that the node leaves."""
    found = cluster.read(NODES, node)
    taints = [one["key"] for one in found["spec"].get("taints") or ()]
    return BALANCER_EXCLUSION in (found["metadata"].get("labels") or {}), TO_BE_DELETED in taints


def lease(cluster, node):
    return cluster.read(LEASES, f"node-{node}", DRAINS_NAMESPACE)


@contextlib.contextmanager
def watching(shop):
    """Watchers of all budgets, which have seen the workloads whole."""
    watchers = {
        name: BudgetWatcher(str(PROGRAM), shop.environment, name, least, namespace=shop.namespace)
        for name, (_, _, least) in WORKLOADS.items()
    }
    seen, over = threading.Event(), threading.Event()

    async def watch():
        tasks = [asyncio.create_task(one.run(), name="watch") for one in watchers.values()]
        try:
            while not over.is_set():
                if all(one.least is not None for one in watchers.values()):
                    seen.set()
                await asyncio.sleep(0.05)
        finally:
            await cancel_and_wait(*tasks)

    thread = threading.Thread(target=asyncio.run, args=(watch(),))
    thread.start()
    try:
        assert seen.wait(60)
        yield watchers
    finally:
        over.set()
        thread.join()


def test_several_nodes_are_drained_and_budgets_kept_at_every_instant(cluster, shop, drain):
    nodes = place_of_db(shop)[:2]
    with watching(shop) as watchers:
        block(shop)
        with drain.running(f"drain {' '.join(nodes)} --reason 'new kernel' --timeout 180s {OPTIONS}") as run:
            run.until("evicting pod", "will retry after 5s")
            held = lease(cluster, nodes[0])
            assert held["spec"]["holderIdentity"].startswith("lastcall-drain/")
            assert held["metadata"]["annotations"]["lastcall.dev/reason"] == "new kernel"
            assert held["metadata"]["ownerReferences"][0]["name"] == nodes[0]
            started = {
                "DrainInProgress": ("True", "LastcallDrainStarted"),
                "Drained": ("False", "LastcallDrainStarted"),
            }
            assert [conditions(cluster, node) for node in nodes] == [started] * 2
            assert [excluded(cluster, node) for node in nodes] == [(True, True)] * 2
            other = drain.run(f"drain {nodes[1]} {OPTIONS}")
            assert (other.code, f"node {nodes[1]}: lastcall-drain/" in other.err) == (1, True), other
            unblock(shop)
            assert run.process.wait(240) == 0, run.said
        shop.until("get pods -o wide", lambda said: said.count("Running") == 9 and said.count("\n") == 10)
    assert not set(nodes) & set(shop("get pods -o jsonpath={.items[*].spec.nodeName}").split())
    assert {name: one.least for name, one in watchers.items()} == {
        name: least for name, (_, _, least) in WORKLOADS.items()
    }, "each budget was used, and kept"
    done = {"DrainInProgress": ("False", "LastcallDrainCompleted"), "Drained": ("True", "LastcallDrainCompleted")}
    for node in nodes:
        found = cluster.read(NODES, node)
        assert conditions(cluster, node) == done
        assert found["spec"]["unschedulable"]
        assert DRAIN_MARK not in found["metadata"]["annotations"]
        assert excluded(cluster, node) == (True, True)
        assert lease(cluster, node) is None
    reasons = {one["reason"] for one in cluster.do(cluster.client.list(EVENTS, namespace="default")).items}
    assert {"LastcallDrainStarted", "LastcallDrainCompleted"} <= reasons


@pytest.fixture
def controller(cluster, tmp_path):
    """``lastcall controller`` as its service account."""
    access = cluster.account(SYSTEM_NAMESPACE, "lastcall-controller")
    process = ControllerProcess(tmp_path, access, "--mode=Observe")
    yield process
    process.kill()


def test_a_drain_that_is_cancelled_gives_the_node_back_when_it_is_uncordoned(cluster, shop, drain, controller):
    block(shop)
    [node, *_] = place_of_db(shop)
    with drain.running(f"drain {node} {OPTIONS}") as run:
        run.until("will retry after 5s")
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(60) == 130, run.said
    assert lease(cluster, node) is None
    assert conditions(cluster, node)["DrainInProgress"] == ("False", "LastcallDrainInterrupted")
    assert excluded(cluster, node) == (True, True), "the same command goes on"
    assert cluster.read(NODES, node)["spec"]["unschedulable"]
    shop(f"uncordon {node}")
    controller.until(lambda: excluded(cluster, node) == (False, False))


def test_a_drain_whose_time_is_over_gives_the_node_back_itself(cluster, shop, drain):
    block(shop)
    [node, *_] = place_of_db(shop)
    said = drain.run(*shlex.split(f"drain {node} --timeout 5s --uncordon-on-failure {OPTIONS}"))
    assert (said.code, "global timeout reached: 5s" in said.err) == (1, True), said
    assert excluded(cluster, node) == (False, False)
    assert "unschedulable" not in cluster.read(NODES, node)["spec"]
    assert conditions(cluster, node)["Drained"] == ("False", "LastcallUncordoned")
    assert lease(cluster, node) is None
    assert shop("get pods -l app=db -o name").count("pod/") == 3
