"""All old nodes are emptied at once, beside as many new ones: no budget is broken, and nothing waits for ever.

By ``lastcall drain`` and by the unmodified ``kubectl drain``, in one process and in several. kubectl, in processes of its
own, watches the budgets.
"""

import asyncio
import contextlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.kube.kubectl import PROGRAM, Kubectl, Lab, items, kubectl, workload  # noqa: F401  (a fixture)
from support.traffic.budget_watcher import BudgetWatcher

from lastcall.aio import cancel_and_wait
from lastcall.names import DRAINS_NAMESPACE

pytestmark = pytest.mark.timeout(240)

OLD, NEW = ("old-1", "old-2", "old-3"), ("new-1", "new-2", "new-3")
WORKLOADS = {"web": ("Deployment", 6, 5), "api": ("Deployment", 3, 2), "db": ("StatefulSet", 3, 2)}
"""Kind, replicas, and how many a budget demands."""
LASTCALL = Path(sys.executable).parent / "lastcall"
WAYS = {
    "lastcall": [[LASTCALL, "drain -l old=true"]],
    "lastcall, a process for each node": [[LASTCALL, f"drain {node}"] for node in OLD],
    "kubectl": [[PROGRAM, "drain -l old=true"]],
    "kubectl, a process for each node": [[PROGRAM, f"drain {node}"] for node in OLD],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Three old nodes and three new ones."""
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        lab.kubectl(DRAINS_NAMESPACE)
        for node in OLD:
            lab.node(node, old="true")
        for node in NEW:
            lab.node(node)
        yield lab


@pytest.fixture
def shop(lab, kubectl):  # noqa: F811
    """The workloads with their budgets, on the old nodes."""
    kubectl("cordon", *NEW)
    kubectl("uncordon", *OLD)
    for name, (kind, replicas, least) in WORKLOADS.items():
        made = workload(kind, name, replicas=replicas, pod_spec={"terminationGracePeriodSeconds": 1})
        made["spec"]["template"]["metadata"]["labels"]["ends"] = "late"
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": name}}},
        }
        kubectl("create -f -", given=items(made, budget))
    kubectl.until("get pods -o wide", lambda said: sum(map(said.count, OLD)) == 12 and said.count("Running") == 12)
    for name, (_, replicas, _) in WORKLOADS.items():
        kubectl.until(f"get pdb {name} -o jsonpath={{.status.currentHealthy}}", str(replicas).__eq__)
    kubectl("uncordon", *NEW)
    yield kubectl
    kubectl("delete deployments,statefulsets,pdb --all")
    kubectl.until("get pods -o name", lambda said: not said)


@contextlib.asynccontextmanager
async def watching(shop):
    """The watchers of all budgets, which have seen the workloads whole."""
    watchers = {
        name: BudgetWatcher(str(PROGRAM), shop.environment, name, least, namespace=shop.namespace)
        for name, (_, _, least) in WORKLOADS.items()
    }
    tasks = [asyncio.create_task(one.run(), name="watch") for one in watchers.values()]
    try:
        async with asyncio.timeout(60):
            while any(one.changes < WORKLOADS[name][1] for name, one in watchers.items()):
                await asyncio.sleep(0.05)
        yield watchers
    finally:
        await cancel_and_wait(*tasks)


async def call(program, line, environment, log):
    """A program that runs meanwhile; it is killed at the end of its task."""
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            program, *shlex.split(line), stdout=file, stderr=file, env=environment
        )
    try:
        return await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


@pytest.mark.parametrize("way", WAYS)
async def test_no_budget_is_broken_and_all_nodes_are_emptied(shop, tmp_path, way):
    logs = [tmp_path / f"drain-{number}.log" for number, _ in enumerate(WAYS[way])]
    async with watching(shop) as watchers:
        calls = [
            asyncio.create_task(call(program, f"{line} --timeout=150s", shop.environment, log), name="drain")
            for (program, line), log in zip(WAYS[way], logs, strict=True)
        ]
        try:
            codes = [await one for one in calls]
        finally:
            await cancel_and_wait(*calls)
        said = "\n".join(log.read_text() for log in logs)
        assert codes == [0] * len(calls), said
        assert await asyncio.to_thread(place, shop) == {*NEW}
    assert {name: one.least for name, one in watchers.items()} == {
        name: least for name, (_, _, least) in WORKLOADS.items()
    }, "each budget was used, and kept"


def place(shop):
    """The nodes of all pods, as soon as the workloads are whole again."""
    jsonpath = "get pods -o jsonpath={.items[*].spec.nodeName}"
    shop.until("get pods -o wide", lambda said: said.count("Running") == 12 and said.count("\n") == 13)
    return {*shop(jsonpath).split()}


def test_two_drains_of_the_same_nodes_in_opposite_order(shop, tmp_path):
    """They begin at once: one gets all nodes, the other is told so, and neither waits for the other."""
    for name, (_, replicas, _) in WORKLOADS.items():
        shop(f"patch pdb {name} --type=merge -p", f'{{"spec": {{"minAvailable": {replicas}}}}}')
    program = Kubectl(shop.environment["KUBECONFIG"], tmp_path, "", LASTCALL)
    with program.running(f"drain {OLD[0]} {OLD[1]}") as one, program.running(f"drain {OLD[1]} {OLD[0]}") as other:
        runs = [one, other]
        ended = wait_for_one(runs)
        [left] = [run for run in runs if run is not ended]
        assert (ended.process.returncode, "has it since" in ended.said) == (1, True), ended.said
        left.until("will retry after 5s")
        for name, (_, _, least) in WORKLOADS.items():
            shop(f"patch pdb {name} --type=merge -p", f'{{"spec": {{"minAvailable": {least}}}}}')
        assert left.process.wait(120) == 0, left.said


def wait_for_one(runs):
    """The first run that has ended."""
    while True:
        for run in runs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.process.wait(0.1)
                return run
