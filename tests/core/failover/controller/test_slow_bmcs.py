"""BMCs that take their time, or whose answers meet a sign of life that comes late."""

import msgspec
import pytest
from support.failover.virtual_cluster import Bmc, failing_over, uuid
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import InvalidInput
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget
from lastcall_lab.apiserver.values.object_meta import micro_timestamp
from lastcall_lab.volumes.volume_events import find_violations


class Erring(Bmc):
    """It accepts the order and does not obey it; its first answer takes 1.5 s, and for half a second after it errs."""

    def __init__(self, nodes, node):
        super().__init__(nodes, node)
        self.said = []
        self.erring = None

    async def switch_off(self, within):
        await self._answer("off")

    async def read_power(self):
        clock = self.nodes.cluster.clock
        await clock.sleep(0.2 if self.said else 1.5)
        self.erring = self.erring or clock.boottime()
        self.said.append(PowerState.OFF if clock.boottime() < self.erring + 0.5 else PowerState.ON)
        return FenceAnswer(power=self.said[-1])


@failing_over
async def test_a_slow_bmc_that_errs_for_a_moment_is_not_asked_again_within_it(world):
    world.start()
    node = world.place()
    fence = world.fences.bmcs[node] = Erring(world.nodes, node)
    world.nodes.silent.add(node)
    await world.cluster.settle(60)
    assert fence.said[:2] == [PowerState.OFF, PowerState.ON]
    assert world.place() in (None, node)
    assert not find_violations(world.nodes.storage.records)


class Overtaken(Bmc):
    """When it says OFF for the second time, a renewal that was under way is written."""

    told = 0

    async def read_power(self):
        answer = await super().read_power()
        self.told += answer.power is PowerState.OFF
        if self.told == 2:
            now = micro_timestamp(self.nodes.cluster.clock.wall())
            renewed = {"spec": {"renewTime": now}}
            await self.nodes.cluster.patch(LEASES, self.node, renewed, namespace="kube-node-lease")
        return answer


@pytest.mark.parametrize("after", ["15s", "30s", "60s", "5m"])
def test_one_renewal_that_comes_late_delays_a_failover_and_does_not_end_it(after):
    @failing_over(policy={"suspectAfter": after})
    async def scenario(world):
        world.start()
        node = world.place()
        world.fences.bmcs[node] = Overtaken(world.nodes, node)
        world.nodes.silent.add(node)
        await world.until(lambda: world.place() not in (None, node), 900)
        assert not find_violations(world.nodes.storage.records)

    scenario()


class Moved(Bmc):
    """Away for long; then its address is another machine's. That one is off all the time."""

    struck = ""

    async def switch_off(self, within):
        await self._answer("off")
        self.struck = self.wrong or self.node

    def moves(self):
        self.away, self.wrong, self.lies = False, "another machine", PowerState.OFF


@failing_over(policy={"fencers": [{"name": "bmc", "attempts": 2, "timeoutSeconds": 10, "manual": {}}]})
async def test_an_address_that_has_come_to_another_machine_is_told_nothing(world):
    world.start()
    node = world.place()
    fence = world.fences.bmcs[node] = Moved(world.nodes, node)
    world.nodes.silent.add(node)
    await world.until(lambda: any(what == "off" for what, _ in fence.asked), 180)
    fence.away = True
    await world.cluster.settle(600)
    fence.struck = ""
    fence.moves()
    await world.cluster.settle(120)
    assert fence.struck == ""
    assert not world.out_of_service(node)


@failing_over(policy={"fencers": [{"name": "bmc", "attempts": 1, "timeoutSeconds": 300, "manual": {}}]})
async def test_and_what_it_says_counts_for_nothing(world):
    """It has accepted the order before, and is slow to obey it."""
    world.start()
    node = world.place()
    fence = world.fences.bmcs[node] = Moved(world.nodes, node)
    world.nodes.silent.add(node)
    await world.until(lambda: fence.struck, 180)
    fence.away = True
    await world.cluster.settle(100)
    fence.moves()
    await world.cluster.settle(300)
    assert not world.out_of_service(node)


class Slow(Bmc):
    """It takes a minute to say which machine it is."""

    async def read_target(self):
        await self.nodes.cluster.clock.sleep(61)
        return await super().read_target()


@failing_over(policy={"fencers": [{"name": "bmc", "attempts": 2, "timeoutSeconds": 120, "manual": {}}]})
async def test_what_took_long_to_be_said_serves_from_when_it_was_said(world):
    world.start()
    node = world.place()
    world.fences.bmcs[node] = Slow(world.nodes, node)
    world.nodes.pull(node)
    await world.until(lambda: world.place() not in (None, node), 400)


class Half:
    """Two fencers, of which the other one cannot be used."""

    name = "bmc"

    def __init__(self):
        self.made = []

    async def make_fences(self, node, policy):
        (fencer,) = policy.spec.fencers
        self.made.append(fencer.name)
        if fencer.name == "other":
            raise InvalidInput("other", ["no Secret"])
        return [self]

    async def read_target(self):
        return FenceTarget(system_uuid=uuid("n1"))


async def test_a_fencer_that_cannot_be_used_takes_nothing_from_the_others():
    spec = {"fencers": [{"name": name, "manual": {}} for name in ("bmc", "other")]}
    policy = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, FencePolicy)
    clock, fences = Hand(100.0), Half()
    devices, node = NodeFencers(fences, clock), FenceNode(name="n", system_uuid=uuid("n1"))
    await devices.prepare_fences(node, policy, "b1")
    await devices.ask_target("bmc")
    clock.now += 31
    await devices.prepare_fences(node, policy, "b1")
    assert fences.made == ["bmc", "other", "other"]
    assert devices.fencer_states()[0].judgement


DELAYED = {"fencers": [{"name": "bmc", "delaySeconds": 90, "timeoutSeconds": 10, "manual": {}}]}


@failing_over(policy=DELAYED)
async def test_a_delayed_bmc_is_told_to_switch_off_when_a_dump_has_had_its_time(world):
    """Its time begins when the node is suspected."""
    world.start()
    node = world.place()
    begun = world.cluster.clock.boottime()
    world.nodes.pull(node)
    await world.cluster.settle(60)
    assert world.fences[node].asked == []
    await world.cluster.settle(90)
    (off,) = [at for what, at in world.fences[node].asked if what == "off"]
    assert off >= begun + 90
    assert world.place() not in (None, node)


@failing_over(policy=DELAYED)
async def test_a_node_that_is_back_within_the_delay_is_not_fenced(world):
    world.start()
    node = world.place()
    world.nodes.silent.add(node)
    await world.cluster.settle(60)
    world.nodes.silent.discard(node)
    await world.cluster.settle(120)
    assert world.fences[node].asked == []
