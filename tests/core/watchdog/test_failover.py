"""A node without a BMC, its agent with a watchdog, and the failover controller, in virtual time, over storage that tells
who has written when: the proof is the machine's own reset."""

import asyncio

import pytest
from support.failover.virtual_cluster import failing_over
from support.watchdog.watchdog_node import NODE_SETTINGS, Line

from lastcall.adapters.host.watchdog_device import WatchdogDeviceFile
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.watchdog import FakeWatchdog
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.volume_events import find_violations

BOUND = NODE_SETTINGS.timing_with().reset_bound


class Machine:
    """The node on which the database runs; it is reset when its watchdog fires, and stays off."""

    def __init__(self, world):
        self.world, self.node = world, world.place()
        self.line = Line(InProcessTransport(world.cluster.server))
        self.resets = []
        self.dog = FakeWatchdog(self._reset)
        self.process = VirtualProcess("agent", on_death=self.dog.kill_holder)
        self.process.call(self._begin)

    def _begin(self):
        clock = self.world.cluster.clock
        self.keeper = WatchdogKeeper(
            NODE_SETTINGS,
            device=WatchdogDeviceFile("/dev/watchdog0", self.dog),
            lease=KubeWatchdogLease(Client(self.line), self.node, clock),
            clock=clock,
            boot_id=f"boot-{self.node}-1",
        )
        self.process.start(self.keeper.run(), "watchdog")
        self.keeper.suspend("")

    def _reset(self):
        self.resets.append(self.world.now)
        self.process.kill()
        self.world.nodes.pull(self.node)

    def cut_off(self):
        """From the control plane; its programs go on, and write."""
        self.line.cut = True
        self.world.nodes.silent.add(self.node)

    def end(self):
        self.process.kill()
        self.dog.cut_power()


async def begun(world):
    world.start()
    machine = Machine(world)
    await world.cluster.settle(30)
    return machine


@pytest.mark.parametrize("what", ["it goes on", "it is killed", "it is killed late", "its pets are late"])
def test_a_node_that_is_cut_off_and_still_writes_has_reset_itself_before_anything_is_forced(what):
    """Whatever becomes of its agent meanwhile."""

    @failing_over(policy={"fencers": []})
    async def scene(world):
        machine = await begun(world)
        if what == "its pets are late":
            machine.dog.late = NODE_SETTINGS.timeout_seconds - NODE_SETTINGS.pet_seconds - 0.5
        machine.cut_off()
        cut = world.now
        if "killed" in what:
            await asyncio.sleep(NODE_SETTINGS.lease_seconds + 5 if "late" in what else 3)
            machine.process.kill()
        await world.until(lambda: world.place() not in (None, machine.node), 300)
        assert len(machine.resets) == 1
        assert machine.resets[0] - cut < BOUND
        assert BOUND - NODE_SETTINGS.pet_seconds - 1 < world.now - cut < BOUND + 30
        assert world.verbs()[0] == "taint"
        assert find_violations(world.nodes.storage.records) == []
        machine.end()

    scene()


@failing_over(policy={"fencers": []})
async def test_a_node_that_goes_down_by_itself_is_not_taken_for_dead_by_its_watchdog(world):
    """It has taken back what it promised, and may end its pods for as long as it likes, cut off or not."""
    machine = await begun(world)
    machine.process.call(machine.keeper.suspend, "the node is shutting down")
    await asyncio.sleep(1)
    machine.cut_off()
    await world.cluster.settle(300)
    assert machine.resets == []
    assert world.verbs() == []
    assert find_violations(world.nodes.storage.records) == []
    machine.end()


@failing_over(policy={"fencers": []})
async def test_a_kubelet_that_is_gone_alone_costs_nobody_a_reset(world):
    """The agent reaches the API server, so the machine lives, and its programs write."""
    machine = await begun(world)
    world.nodes.silent.add(machine.node)
    await world.cluster.settle(300)
    assert machine.resets == []
    assert world.verbs() == []
    assert find_violations(world.nodes.storage.records) == []
    machine.end()


@failing_over(policy={"fencers": []})
async def test_an_agent_that_is_cut_off_alone_costs_a_reset(world):
    """Nothing is forced while the kubelet is heard; the reset ends that, and proves the rest."""
    machine = await begun(world)
    machine.line.cut = True
    await world.until(lambda: machine.resets, 100)
    assert world.verbs() == []
    await world.until(lambda: world.place() not in (None, machine.node), 300)
    assert find_violations(world.nodes.storage.records) == []
    machine.end()
