"""Keeping the lock over the agent's death: the holder process and the host's services, with the real logind; the fakes."""

import asyncio
import os
import signal
from functools import partial

import pytest
from support.host.locks import patience  # noqa: F401  (a fixture)
from support.host.logind import a_machine, eventually

from lastcall.adapters.logind.host_lock import HostLockKeeper, container_pipe
from lastcall.adapters.logind.lock_keeper import HolderProcessKeeper
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.ports.node import LogindChange
from lastcall_lab.fakes.lock_keeper import FakeLockHolder, FakeLockKeeper

NEVER = 0.3
"""Seconds in which what must not happen would have happened."""


class Node:
    """Agents come and go on it."""

    def __init__(self, machine, directory, *, in_pod):
        self.machine = machine
        self.directory = directory
        self.in_pod = in_pod
        self.holder = None if machine.real else FakeLockHolder(machine.machine, machine.clock)
        self.keepers = []

    def agent(self):
        """The keeper of a new agent."""
        keeper = self._real_keeper() if self.machine.real else FakeLockKeeper(self.holder)
        self.keepers.append(keeper)
        return keeper

    def _real_keeper(self):
        keeper = HolderProcessKeeper(self.directory, self.machine.clock)
        if not self.in_pod:
            return keeper
        units = partial(SystemdUnits.open, self.machine.machine.address)
        return HostLockKeeper(
            keeper, self.machine.clock, units, kubelet_unit="kubelet.service", pipe=container_pipe({})
        )

    def kill(self, keeper):
        """The kernel closes the agent's copy."""
        self.keepers.remove(keeper)
        if self.machine.real:
            inside = getattr(keeper, "_inside", keeper)
            os.close(inside._own)
            inside._own = None
        else:
            keeper.die()

    async def replace_holder(self, keeper):
        """Kills the holder, and waits until there is another."""
        if not self.machine.real:
            self.holder.die()
            await asyncio.sleep(1.5)
            return
        inside = getattr(keeper, "_inside", keeper)
        before = inside._holder
        signal.pidfd_send_signal(before._pidfd, signal.SIGKILL)

        async def another():
            return inside._holder not in (None, before)

        assert await eventually(another, True)

    async def went_on(self):
        return bool(await self.machine.starts())


@pytest.fixture(params=["fake-252", "fake-257", "real", "real-pod"])
def kind(request):
    return request.param


@pytest.fixture
def machine(kind):
    with a_machine(kind.removesuffix("-pod")) as found:
        yield found


@pytest.fixture
async def node(machine, kind, tmp_path):
    node = Node(machine, tmp_path, in_pod=kind == "real-pod")
    yield node
    for keeper in node.keepers:
        await keeper.release()


@pytest.fixture
async def session(machine):
    session = await machine.logind.open()
    yield session
    session.close()


async def test_nothing_is_held_at_first(node):
    keeper = node.agent()
    assert not keeper.is_held
    assert not await keeper.recover()
    await keeper.set_deadline(node.machine.clock.boottime())
    await keeper.release()
    assert not keeper.is_held


async def test_released_means_that_the_shutdown_goes_on(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    assert keeper.is_held
    await node.machine.power_off()
    await asyncio.sleep(NEVER)
    assert not await node.went_on()
    await keeper.release()
    assert not keeper.is_held
    assert await eventually(node.went_on, True)


async def test_the_lock_outlives_its_agent_and_comes_back(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    await node.machine.power_off()
    node.kill(keeper)
    await asyncio.sleep(NEVER)
    assert not await node.went_on()
    keeper = node.agent()
    assert await keeper.recover()
    assert keeper.is_held
    await keeper.release()
    assert await eventually(node.went_on, True)


async def test_the_lock_of_a_dead_agent_is_closed_at_its_deadline(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    deadline = node.machine.clock.boottime() + 0.5
    await keeper.set_deadline(deadline)
    await node.machine.power_off()
    node.kill(keeper)
    assert (await node.machine.wait_for_start()).at >= deadline
    assert not await node.agent().recover()


async def test_the_deadline_closes_the_duplicate_only(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    await keeper.set_deadline(node.machine.clock.boottime() - 1)
    await asyncio.sleep(NEVER)
    assert keeper.is_held
    assert len(await session.list_inhibitors()) == 1


async def test_a_holder_that_dies_is_replaced_by_one_with_the_same_deadline(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    deadline = node.machine.clock.boottime() + 2.5
    await keeper.set_deadline(deadline)
    await node.replace_holder(keeper)
    await node.machine.power_off()
    node.kill(keeper)
    assert (await node.machine.wait_for_start()).at >= deadline


async def test_a_new_lock_replaces_the_old_one_and_its_deadline(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("old"))
    await keeper.set_deadline(node.machine.clock.boottime() + 0.3)
    await keeper.keep_lock(await session.take_lock("new"))

    async def locks():
        return [inhibitor.why for inhibitor in await session.list_inhibitors()]

    assert await eventually(locks, ["new"]) == ["new"]
    node.kill(keeper)
    await asyncio.sleep(0.3 + NEVER)
    assert await locks() == ["new"]
    keeper = node.agent()
    assert await keeper.recover()


async def test_the_lock_survives_a_restart_of_logind(node, session):
    keeper = node.agent()
    await keeper.keep_lock(await session.take_lock("because"))
    await node.machine.fault("restart_logind")
    assert await session.next_change() is LogindChange.RESTARTED
    node.kill(keeper)
    assert len(await session.list_inhibitors()) == 1
    assert await node.agent().recover()
