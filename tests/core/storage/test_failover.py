"""Nodes without BMCs that share storage by sanlock, and the failover controller, in virtual time: the proof is a lease that is
not renewed, with a watchdog behind it."""

import asyncio

import pytest
from support.failover.virtual_cluster import NAMES, failing_over
from support.watchdog.watchdog_node import Line

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.storage_lease_annotation import KubeStorageAnnotation
from lastcall.model.storage_lease import SanlockSettings
from lastcall.storage.lease_reporter import StorageLeaseReporter
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.sanlock import FakeLockspace
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.volume_events import find_violations

pytestmark = pytest.mark.timeout(120)

DEAD_AFTER = 140
SETTINGS = SanlockSettings(lockspace="demo", resets_machine=True)


class Machines:
    """All nodes with their daemons and agents; a machine is reset if its lease is lost while the lockspace is in use."""

    def __init__(self, world, *, used=True):
        self.world, self.node = world, world.place()
        self.storage = FakeLockspace("demo")
        self.hosts, self.lines, self.agents, self.resets = {}, {}, {}, []
        for number, name in enumerate(NAMES, 1):
            host = self.hosts[name] = self.storage.host(number, f"host-{name}")
            host.watchdog, host.used = True, used
            host.join()
            self._start(name)
        self.ticking = asyncio.create_task(self._tick())

    def _start(self, name):
        line = self.lines[name] = Line(InProcessTransport(self.world.cluster.server))
        telling = StorageLeaseReporter(
            SETTINGS,
            leases=self.hosts[name],
            word=KubeStorageAnnotation(Client(line), name),
            clock=self.world.cluster.clock,
            boot_id=f"boot-{name}-1",
        )
        agent = self.agents[name] = VirtualProcess(f"agent-{name}")
        agent.start(telling.run(), "telling")

    async def _tick(self):
        while True:
            await asyncio.sleep(1)
            self.storage.advance(1)
            for number, (name, host) in enumerate(self.hosts.items(), 1):
                silent = self.storage.now - self.storage.places[number].timestamp
                if name not in self.world.nodes.off and host.used and silent >= DEAD_AFTER:
                    self.resets.append(self.world.now)
                    self.pull(name)

    def pull(self, name):
        """It has no power any more."""
        self.world.nodes.pull(name)
        self.hosts[name].die()
        self.agents[name].kill()

    def cut_off(self, name, *, storage):
        """From the control plane, and from the storage of the leases; its programs go on, and write."""
        self.lines[name].cut = True
        self.world.nodes.silent.add(name)
        self.hosts[name].cut_off = storage

    def end(self):
        self.ticking.cancel()
        for agent in self.agents.values():
            agent.kill()


async def begun(world, **how):
    world.start()
    machines = Machines(world, **how)
    await world.cluster.settle(60)
    return machines


async def moved(world, machines, within):
    await world.until(lambda: world.place() not in (None, machines.node), within)


@failing_over(policy={"fencers": []})
async def test_a_node_without_power_is_failed_over_when_its_lease_shows_it(world):
    machines = await begun(world)
    machines.pull(machines.node)
    pulled = world.now
    await moved(world, machines, 400)
    assert DEAD_AFTER - 20 < world.now - pulled < DEAD_AFTER + 100
    assert world.verbs()[0] == "taint"
    counted = world.candidates[0].counted
    assert counted["lastcall_failover_evidence_total", "StorageLeaseExpired"] == 1
    assert find_violations(world.nodes.storage.records) == []
    machines.end()


@pytest.mark.parametrize("used", [True, False])
def test_a_node_that_is_cut_off_and_still_writes(used):
    """Where its loss resets the machine, it has been reset before anything is forced; else nothing is."""

    @failing_over(policy={"fencers": []})
    async def scene(world):
        machines = await begun(world, used=used)
        machines.cut_off(machines.node, storage=True)
        if used:
            await moved(world, machines, 400)
            assert len(machines.resets) == 1
        else:
            await world.cluster.settle(600)
            assert (machines.resets, world.verbs()) == ([], [])
        assert find_violations(world.nodes.storage.records) == []
        machines.end()

    scene()


@failing_over(policy={"fencers": []})
async def test_a_node_that_renews_on_the_storage_lives_whatever_else_is_silent(world):
    machines = await begun(world)
    machines.cut_off(machines.node, storage=False)
    await world.cluster.settle(600)
    assert (machines.resets, world.verbs()) == ([], [])
    assert find_violations(world.nodes.storage.records) == []
    machines.end()


@failing_over(policy={"fencers": []})
async def test_a_reader_whose_storage_stands_still_proves_nothing(world):
    """Nor does a node that has left the lockspace in order: it lives, and cannot say so."""
    machines = await begun(world)
    machines.cut_off(machines.node, storage=False)
    machines.hosts[machines.node].used = False
    machines.hosts[machines.node].leave()
    for name in NAMES:
        if name != machines.node:
            machines.hosts[name].used, machines.hosts[name].cut_off = False, True
    await world.cluster.settle(600)
    assert world.verbs() == []
    machines.end()


@failing_over(policy={"fencers": []})
async def test_a_controller_that_begins_when_all_is_over_concludes_the_same(world):
    machines = Machines(world)
    await world.cluster.settle(60)
    machines.pull(machines.node)
    await world.cluster.settle(900)
    world.start()
    begun = world.now
    await moved(world, machines, 200)
    assert world.now - begun < 150
    assert find_violations(world.nodes.storage.records) == []
    machines.end()
