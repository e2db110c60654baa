"""Candidates of one Lease in virtual time, at the lab's API server, and a watcher: never two that lead at once."""

import asyncio
from random import Random

from lastcall.adapters.kube.client import MERGE, Client
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.kube.resources import LEASES
from lastcall.aio import cancel_and_wait
from lastcall.model.leadership import JITTER, ElectionTerms
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.simulation.clocks import NodeClock
from lastcall_lab.simulation.network_faults import FaultInjector, FaultyTransport
from lastcall_lab.virtual import VirtualProcess

LEASE = ObjectKey("kube-system", "lastcall")
TERMS = ElectionTerms()
LATEST = TERMS.lease + TERMS.retry * (1 + JITTER) + TERMS.renew / 2 + 1.5
"""Seconds after which there is a leader at the latest: a lease runs out, a pause, an attempt that hangs."""


class Candidate:
    """One life of a program that leads; ``acts`` says when it has done so."""

    def __init__(self, world, name, life, *, fuse=None):
        self.name, self.life = name, life
        self.acts, self.ended = [], []
        self.clock = NodeClock(world.clock)
        self.process = VirtualProcess(f"{name}-{life}", fuse=fuse)
        self._world = world
        transport = FaultyTransport(InProcessTransport(world.server), world.weather, name)
        self.election = LeaderElector(
            Client(transport, manager="lastcall"),
            LEASE,
            f"{name}_{life}",
            clock=self.clock,
            random=Random(f"{name}/{life}"),
            terms=TERMS,
        )
        self.task = self.process.start(self.election.lead(self.work), "candidate")

    async def work(self):
        try:
            while True:
                if self.election.leads:
                    self.acts.append(self._world.now)
                await asyncio.sleep(0.1)
        finally:
            self.ended.append(self._world.now)


class World:
    """``leaders``: (since, who) of each that was seen to lead, in order."""

    def __init__(self, *, lease=True):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))
        self.admin = Client(InProcessTransport(self.server), manager="kubectl")
        self.struck = []
        self.weather = FaultInjector(self.clock, "1", lambda *what: self.struck.append(what))
        self.candidates = []
        self.leaders = []
        self._lease = lease

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    async def __aenter__(self):
        if self._lease:
            await self.admin.create(LEASES, {"metadata": {"name": LEASE.name}}, namespace=LEASE.namespace)
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_):
        for one in self.candidates:
            one.process.kill()
        await cancel_and_wait(self._watcher)

    def candidate(self, name, life=0, **rest):
        one = Candidate(self, name, life, **rest)
        self.candidates.append(one)
        return one

    async def _watch(self):
        """What is to hold at each moment. The dead count too: what they have begun may still be going on."""
        while True:
            leading = [one.election._identity for one in self.candidates if one.election.leads]
            assert len(leading) < 2, f"{self.now}: {leading} lead at once"
            if leading and (not self.leaders or self.leaders[-1][1] != leading[0]):
                self.leaders.append((self.now, leading[0]))
            await asyncio.sleep(0.05)

    async def until_led(self, seconds=LATEST):
        """The living candidate that leads; it must be there in so many seconds."""
        begun = self.now
        while True:
            if self._watcher.done():
                self._watcher.result()
            leading = [one for one in self.candidates if one.process.alive and one.election.leads]
            if leading:
                return leading[0]
            assert self.now - begun < seconds, f"{self.now}: nobody leads since {begun}"
            await asyncio.sleep(0.05)

    async def record(self):
        lease = await self.admin.get(LEASES, LEASE.name, namespace=LEASE.namespace)
        return lease["spec"]

    async def change(self, **spec):
        await self.admin.patch(LEASES, LEASE.name, {"spec": spec}, namespace=LEASE.namespace, kind=MERGE)


def lives(scene, **rest):
    """Runs ``scene(world)`` in virtual time."""

    async def run():
        async with World(**rest) as world:
            result = await scene(world)
            if world._watcher.done():
                world._watcher.result()
            return result

    return virtual.run(run())
