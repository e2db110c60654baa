"""A node whose pods an API server describes, for one measurement: the agent beside what stands for a kubelet.

The pods are created at the API server and started in containerd under their uids, as a kubelet would. The kubelet is a
service of a real systemd on logind's bus; it runs nothing, and takes as long to end as a kubelet.
"""

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from nodes import SETTLE, STARTS_AT_ONCE, ContainerNode
from pods import CRITICAL, manifest, names
from programs import Ear

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import AlreadyExists, NotFound, Unavailable
from lastcall.model.pods import Pod
from lastcall.model.shutdown import LockReleased, from_lines
from lastcall_lab.containerd import LabCriRuntime
from lastcall_lab.private_logind import PrivateLogind

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.host import service_manager

__all__ = ["BesideNode", "BesideSample", "host_of", "service_manager"]

NODE = "bench"
KUBELET = "kubelet.service"
ENDS = 0.05
"""Seconds in which the stand-in for the kubelet ends: a kubelet takes 0.02 to 0.1."""

UNITS = {
    **service_manager.OTHER_BUS,
    "bench.target": f"[Unit]\nWants=dbus.service {KUBELET}\n",
    "poweroff.target": "[Unit]\nRequires=down.service\nAfter=down.service\n",
    "down.service": "[Service]\nType=oneshot\nExecStart=/bin/sleep 100000\n",
    KUBELET: f"[Service]\nExecStart=/bin/sh -c 'trap \"sleep {ENDS}; exit\" TERM; while :; do sleep 1000 & wait; done'\n",
}
"""What logind starts ends nothing here, and as on a machine its job does not end."""


@dataclass(frozen=True)
class BesideSample:
    """Seconds since PrepareForShutdown was seen by others than the agent. ``requests`` reached the API server."""

    terms: list
    released: float
    requests: int = 0


class BesideNode(ContainerNode):
    """``client`` and ``access`` reach an API server whose audit log is ``audit``."""

    def __init__(self, containerd, client, access, audit):
        super().__init__(containerd)
        self._client, self._access, self._audit = client, access, audit
        self._pods = []

    def add(self, count, critical):
        self.count, self.critical = count, critical

    async def start_pods(self, logind):
        with contextlib.suppress(AlreadyExists):
            await self._client.create(NODES, {"metadata": {"name": NODE}})
        with contextlib.suppress(AlreadyExists):
            await self._client.create(LEASES, {"metadata": {"name": NODE}, "spec": {}}, namespace="kube-node-lease")
        directory, cgroup = self.directory / "pods", self.containerd.cgroup
        runtime = LabCriRuntime(self.containerd.endpoint, SystemClock(), directory=directory, cgroup=cgroup)
        turn = asyncio.Semaphore(STARTS_AT_ONCE)

        async def start(name, priority):
            async with turn:
                await runtime.start_pod(msgspec.convert(await self._create(name, priority), Pod))

        await asyncio.gather(*(start(*one) for one in names(self.count, self.critical).items()))
        await runtime.close()
        await self.truth.until("start", self.count)

    async def _create(self, name, priority):
        """A pod of a ReplicaSet, with a label, in no Service. Returns it as it is started."""
        made = manifest(name, self.truth, priority=priority, in_container=True)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "bench", "uid": "bench", "controller": True}
        about = {"name": name, "labels": {"app": name}, "ownerReferences": [owner]}
        spec = made["spec"] | {"nodeName": NODE, "tolerations": [{"operator": "Exists"}]}
        del spec["priority"]
        if priority >= CRITICAL:
            spec["priorityClassName"] = "system-node-critical"
        there = await self._client.create(PODS, {"metadata": about, "spec": spec}, namespace="default")
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await self._client.patch(PODS, name, ready, namespace="default", subresource="status", kind=STRATEGIC)
        self._pods.append(name)
        known = {"name": name, "namespace": "default", "uid": there["metadata"]["uid"], "labels": about["labels"]}
        return {"metadata": known, "spec": made["spec"]}

    async def agent(self, logind):
        endpoint = f"--container-runtime-endpoint={self.containerd.endpoint}"
        return await self.program(("agent",), logind, endpoint, f"--kubeconfig={self._access}")

    async def _shut_down(self, agent, logind):
        await agent.until_says("INFO    armed")
        await asyncio.sleep(2 * SETTLE)
        ear = await Ear.on(logind.address)
        since = time.time()
        await logind.power_off()
        terms = await self.truth.until("TERM", self.count)
        released = await self._released()
        until = time.time()
        ear.close()
        return BesideSample(
            terms=sorted(at - ear.at for at in terms.values()),
            released=released - ear.at,
            requests=sum(since <= wall <= until for wall in self._request_times()),
        )

    async def _released(self):
        """When the lock was released, by the journal."""
        files = JournalFiles(self.state)
        for _ in range(600):
            for shutdown_id in files.list_ids():
                for event in from_lines(files.read_lines(shutdown_id)):
                    if isinstance(event, LockReleased):
                        return event.at
            await asyncio.sleep(0.1)
        raise TimeoutError("the lock was not released within a minute")

    def _request_times(self):
        """Those that the API server has had, seconds since 1970."""
        with self._audit.open("rb") as lines:
            return [json.loads(line)["wall"] for line in lines]

    async def clean_up(self):
        for name in self._pods:
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, name, namespace="default", grace=0)
        with contextlib.suppress(NotFound):
            await self._client.delete(NODES, NODE)
        await super().clean_up()


@contextlib.asynccontextmanager
async def host_of(node, count, critical=0):
    """The node with its pods, beside a logind and a systemd of its own; all are gone afterwards."""
    logind = PrivateLogind()
    logind.write_drop_in("10-bench.conf", "[Login]\nInhibitDelayMaxSec=120\n")
    state = node.directory / "host"
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.to_thread(logind.__enter__)
        stack.push_async_callback(asyncio.to_thread, logind.__exit__, None, None, None)
        logind._processes["recorder"].kill()  # systemd takes its name on the bus
        logind._processes["recorder"].wait()
        systemd = service_manager.service_manager(state, UNITS, start="bench.target", bus=logind.address)
        await asyncio.to_thread(systemd.__enter__)
        stack.push_async_callback(asyncio.to_thread, systemd.__exit__, None, None, None)
        stack.push_async_callback(node.clean_up)
        await _until_runs(logind)
        node.add(count, critical)
        await node.start_pods(logind)
        yield logind


async def _until_runs(logind):
    """Until the stand-in for the kubelet runs."""
    for _ in range(600):
        with contextlib.suppress(Unavailable):
            async with SystemdUnits.open(logind.address) as units:
                [kubelet] = await units.unit_states(KUBELET)
                if kubelet.active == "active":
                    return
        await asyncio.sleep(0.1)
    raise TimeoutError("systemd does not come to the bus of logind within a minute")
