"""Several nodes whose watchdogs are petted by agreement too, in virtual time, at the lab's API server, and a controller.

What is to hold at each moment: what the controller takes for dead has been reset.
"""

import asyncio
import base64
from random import Random

from support.watchdog.watchdog_node import Line

from lastcall import names
from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import LEASES, NAMESPACES, NODES, SECRETS
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.aio import cancel_and_wait
from lastcall.errors import NotFound
from lastcall.failover.evidence import outage_reports
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot
from lastcall.failover.evidence.outage_reports import OutageReportLog
from lastcall.failover.evidence.peer_reports import PeerReports, adds_evidence
from lastcall.failover.evidence.watchdog_observation import Reachability, observe_lease, watchdog_evidence
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall.watchdog.peers import WatchdogPeers
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.datagrams import FakeNetwork
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.virtual import VirtualProcess

SETTINGS = WatchdogSettings(
    device="/dev/watchdog0", lease_seconds=45, pet_seconds=5, timeout_seconds=11, drift=0.001, peers=PeerSettings()
)
BOUND = SETTINGS.timing_with().reset_bound
KEY = bytes(range(32))
_LEASES = LEASES.with_shape(WatchedLease)


class Machine:
    """One node, its device and its agent."""

    def __init__(self, cluster, name, address):
        self.cluster, self.name, self.address = cluster, name, address
        self.line = Line(InProcessTransport(cluster.server))
        self.dog = FakeWatchdog(self._reset)
        self.boots, self.resets, self.rounds = 0, [], []
        self.held = ""
        self.comes_back = False
        self.restarts = True
        self.process = None

    @property
    def boot_id(self):
        return f"boot-{self.name}-{self.boots}"

    def agent(self):
        """A life of the agent begins."""
        self.process = VirtualProcess(f"agent {self.name}", on_death=self._agent_died)
        self.process.call(self._begin)
        self.process.call(self.keeper.suspend, self.held)

    def _begin(self):
        cluster, settings = self.cluster, self.cluster.settings
        self.peers = WatchdogPeers(
            self.name,
            boot_id=self.boot_id,
            port=settings.peers.port,
            members=KubeMembers(Client(self.line, manager="agent")),
            opens=cluster.network.open,
            clock=cluster.clock,
            pet=settings.pet_seconds,
            report=settings.timing_with().report_after,
            draw=cluster.random.randbytes,
        )
        self.keeper = WatchdogKeeper(
            settings,
            device=WatchdogDeviceFile(settings.device, self.dog),
            lease=KubeWatchdogLease(Client(self.line, manager="agent"), self.name, cluster.clock),
            clock=cluster.clock,
            boot_id=self.boot_id,
            peers=self.peers,
            on_round=self.rounds.append,
        )
        self.process.start(self.peers.run(), "peers")
        self.process.start(self.keeper.run(), "watchdog")

    def hold(self, why):
        self.held = why
        if self.process.alive:
            self.process.call(self.keeper.suspend, why)

    def _agent_died(self):
        self.dog.kill_holder()
        self.cluster.network.remove_socket((self.address, self.cluster.settings.peers.port))
        if self.restarts and not self.cluster.over:
            asyncio.get_running_loop().call_later(1, self._again)

    def _again(self):
        if self.restarts and not self.process.alive and not self.cluster.over:
            self.agent()

    def _reset(self):
        self.resets.append(self.cluster.now)
        self.boots += 1
        self.held = ""
        self.restarts = False
        self.process.kill()
        self.dog.cut_power()
        self.restarts = self.comes_back
        if self.comes_back and not self.cluster.over:
            asyncio.get_running_loop().call_later(30, self._again)

    def cut_off(self, *, api=True, peers=True):
        """From the API server, from other nodes, or both."""
        self.line.cut = self.line.cut or api
        if peers:
            self.cluster.apart.add(self.address)

    def end(self):
        self.restarts = False
        self.process.kill()
        self.dog.cut_power()


class Cluster:
    """``size`` nodes, n1 and so on, and a controller that looks at their Leases. ``apart``: addresses that reach no others."""

    def __init__(self, size=3, *, settings=SETTINGS, seed=1):
        self.clock, self.random = virtual.VirtualClock(), Random(seed)
        self.server = ApiServer(self.clock, Random(1))
        self.admin = Client(InProcessTransport(self.server), manager="kubectl")
        self.settings = settings
        self.network = FakeNetwork(self._lag)
        self.apart = set()
        self.part_of = {}
        self.lags = lambda: 0.001
        self.watch_lag = 0.0
        self.proofs = {}
        self.over = False
        self.machines = {f"n{n}": Machine(self, f"n{n}", f"10.0.0.{n}") for n in range(1, size + 1)}

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    def _lag(self, sender, receiver):
        if sender in self.apart or receiver in self.apart:
            return None
        return self.lags() if self.part_of.get(sender) == self.part_of.get(receiver) else None

    def split(self, *parts):
        """Each part of them, by name, reaches its own nodes alone; the first one has the API server."""
        for number, part in enumerate(parts):
            for name in part:
                machine = self.machines[name]
                self.part_of[machine.address] = number
                machine.line.cut = number > 0

    def heal(self):
        self.apart.clear()
        self.part_of.clear()
        for machine in self.machines.values():
            machine.line.cut = machine.line.deaf = machine.line.hangs = False

    def outage(self):
        """The API server is away for all agents."""
        for machine in self.machines.values():
            machine.line.cut = True

    async def add_node(self, name, address):
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        await self.admin.create(NODES, {"metadata": {"name": name}, "status": status})
        await self.admin.patch(NODES, name, {"status": status}, subresource="status")

    async def forget(self, name, *, node):
        """Somebody deletes the Node, or the Lease of its agent."""
        try:
            if node:
                await self.admin.delete(NODES, name)
            else:
                await self.admin.delete(LEASES, name, namespace=names.NODES_NAMESPACE)
        except NotFound:
            pass

    async def __aenter__(self):
        for name in (names.SYSTEM_NAMESPACE, names.NODES_NAMESPACE):
            await self.admin.create(NAMESPACES, {"metadata": {"name": name}})
        secret = {"metadata": {"name": names.PEERS_SECRET}, "data": {"key": base64.b64encode(KEY).decode()}}
        await self.admin.create(SECRETS, secret, namespace=names.SYSTEM_NAMESPACE)
        for machine in self.machines.values():
            await self.add_node(machine.name, machine.address)
        self.controller()
        self._looking = asyncio.create_task(self._look())
        for machine in self.machines.values():
            machine.agent()
        return self

    async def __aexit__(self, *_):
        self.over = True
        for machine in self.machines.values():
            machine.end()
        await cancel_and_wait(self._looking)

    # -- the controller ------------------------------------------------------------------------------------------------

    def controller(self):
        """One that has just begun."""
        self.watched, self.calmness, self.coming = {}, OutageReportLog(), []
        self.hearsay, self.signs = PeerReports(), {}

    async def _leases(self):
        return (await self.admin.list(_LEASES, namespace=names.NODES_NAMESPACE)).items

    async def _look(self):
        while True:
            nodes = {node["metadata"]["name"] for node in (await self.admin.list(NODES)).items}
            leases = await self._leases()
            self.coming.append((self.now + self.watch_lag, nodes, leases))
            while self.coming and self.coming[0][0] <= self.now:
                _, nodes, leases = self.coming.pop(0)
                self._hear(nodes, leases)
            for name in list(self.watched):
                await self._judge(name)
            await asyncio.sleep(0.7)

    def _hear(self, nodes, leases):
        self.calmness.rosters.record_nodes(nodes)
        for lease in leases:
            name = lease.metadata.name
            watched = self.watched[name] = self._looked(name, lease)
            self.calmness.observe_promise(name, watched.promise, self.now)

    def _looked(self, name, lease):
        meta, spec = lease.metadata, lease.spec
        for _, sign in self.hearsay.observe_lease(lease, self.now):
            if adds_evidence(self.signs.get(sign.boot_id), sign):
                self.signs[sign.boot_id] = sign
        return observe_lease(
            self.watched.get(name), annotations=meta.annotations, renewed=spec.renew_time, now=self.now
        )

    async def _judge(self, name):
        """As ``failover.doing.gathering`` does it."""
        before = self.watched[name]
        if before.promise is None or before.promise.armed_timing is None:
            return
        if self.now < before.since + 30:
            return
        asked = self.now
        live = {lease.metadata.name: lease for lease in await self._leases()}
        if name not in live:
            return
        watched = self.watched[name] = self._looked(name, live[name])
        fact = self._fact(watched, asked)
        if fact and fact.peers and outage_reports.is_survey_due(fact, self.calmness.last_survey_at, asked):
            self.calmness.add_survey(outage_reports.survey_leases(asked, live.values()))
            fact = self._fact(watched, asked)
        if fact:
            self._conclude(self.machines[name], fact)

    def _fact(self, watched, read):
        peers = watched.promise.peers if watched.promise else None
        others = self.calmness.silent_counts(peers.nodes, self.now) if peers else []
        contacts = [Reachability(at=-1, reachable=1, nodes=1)]
        return watchdog_evidence(watched, read=read, contacts=contacts, calm=others)

    def _conclude(self, machine, fact):
        signs = [self.signs[fact.boot_id]] if fact.boot_id in self.signs else []
        if assess(Boot(id=fact.boot_id, system_uuid="m", since=-1), [fact, *signs], self.now).state is BootState.DEAD:
            alive = machine.boot_id == fact.boot_id and machine.dog.running
            assert not alive, f"{self.now}: {fact.boot_id} is taken for dead, and lives"
            self.proofs.setdefault(fact.boot_id, self.now)

    def look(self):
        """Raises what was found not to hold."""
        if self._looking.done():
            self._looking.result()


def together(scene, size=3, **rest):
    """Runs ``scene(cluster)`` in virtual time."""

    async def run():
        async with Cluster(size, **rest) as cluster:
            result = await scene(cluster)
            cluster.look()
            return result

    return virtual.run(run())
