"""A shop on the nodes of a lab behind real proxies, under load, while the nodes are emptied one after the other."""

import asyncio
import contextlib
import subprocess
from random import Random
from typing import NamedTuple

from support.kube.kubectl import PROGRAM, Kubectl
from support.lab.http_load import SERVER, HttpLoad
from support.lab.real_machines import CLOCK, IMAGE, Lab
from support.traffic.budget_watcher import BudgetWatcher
from support.traffic.proxy_feeder import ProxyFeeder
from support.traffic.real_proxies import KINDS, find_program
from support.traffic.secure_page import LabPages

from lastcall.adapters.kube.resources import DEPLOYMENTS, NAMESPACES, NODES, SERVICES, dict_resource
from lastcall.aio import OrderedTaskGroup, cancel_and_wait
from lastcall.drain.traffic.departing_pods import ProxyNode
from lastcall.drain.traffic.settle_estimate import sleep_seconds
from lastcall.manifests.pod_policies import pod_policy_objects
from lastcall.model.drain_facts import DrainNode
from lastcall.names import DRAINS_NAMESPACE, SETTLE_SECONDS
from lastcall.wiring.traffic import AgentAddress, open_traffic_watch

BUDGETS = dict_resource("policy", "v1", "poddisruptionbudgets")
PORT = 18080


class Outcome(NamedTuple):
    """What a roll of all nodes did to the clients."""

    sent: int
    lost: list
    seconds: float
    least: int
    """The fewest healthy pods at any instant."""


class TrafficRig:
    """``delays`` are the seconds by which the proxy of each node is late, in order; ``kinds`` their programs, in turn."""

    def __init__(self, directory, *, delays, kinds=tuple(KINDS), replicas=6, least=4, rate=300):
        self._directory = directory
        self._delays, self._kinds = delays, kinds
        self.replicas, self.least, self.rate = replicas, least, rate
        self.said = ""

    @contextlib.asynccontextmanager
    async def up(self):
        count = len(self._delays)
        (self._directory / "lab").mkdir()
        async with Lab(self._directory / "lab", "processes", count=count).up() as self.lab:
            self.nodes = [f"lab-{number + 1}" for number in range(count)]
            self.kubectl = Kubectl(self._directory / "lab" / "kubeconfig", self._directory)
            await self._create_shop()
            proxies = [KINDS[self._kinds[i % len(self._kinds)]](self._directory / f"p{i}") for i in range(count)]
            self.feeders = [
                ProxyFeeder(self.lab.client, proxy, delay) for proxy, delay in zip(proxies, self._delays, strict=True)
            ]
            group = OrderedTaskGroup()
            try:
                await asyncio.gather(*(one.start() for one in proxies))
                self._feeding = [group.start(one.run(), f"feeder of {one.proxy.kind}") for one in self.feeders]
                await self.until_known()
                by_node = dict(zip(self.nodes, self.feeders, strict=True))
                async with LabPages(self.lab, self._directory, by_node):
                    yield self
            finally:
                await group.cancel()
                for one in proxies:
                    await one.stop()

    async def _create_shop(self):
        container = {
            "name": "main",
            "image": IMAGE,
            "command": ["python3", "-c", SERVER],
            "ports": [{"containerPort": PORT}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        }
        labels = {"app": "shop"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        deployment = {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": template}
        ports = [{"name": "http", "port": 80, "targetPort": PORT}]
        budget = {"minAvailable": self.least, "selector": {"matchLabels": labels}}
        for kind, spec in (
            (SERVICES, {"selector": labels, "ports": ports}),
            (BUDGETS, budget),
            (DEPLOYMENTS, deployment),
        ):
            await self.lab.client.create(kind, {"metadata": {"name": "shop"}, "spec": spec}, namespace="default")
        await self.lab.client.create(NAMESPACES, {"metadata": {"name": DRAINS_NAMESPACE}})
        await self.until_whole()

    async def until_whole(self):
        """All replicas are ready, and no other pod is left."""

        async def whole():
            pods = await self.lab.pods(app="shop")
            return len(pods) == self.replicas and all(
                "deletionTimestamp" not in pod["metadata"]
                and any(
                    one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ())
                )
                for pod in pods
            )

        await self.lab.until(whole)

    async def until_known(self):
        """Every proxy knows exactly the pods that there are."""

        async def known():
            for task in self._feeding:
                assert not task.done(), task.exception()
            uids = {pod["metadata"]["uid"] for pod in await self.lab.pods(app="shop")}
            return all({one.uid for one in feeder.known} == uids for feeder in self.feeders)

        await self.lab.until(known)

    # -- the ways to empty a node --------------------------------------------------------------------------------------

    async def roll(self, empty, nodes):
        """Empties each of the nodes in turn by ``empty(node)``, under load."""
        await self.until_whole()
        await self.until_known()
        load = HttpLoad(lambda: [("127.0.0.1", one.proxy.port) for one in self.feeders], rate=self.rate, kept=15)
        watcher = BudgetWatcher(str(PROGRAM), self.kubectl.environment, "shop", self.least)
        watching = asyncio.ensure_future(watcher.run())
        customers = asyncio.ensure_future(load.run())
        try:
            await self.lab.until(lambda: asyncio.sleep(0, load.answered > 100 and watcher.least is not None))
            begun = CLOCK.boottime()
            for node in nodes:
                await empty(node)
            seconds = CLOCK.boottime() - begun
            answered = load.answered
            await self.lab.until(lambda: asyncio.sleep(0, load.answered > answered + 100))
        finally:
            await cancel_and_wait(customers, watching)
        assert load.sent == load.answered + len(load.lost)
        return Outcome(load.sent, load.lost, seconds, watcher.least)

    async def drain_by_kubectl(self, node):
        """kubectl waits until the pods are gone; then the node is scheduled to again as soon as the shop is whole."""
        await asyncio.to_thread(self.kubectl, f"drain {node} --ignore-daemonsets --timeout=120s", timeout=150)
        await self.until_whole()
        await asyncio.to_thread(self.kubectl, f"uncordon {node}")

    async def drain_by_lastcall(self, node):
        """``lastcall drain`` ends when the pods are gone and their traffic has moved."""
        done = await self._call_drain(node, "--timeout=120s")
        self.said += done.stderr
        assert done.returncode == 0, done.stderr
        await self.until_whole()
        await asyncio.to_thread(self.kubectl, f"uncordon {node}")

    async def plan_drain(self, node):
        """What ``lastcall drain --plan`` prints."""
        return (await self._call_drain(node, "--plan")).stdout

    async def _call_drain(self, node, *options):
        return await asyncio.to_thread(
            subprocess.run,
            [PROGRAM.parent / "lastcall", "drain", node, "--ignore-daemonsets", *options],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
            env=self.kubectl.environment,
        )

    async def learn_settle_time(self):
        """What the agents' pages tell now, when all of them have told: on a busy machine some answer too late."""
        client, authority = self.lab.client, self.lab.plane.authority.decode()
        nodes = [await client.get(NODES.with_shape(DrainNode), name) for name in self.nodes]
        agents = [AgentAddress(node.name, node.internal_address) for node in nodes]
        async with open_traffic_watch(client, CLOCK, Random(1), agents, authority=authority) as watch:
            async with asyncio.timeout(90):
                while watch.settle_time.source != f"the kube-proxies of {len(self.nodes)} nodes":
                    await watch.begin([], [ProxyNode(name, True) for name in self.nodes])
            return watch.settle_time

    async def hold_by_policy(self, *, more=0):
        """Has the pods' SIGTERM wait for the learnt settle time and ``more``, as an administrator would."""
        seconds = sleep_seconds(await self.learn_settle_time()) + more
        for obj in pod_policy_objects():
            await asyncio.to_thread(self.kubectl, "apply -f -", given=obj)
        await asyncio.to_thread(self.kubectl, f"label namespace default {SETTLE_SECONDS}={seconds} --overwrite")
        await asyncio.to_thread(self.kubectl, "rollout restart deployment/shop")
        await asyncio.to_thread(self.kubectl, "rollout status deployment/shop --timeout=80s")
        await self.until_whole()
        return seconds


def missing_proxies():
    """The programs that are not on this machine."""
    return [kind for kind in KINDS if find_program(kind) is None]
