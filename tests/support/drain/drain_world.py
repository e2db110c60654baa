"""Drains in virtual time: the lab's API server with its controllers, nodes whose kubelets end pods, and runs that can die."""

import asyncio
import contextlib
import functools
import inspect
from datetime import UTC, datetime
from random import Random

from support.lab.controller_cluster import LabCluster
from support.lab.small_kubelets import Kubelet
from support.lab.workloads import workload

from lastcall.adapters.kube.budget_watch import KubeBudgetWatch
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import COMPONENT, KubeDrainCluster
from lastcall.adapters.kube.drain_watch import KubeDrainWatch
from lastcall.adapters.kube.node_ownership import KubeNodeOwnership
from lastcall.adapters.kube.resources import (
    BUDGETS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from lastcall.aio import OrderedTaskGroup, cancel_and_wait
from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.execution.chosen_pods import make_chooser
from lastcall.drain.execution.drain_run import DrainParts, DrainRun
from lastcall.drain.execution.node_writer import NodeWriter, new_mark
from lastcall.drain.planning.pod_filters import FilterFacts
from lastcall.model.drain_limits import DrainLimits
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.node_ownership import OwnershipClaim
from lastcall.names import DRAINS_NAMESPACE
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.disruption_budgets import DisruptionController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController

SETTINGS = DrainSettings(force=True, ignore_daemonsets=True)


CLASSES = {"late": 1, "later": 100}


class CountingTransport(InProcessTransport):
    """``trouble`` is called with verb and path before each request, and may raise or wait."""

    def __init__(self, server, user=ADMIN):
        super().__init__(server, user)
        self.trouble, self.asked = None, []

    async def request(self, method, target, headers, body, *, stream=False):
        self.asked.append((method, target.partition("?")[0]))
        if self.trouble:
            await self.trouble(method, target)
        return await super().request(method, target, headers, body, stream=stream)


class SchedulingKubelet(Kubelet):
    """Puts pods on nodes that are schedulable, in turn."""

    def _node(self, pod):
        cordoned = {node["metadata"]["name"] for node in self.cluster.all(NODES) if node["spec"].get("unschedulable")}
        free = [name for name in self.nodes if name not in cordoned]
        if not free:
            return None
        self.turn = getattr(self, "turn", -1) + 1
        return free[self.turn % len(free)]

    async def _live(self, pod):
        while not pod["spec"].get("nodeName") and all(self.cluster.is_cordoned(name) for name in self.nodes):
            await self.cluster.clock.sleep(0.5)
        await super()._live(pod)


class Recorder:
    """Keeps what it is told, in order."""

    def __init__(self):
        self.said, self.courses = [], []

    def warn(self, text):
        self.said.append(("warn", text))

    def tell_cordoned(self, node, *, already):
        self.said.append(("already cordoned" if already else "cordoned", node))

    def tell_uncordoned(self, node):
        self.said.append(("uncordoned", node))

    def tell_asked(self, target, *, evicts):
        self.said.append(("evict" if evicts else "delete", target.name))

    def tell_refused(self, target, why, seconds):
        self.said.append(("refused", target.name))
        self.refusal = why

    def tell_gone(self, target, *, evicts):
        self.said.append(("gone", target.name))
        self.verb = "evicted" if evicts else "deleted"

    def tell_failed(self, target, why):
        self.said.append(("failed", target.name))
        self.failure = why

    def tell_skipped(self, target, why):
        self.said.append(("skipped", target.name))

    def tell_finished(self, node, outcome, why):
        self.said.append((outcome.value, node))
        self.why = why

    def show(self, course, now):
        self.courses.append(course)

    def of(self, *kinds):
        return [what for kind, what in self.said if kind in kinds]


class DrainWorld(LabCluster):
    """Three nodes; pods take ``stops_after`` seconds to end."""

    def __init__(self, *, optional=(), **kubelet):
        super().__init__(
            virtual.VirtualClock(),
            [DisruptionController(), DeploymentController(), ReplicaSetController(), StatefulSetController()],
            optional=optional,
        )
        self.kubelet = SchedulingKubelet(self, **kubelet)
        self.group = OrderedTaskGroup()
        self.runs = 0

    async def start(self):
        await self.begin()
        for name in ("n1", "n2", "n3"):
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            await self.client.create(NODES, {"metadata": {"name": name}, "status": {"conditions": [ready]}})
        await self.client.create(NAMESPACES, {"metadata": {"name": DRAINS_NAMESPACE}})
        for name, value in CLASSES.items():
            await self.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        self.group.start(self.runner.run(), "controllers")
        self.group.start(self.kubelet.run(), "kubelet")

    async def deploy(self, name="web", replicas=3, budget=None, **spec):
        labels = {"app": name}
        made = workload(name, replicas=replicas, selector={"matchLabels": labels})
        made["spec"]["template"]["metadata"]["labels"] = labels
        made["spec"]["template"]["spec"] |= spec
        await self.create(DEPLOYMENTS, made)
        if budget is not None:
            chosen = {"selector": {"matchLabels": labels}, "maxUnavailable": budget}
            await self.create(BUDGETS, {"metadata": {"name": name}, "spec": chosen})
        await self.until(lambda: sum(map(is_ready, self.pods_of(name))) == replicas)
        if budget is not None:
            await self.until(lambda: self.get(BUDGETS, name).get("status", {}).get("expectedPods") == replicas)

    async def bare(self, name, node, **spec):
        """A pod without a controller, on a node."""
        pod = {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}}
        pod["spec"] |= spec
        made = await self.create(PODS, pod)
        await self.until(lambda: is_ready(self.get(PODS, name) or {}))
        return made

    def pods_of(self, app):
        return [pod for pod in self.all(PODS) if (pod["metadata"].get("labels") or {}).get("app") == app]

    def on(self, *nodes):
        """The pods of nodes."""
        return sorted(pod["metadata"]["name"] for pod in self.all(PODS) if pod["spec"].get("nodeName") in nodes)

    def node(self, name):
        return self.get(NODES, name)

    def is_cordoned(self, name):
        return bool(self.node(name)["spec"].get("unschedulable"))

    def conditions(self, name):
        """The conditions of a drain as (status, reason)."""
        found = {one["type"]: (one["status"], one.get("reason")) for one in self.node(name)["status"]["conditions"]}
        return found.get("DrainInProgress"), found.get("Drained")

    def leases(self):
        return [one["metadata"]["name"] for one in self.all(LEASES)]

    def events(self):
        return {event["reason"] for event in self.all(EVENTS) if event["source"].get("component") == COMPONENT}

    async def drain(self, *names, **how):
        """A run that has not begun, with its recorder and its transport (``prepare_drain``)."""
        self.runs += 1
        return await prepare_drain(self.server, self.clock, *names, number=self.runs, **how)

    def running(self, run):
        """``drain_running``."""
        return drain_running(run)


async def prepare_drain(
    server,
    clock,
    *names,
    number=1,
    settings=SETTINGS,
    uncordons=False,
    reason="",
    transport=None,
    limits=None,
    evictions=None,
    ignores_others=False,
    balancers=(),
    **more,
):
    """A run of ``admin-NUMBER`` that has not begun, with its recorder and its transport."""
    transport = transport or CountingTransport(server)
    client = Client(transport, manager=COMPONENT)
    cluster = KubeDrainCluster(client, clock, "test")
    nodes = [await cluster.read_node(name) for name in names]
    recorder = Recorder()
    uids = {node.name: node.metadata.uid for node in nodes}
    parts = DrainParts(
        cluster=cluster,
        evictions=evictions or cluster,
        ownership=KubeNodeOwnership(
            client, OwnershipClaim(f"run-{number}", reason), uids, clock, ignores_others=ignores_others
        ),
        watch=KubeDrainWatch(client, names, clock, Random(number)),
        budgets=KubeBudgetWatch(client, clock, Random(number)),
        clock=clock,
        observer=recorder,
    )
    mark = new_mark(f"id-{number}", f"admin-{number}", reason, clock.wall())
    facts = FilterFacts(settings, datetime.fromtimestamp(clock.wall(), UTC))
    course = DrainCourse(
        settings=settings,
        limits=limits or DrainLimits(**more),
        nodes=tuple(NodeProgress(name=name) for name in names),
    )
    run = DrainRun(
        course,
        nodes,
        parts,
        writer=NodeWriter(cluster, mark, clock, balancers=balancers),
        choose=make_chooser(facts, ()),
        uncordons=uncordons,
    )
    run.recorder, run.transport = recorder, transport
    return run


@contextlib.asynccontextmanager
async def drain_running(run):
    """The run, meanwhile; it is cancelled at the end of the block if it has not ended."""
    task = asyncio.create_task(run.run(), name="drain")
    try:
        yield task
    finally:
        await cancel_and_wait(task)


def is_ready(pod):
    said = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in said)


def in_world(**kubelet):
    """Runs a test in such a world."""

    def decorate(test):
        @functools.wraps(test)
        def run(**parameters):
            async def main():
                world = DrainWorld(**kubelet)
                await world.start()
                try:
                    await test(world, **parameters)
                finally:
                    await world.group.cancel()

            virtual.run(main())

        del run.__wrapped__
        whole = inspect.signature(test)
        run.__signature__ = whole.replace(parameters=[*whole.parameters.values()][1:])
        return run

    return decorate
