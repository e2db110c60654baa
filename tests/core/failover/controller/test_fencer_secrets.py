"""A fencer whose attempts fail is made anew: who corrects its Secret during an outage need not wait for the next one."""

import msgspec
import pytest
from support.failover.small_cluster import Hand
from support.failover.virtual_cluster import failing_over, uuid

from lastcall.errors import Unavailable
from lastcall.failover.controller.node_fencers import AGAIN, STILL, NodeFencers
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

POLICY = msgspec.convert({"metadata": {"name": "p"}, "spec": {"fencers": [{"name": "f", "manual": {}}]}}, FencePolicy)
NODE = FenceNode(name="n", system_uuid=uuid("n1"))


class Locked:
    """A BMC that asks for the ``password`` that it has now; the fence has that which stood in the Secret when it was made."""

    def __init__(self, password, bmcs=None):
        self.password, self.secret, self.made, self.bmcs, self.error = password, password, 0, bmcs, None

    async def make_fences(self, node, policy):
        if self.error:
            raise self.error
        self.made += 1
        return [Opened(self, self.secret, self.bmcs[node.name] if self.bmcs else Bmc())]


class Bmc:
    async def read_target(self):
        return FenceTarget(system_uuid=uuid("n1"))

    async def read_power(self):
        return FenceAnswer(power=PowerState.ON)

    async def switch_off(self, within):
        pass


class Opened:
    """The fence."""

    name = "bmc"

    def __init__(self, lock, secret, bmc):
        self.lock, self.secret, self.bmc = lock, secret, bmc

    @property
    def _inside(self):
        if self.secret != self.lock.password:
            raise Unavailable("refuses user or password (HTTP 401)")
        return self.bmc

    async def read_target(self):
        return await self._inside.read_target()

    async def read_power(self):
        if self.secret != self.lock.password:
            return FenceAnswer(power=PowerState.UNKNOWN, why="HTTP 401")
        return await self.bmc.read_power()

    async def switch_off(self, within):
        await self._inside.switch_off(within)

    async def switch_on(self, within):
        await self._inside.switch_on(within)


@failing_over
async def test_a_password_that_is_corrected_is_used(world):
    lock = Locked("new", bmcs=world.fences)
    lock.secret, world.fences = "old", lock
    world.start()
    place = world.place()
    world.nodes.pull(place)
    await world.cluster.settle(120)
    assert world.place() in (None, place)
    lock.secret = "new"
    await world.until(lambda: world.place() not in (None, place), 120)


class Alone:
    """The fencers of one node, by hand."""

    def __init__(self):
        self.clock, self.lock = Hand(100.0), Locked("right")
        self.devices = NodeFencers(self.lock, self.clock)

    async def prepare(self, after=0.0):
        self.clock.now += after
        await self.devices.prepare_fences(NODE, POLICY, "b1")
        return self.devices.fencer_states()[0]


async def test_one_that_fails_is_made_anew_with_its_past():
    world = Alone()
    await world.prepare()
    await world.devices.ask_target("f")
    assert (await world.prepare(AGAIN)).judgement
    assert world.lock.made == 1
    world.lock.password = "other"
    assert await world.devices.switch_off("f", 5)
    assert (await world.prepare(STILL / 2)).judgement
    found = await world.prepare(STILL)
    assert (found.judgement, len(found.offs), world.lock.made) == (None, 1, 2)


async def test_not_again_and_again():
    world = Alone()
    world.lock.password = "other"
    await world.prepare()
    await world.devices.ask_target("f")
    for seconds, made in ((STILL, 1), (AGAIN - STILL, 2), (STILL, 2), (AGAIN - STILL, 3)):
        await world.prepare(seconds)
        assert world.lock.made == made


class Reading(Opened):
    """Whoever asks may read, whatever the password."""

    async def read_target(self):
        return await self.bmc.read_target()

    async def read_power(self):
        return await self.bmc.read_power()


class ForReaders(Locked):
    """A BMC at which the old user may read, and not switch."""

    async def make_fences(self, node, policy):
        self.made += 1
        return [Reading(self, self.secret, self.bmcs[node.name])]


@failing_over
async def test_rights_that_are_corrected_are_used(world):
    lock = ForReaders("operator", bmcs=world.fences)
    lock.secret, world.fences = "reader", lock
    world.start()
    place = world.place()
    world.nodes.silent.add(place)
    await world.cluster.settle(120)
    assert not world.out_of_service(place)
    lock.secret = "operator"
    await world.until(lambda: world.out_of_service(place), 300)


async def test_not_if_it_has_said_which_machine_it_is_after_it_did_not():
    world = Alone()
    await world.prepare()
    world.lock.password = "other"
    await world.devices.ask_target("f")
    world.lock.password = "right"
    world.clock.now += 1
    await world.devices.ask_target("f")
    await world.prepare(AGAIN)
    assert world.lock.made == 1


@pytest.mark.parametrize(("power", "made"), [(PowerState.OFF, 1), (PowerState.ON, 2), (PowerState.UNKNOWN, 2)])
async def test_after_an_order_that_failed_only_that_it_is_off_is_an_answer(monkeypatch, power, made):
    world = Alone()
    await world.prepare()
    await world.devices.ask_target("f")
    world.lock.password = "other"
    await world.devices.switch_off("f", 5)
    world.lock.password = "right"
    world.clock.now += 1

    async def status(self):
        return FenceAnswer(power=power)

    monkeypatch.setattr(Bmc, "read_power", status)
    await world.devices.ask_target("f")
    await world.devices.ask_power("f", "b1")
    await world.prepare(AGAIN)
    assert world.lock.made == made


async def test_one_that_was_made_anew_gets_its_order_however_slowly_it_says_which_machine_it_is():
    world = Alone()
    await world.prepare()
    world.lock.password = "other"
    await world.devices.switch_off("f", 5)
    await world.prepare(AGAIN)
    world.lock.password = "right"
    world.clock.now += 2 * AGAIN
    await world.devices.ask_target("f")
    assert (await world.prepare()).judgement
    assert (await world.prepare(AGAIN)).judgement
    assert world.lock.made == 2
    world.lock.password = "other"
    await world.devices.switch_off("f", 5)
    assert (await world.prepare(STILL)).judgement is None
    assert world.lock.made == 3


async def test_that_its_power_is_not_known_is_no_answer():
    world = Alone()
    await world.prepare()
    world.lock.password = "other"
    await world.devices.switch_off("f", 5)
    world.clock.now += 1
    await world.devices.ask_power("f", "b1")
    await world.prepare(AGAIN)
    assert world.lock.made == 2


async def test_one_that_fails_and_cannot_be_made_anew_stays_as_it_was():
    """It may be the BMC's network that is away, and the API server beside it."""
    world = Alone()
    await world.prepare()
    world.lock.password = "other"
    await world.devices.ask_target("f")
    world.lock.error = Unavailable("the API server is away")
    assert (await world.prepare(AGAIN)).trouble == ""
    world.lock.password = "right"
    await world.devices.ask_target("f")
    assert (await world.prepare()).judgement
