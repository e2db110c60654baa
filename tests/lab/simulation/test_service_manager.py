"""The simulated systemd of a machine, and what lastcall's own KubeletService does with it."""

import functools

import pytest

from lastcall.adapters.systemd.kubelet_service import MARGIN, KubeletService
from lastcall.errors import Unavailable
from lastcall.names import KUBELET_TIMER
from lastcall_lab import virtual
from lastcall_lab.simulation.machine.service_manager import (
    KUBELET_UNIT,
    RESTART_SECONDS,
    STOP_SECONDS,
    SimulatedServiceManager,
)
from lastcall_lab.virtual import VirtualProcess


class Machine:
    """Its systemd, its kubelets, and what was told of them."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.bus = True
        self.told = []
        self.lives = []
        self.systemd = SimulatedServiceManager(
            "n1", self.clock, run_kubelet=self.run_kubelet, check_bus=self.check_bus, tell=self.told.append
        )
        self.systemd.request_start()
        self.agent = VirtualProcess("n1/agent")
        self.service = self.new_service()

    def new_service(self):
        return self.agent.call(lambda: KubeletService(KUBELET_UNIT, self.clock, self.systemd.open))

    def run_kubelet(self):
        self.lives.append(VirtualProcess("n1"))
        return self.lives[-1]

    def check_bus(self):
        if not self.bus:
            raise Unavailable("there is no message bus")

    async def as_agent(self, work):
        return await virtual.run_within(self.agent, work)

    async def stop(self, deadline=30.0):
        await self.as_agent(self.service.begin_shutdown(deadline))

    @property
    def runs(self):
        return bool(self.lives) and self.lives[-1].alive

    async def states(self):
        return [one.active for one in await self.systemd.unit_states(KUBELET_UNIT, KUBELET_TIMER)]


def on_a_machine(scene):
    """A test in virtual time."""

    @functools.wraps(scene)
    def test():
        async def play():
            await scene(Machine())

        virtual.run(play())

    del test.__wrapped__
    return test


@on_a_machine
async def test_it_is_stopped_and_started_again(machine):
    await machine.stop()
    assert await machine.states() == ["inactive", "active"]
    assert not machine.runs
    await machine.as_agent(machine.service.mark_ready())
    assert await machine.states() == ["active", "inactive"]
    assert machine.runs
    assert machine.told == ["kubelet started", "kubelet stopped", "kubelet started"]


@on_a_machine
async def test_the_timer_starts_it_where_the_agent_is_dead(machine):
    await machine.stop(30.0)
    machine.agent.kill()
    await machine.clock.sleep(30.0 + MARGIN - 1.0)
    assert not machine.runs
    await machine.clock.sleep(2.0)
    assert machine.runs
    assert await machine.states() == ["active", "inactive"]


@on_a_machine
async def test_its_unit_starts_it_after_its_death(machine):
    machine.systemd.kill_kubelet()
    assert await machine.states() == ["activating", "inactive"]
    await machine.clock.sleep(RESTART_SECONDS)
    assert machine.runs
    assert machine.told == ["kubelet started", "kubelet killed", "kubelet started"]


@on_a_machine
async def test_one_that_waits_for_its_restart_is_not_started_any_more(machine):
    machine.systemd.kill_kubelet()
    await machine.stop()
    await machine.clock.sleep(2 * RESTART_SECONDS)
    assert not machine.runs
    assert await machine.states() == ["inactive", "active"]


@on_a_machine
async def test_one_that_somebody_starts_is_stopped_again(machine):
    await machine.stop()
    machine.systemd.request_start()
    assert machine.runs
    await machine.clock.sleep(2.0)
    assert not machine.runs
    assert machine.service.take_notes() == ("kubelet.service was started during the shutdown and is stopped again",)


@on_a_machine
async def test_one_that_somebody_starts_while_it_stops_is_stopped_again(machine):
    stopping = machine.agent.start(machine.service.begin_shutdown(30.0), "stop")
    await machine.clock.sleep(STOP_SECONDS / 2)
    assert await machine.states() == ["deactivating", "active"]
    machine.systemd.request_start()
    await machine.clock.sleep(STOP_SECONDS)
    assert machine.runs
    await machine.clock.sleep(2.0)
    assert not machine.runs
    assert stopping.done()


@on_a_machine
async def test_without_a_bus_nobody_is_heard(machine):
    machine.bus = False
    with pytest.raises(Unavailable, match="no message bus"):
        await machine.states()
    stopping = machine.agent.start(machine.service.begin_shutdown(30.0), "stop")
    await machine.clock.sleep(5.0)
    assert machine.runs
    machine.bus = True
    await machine.clock.sleep(1.0)
    assert not machine.runs
    assert stopping.done()


@on_a_machine
async def test_nothing_runs_on_when_the_machine_is_off(machine):
    await machine.stop()
    machine.systemd.end()
    await machine.clock.sleep(1000.0)
    assert machine.told == ["kubelet started", "kubelet stopped"]
