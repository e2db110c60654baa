"""Five nodes without BMCs whose watchdogs are petted by agreement too, and the failover controller, in virtual time, over
storage that tells who has written when: what is forced, and what is not, when some of them have lost the API server."""

import base64
import functools
from random import Random

import pytest
from support.failover.virtual_cluster import NAMES, failing_over
from support.watchdog.watchdog_node import Line

from lastcall import names
from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.resources import NODES, SECRETS
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.failover.evidence.assessment import BootState
from lastcall.model.power import PowerState
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall.watchdog.peers import WatchdogPeers
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.datagrams import FakeNetwork
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.volume_events import find_violations

pytestmark = pytest.mark.timeout(120)

SETTINGS = WatchdogSettings(lease_seconds=45, pet_seconds=5, timeout_seconds=12, peers=PeerSettings())
BOUND = SETTINGS.timing_with().reset_bound
RENEWALS = 2 * SETTINGS.pet_seconds


class Machine:
    """A node that stays off once its watchdog has fired."""

    def __init__(self, machines, node, address):
        self.machines, self.node, self.address = machines, node, address
        self.line = Line(InProcessTransport(machines.world.cluster.server))
        self.resets = []
        self.dog = FakeWatchdog(self._reset)
        self.process = VirtualProcess(f"agent {node}", on_death=self.dog.kill_holder)
        self.process.call(self._begin)

    def _begin(self):
        clock = self.machines.world.cluster.clock
        peers = WatchdogPeers(
            self.node,
            boot_id=f"boot-{self.node}-1",
            port=9468,
            members=KubeMembers(Client(self.line)),
            opens=self.machines.network.open,
            clock=clock,
            pet=SETTINGS.pet_seconds,
            report=SETTINGS.timing_with().report_after,
            draw=Random(self.node).randbytes,
        )
        self.keeper = WatchdogKeeper(
            SETTINGS,
            device=WatchdogDeviceFile("/dev/watchdog0", self.dog),
            lease=KubeWatchdogLease(Client(self.line), self.node, clock),
            clock=clock,
            boot_id=f"boot-{self.node}-1",
            peers=peers,
        )
        self.process.start(peers.run(), "peers")
        self.process.start(self.keeper.run(), "watchdog")
        self.keeper.suspend("")

    def _reset(self):
        self.resets.append(self.machines.world.now)
        self.machines.world.nodes.pull(self.node)

    def pulled(self):
        self.process.kill()
        self.dog.cut_power()


class Machines:
    """All of them; those that are cut off from the control plane go on, and write, and hear each other."""

    def __init__(self, world):
        self.world, self.network = world, FakeNetwork()
        self.all = {}
        self._pull, world.nodes.pull = world.nodes.pull, self.pull

    async def begin(self):
        data = {"key": base64.b64encode(b"k" * 32).decode()}
        secret = {"metadata": {"name": names.PEERS_SECRET}, "data": data}
        await self.world.cluster.create(SECRETS, secret, namespace=names.SYSTEM_NAMESPACE)
        for number, name in enumerate(NAMES):
            address = f"10.0.0.{number}"
            status = {"status": {"addresses": [{"type": "InternalIP", "address": address}]}}
            await self.world.cluster.patch(NODES, name, status, subresource="status", namespace="")
            self.all[name] = Machine(self, name, address)
        self.world.start()
        await self.world.cluster.settle(60)

    def cut_off(self, *cut):
        for name in cut:
            self.all[name].line.cut = True
            self.world.nodes.silent.add(name)

    def pull(self, name):
        """Its BMC, or its watchdog, takes the power away."""
        self.all[name].pulled()
        self._pull(name)

    def verdict(self, name):
        """The one that was decided by last; None if the node is in no trouble."""
        found = [one for one in self.world.candidates[-1].controller.reconcilers if one.name == name]
        return found[0].gathered.case.verdict if found and found[0].gathered else None

    async def heal(self, *healed):
        for name in healed:
            self.all[name].line.cut = False
            self.world.nodes.silent.discard(name)
            await self.world.nodes.back(name)

    @property
    def reset(self):
        return [name for name, machine in self.all.items() if machine.resets]

    def end(self):
        for machine in self.all.values():
            machine.pulled()


def scenes(test=None, **policy):
    """Runs ``test(world, machines, node, others)``; the database runs on ``node``. Without fencers if no policy is given."""
    if test is None:
        return functools.partial(scenes, **policy)

    @failing_over(policy=policy or {"fencers": []})
    async def scene(world):
        machines = Machines(world)
        await machines.begin()
        node = world.place()
        try:
            await test(world, machines, node, [name for name in NAMES if name != node])
            assert find_violations(world.nodes.storage.records) == []
        finally:
            machines.end()

    return scene


@scenes
async def test_a_node_that_is_cut_off_is_failed_over_when_its_watchdog_has_reset_it(world, machines, node, others):
    cut = world.now
    machines.cut_off(node)
    await world.until(lambda: world.place() not in (None, node), 400)
    assert machines.reset == [node]
    assert machines.all[node].resets[0] - cut < BOUND
    assert BOUND - SETTINGS.pet_seconds - 1 < world.now - cut < BOUND + RENEWALS + 40
    assert world.verbs()[0] == "taint"


@scenes
async def test_a_majority_that_is_cut_off_lives_on_and_nothing_is_forced(world, machines, node, others):
    machines.cut_off(node, *others[:2])
    await world.cluster.settle(600)
    assert machines.reset == []
    assert world.verbs() == []


@scenes
async def test_when_the_majority_is_back_the_one_that_stays_away_is_failed_over(world, machines, node, others):
    machines.cut_off(node, *others[:2])
    await world.cluster.settle(300)
    await machines.heal(*others[:2])
    back = world.now
    await world.until(lambda: world.place() not in (None, node), 600)
    assert machines.reset == [node]
    assert machines.all[node].resets[0] > back


@scenes
async def test_an_outage_of_the_api_server_costs_nothing(world, machines, node, others):
    for machine in machines.all.values():
        machine.line.cut = True
    await world.cluster.settle(400)
    for machine in machines.all.values():
        machine.line.cut = False
    await world.cluster.settle(200)
    assert machines.reset == []
    assert world.verbs() == []


# -- what others hear --------------------------------------------------------------------------------------------------


async def judged(world, machines, node, seconds):
    """What was judged of a node in so many seconds, in order: state and first reason, as often as one of them is another one."""
    found, end = [], world.now + seconds
    while world.now < end:
        await world.cluster.settle(1)
        if verdict := machines.verdict(node):
            what = verdict.reasons[0].partition("heard it")[:2] if "heard it" in verdict.reasons[0] else ("", "")
            now = (verdict.state, "".join(what).strip())
            if not found or found[-1] != now:
                found.append(now)
    return found


@scenes
async def test_a_node_that_others_hear_is_alive_until_its_watchdog_has_provably_fired(world, machines, node, others):
    machines.cut_off(node)
    found = await judged(world, machines, node, BOUND + RENEWALS + 40)
    heard = [state for state, what in found if what.startswith("node ") and what.endswith("heard it")]
    assert BootState.ALIVE in heard
    assert BootState.DEAD not in heard
    states = [state for state, _ in found]
    assert states[-1] is BootState.DEAD
    assert states.index(BootState.DEAD) > states.index(BootState.UNKNOWN) > 0
    assert machines.reset == [node]


@scenes(suspectAfter="40s")
async def test_a_bmc_that_lies_is_not_believed_of_a_node_that_others_hear(world, machines, node, others):
    """It says OFF, and the machine runs on, cut off from the control plane, and writes: until its watchdog resets it."""
    world.fences[node].lies = PowerState.OFF
    machines.cut_off(node)
    await world.until(world.verbs, 60)
    assert world.verbs() == ["off"]
    while not machines.reset:
        assert machines.verdict(node).state is not BootState.DEAD
        await world.cluster.settle(1)
    assert set(world.verbs()) == {"off"}
    await world.until(lambda: world.place() not in (None, node), 200)
    assert machines.reset == [node]


@scenes(suspectAfter="40s")
async def test_a_node_that_others_hear_is_fenced_all_the_same_and_failed_over_when_they_hear_it_no_more(
    world, machines, node, others
):
    machines.cut_off(node)
    await world.until(lambda: node in world.nodes.off, 60)
    off = world.now
    assert machines.verdict(node).reasons[0].startswith("node ")
    await world.until(lambda: world.place() not in (None, node), 100)
    assert machines.reset == []
    assert world.verbs()[:2] == ["off", "taint"]
    assert world.now - off < 60, "twenty seconds after it was heard last, and not only when its bound is over"
