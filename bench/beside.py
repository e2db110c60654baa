"""The agent beside a kubelet: memory for the pods that it watches, requests for each, and how soon they end.

The API server is the lab's, systemd, logind and containerd are real, and a service stands for the kubelet. Pods of a
ReplicaSet with a label are in no Service, so they wait for the list of EndpointSlices and for no withdrawal. Where the
programs of a real control plane and kubelet are, bare pods end beside that kubelet too, in turn with its own shutdown.
"""

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path

import beside_kubelet
import lab
import lab_work
import real_control_plane
from beside_node import BesideNode, host_of, service_manager
from failover_turns import connected
from figures import Figures, Row, pairs
from programs import Program
from rest import rss

from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall.errors import AlreadyExists
from lastcall.manifests.agent import AgentChoices, agent_objects

MEMORY = 60
"""MiB."""
FIRST, RELEASE = 0.03, 0.4
"""Seconds from the signal to the first SIGTERM, and of ten and three pods to the release of the lock."""


class Beside:
    """``rows`` is its part of the table. ``turns``: how often each measurement is made.

    ``left_out`` says what was not measured, and why.
    """

    def __init__(self, containerd, *, quick, turns, tell):
        self._containerd = containerd
        self._watched = (3,) if quick else (110, 500)
        self._critical, self._all = (1, 3) if quick else (3, 13)
        self._many = 3 if quick else 50
        self._settled = 1 if quick else 10
        self._turns = turns
        self._few = turns if quick else 3 * turns
        self._tell = tell
        self._directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        self.left_out = []

    @staticmethod
    def why_not():
        return service_manager.why_not()

    async def rows(self):
        try:
            return [*await self._at_lab(), *await self._at_real()]
        finally:
            shutil.rmtree(self._directory)

    async def _at_lab(self):
        access, audit = self._directory / "kubeconfig", self._directory / "audit"
        said = ("lab", "up", "--nodes=0", f"--kubeconfig={access}", f"--audit-log={audit}", *lab.alone())
        program = await Program.lastcall(*said, log=self._directory / "up.log", bus="")
        try:
            await program.until_says("The lab is up", 120)
            async with connected(access) as client:
                await _install(client)
                self._node = lambda: BesideNode(self._containerd, client, access, audit)
                return [*await self._memory(client), *await self._two_phases(), *await self._parallel()]
        finally:
            await program.stop()

    async def _at_real(self):
        if why := real_control_plane.why_not("etcd", "kube-apiserver", "kubelet"):
            self.left_out.append(f"beside a real kubelet: {why}")
            return []
        directory, mine, theirs = self._directory / "real", [], []
        directory.mkdir()
        async with (
            real_control_plane.RealControlPlane(directory).running() as real,
            connected(real.kubeconfig("admin")) as client,
        ):
            await _install(client)
            for number in range(1, self._few + 1):
                for own, samples in ((True, theirs), (False, mine)):
                    self._tell(f"beside a real kubelet: {self._all} pods, {number} of {self._few}")
                    turn = beside_kubelet.measured(
                        self._containerd, client, real, own=own, critical=self._critical, count=self._all
                    )
                    samples.append(await turn)
        return self._timed_rows("a real kubelet", mine, theirs)

    async def _memory(self, client):
        """The pods are only watched: nothing runs of them."""
        found, there = [], 0
        for count in self._watched:
            self._tell(f"beside: {count} pods watched")
            await lab_work.rate(16, count - there, lambda number, first=there: _create(client, first + number))
            there = count
            found.append(await self._watching())
        names = [f"watched-{number:05d}" for number in range(there)]
        await lab_work.rate(16, there, lambda i: client.delete(PODS, names[i], namespace="default", grace=0))
        what = "beside a kubelet: RSS of the agent, pods watched"
        return [
            Row(what, count, Figures((weight,), "MiB"), limit=MEMORY)
            for count, weight in zip(self._watched, found, strict=True)
        ]

    async def _watching(self):
        node = self._node()
        async with host_of(node, 0) as logind:
            agent = await node.agent(logind)
            try:
                await agent.until_says("INFO    armed")
                await asyncio.sleep(self._settled)  # the checkpoint is written
                return rss(agent.process.pid)
            finally:
                await agent.stop()

    @property
    def _phases(self):
        return f"{self._all - self._critical} + {self._critical} pods"

    async def _two_phases(self):
        samples = []
        for number in range(1, self._few + 1):
            self._tell(f"beside: {self._all} pods, {number} of {self._few}")
            samples.append(await self._measured(self._all, critical=self._critical))

        requests = Figures(tuple(sample.requests / self._all for sample in samples), "requests")
        return [
            *self._timed_rows("a kubelet", samples),
            Row("beside a kubelet: API requests for each pod of a shutdown", self._all, requests),
        ]

    def _timed_rows(self, who, samples, peers=()):
        """``peers`` are the kubelet's own shutdowns."""

        def row(what, moment, limit=None):
            kubelet = str(Figures(tuple(map(moment, peers)))) if peers else ""
            said = f"beside {who}: {self._phases}, {what}"
            return Row(said, self._all, Figures(tuple(map(moment, samples))), limit=limit, kubelet=kubelet)

        return [
            row("first SIGTERM", lambda sample: sample.terms[0], FIRST),
            row("last SIGTERM of the first phase", lambda sample: sample.terms[-1 - self._critical]),
            row("last SIGTERM", lambda sample: sample.terms[-1]),
            row("lock released", lambda sample: sample.released, RELEASE),
        ]

    async def _parallel(self):
        mine, bare = [], []
        for number in range(1, self._turns + 1):
            self._tell(f"beside: {self._many} pods, {number} of {self._turns}")
            bare.append(await self._measured(self._many, floor=True))
            mine.append(await self._measured(self._many))
        last = [one.terms[-1] for one in mine], [one.terms[-1] for one in bare]
        gone = [one.released for one in mine], [one.finished for one in bare]
        return [
            pairs("beside a kubelet: last SIGTERM", self._many, *last, limit_percent=10),
            pairs("beside a kubelet: lock released; floor: last pod gone", self._many, *gone),
        ]

    async def _measured(self, count, *, critical=0, floor=False):
        node = self._node()
        async with host_of(node, count, critical) as logind:
            return await (node.measure_floor() if floor else node.measure(logind))


async def _install(client):
    """What the agent's manifests define, but for what runs in pods."""
    for obj in agent_objects(AgentChoices()):
        if obj["kind"] in ("CustomResourceDefinition", "Namespace"):
            group, _, version = obj["apiVersion"].rpartition("/")
            kind = dict_resource(group, version, f"{obj['kind'].lower()}s")
            with contextlib.suppress(AlreadyExists):
                await client.create(kind, obj)


async def _create(client, number):
    made = lab_work.pod(number, "watched")
    made["spec"]["nodeName"] = "bench"
    await client.create(PODS, made, namespace="default")
