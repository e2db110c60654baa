"""The agent when logind or the bus is away, at rest and in the middle of a shutdown."""

from support.agents.virtual_machine import on_machine
from support.agents.virtual_parts import pod

from lastcall.graceful.state_machine import AgentState
from lastcall.ports.node import Inhibitor
from lastcall_lab.fakes.actor_runtime import ContainerScript


@on_machine()
async def test_a_bus_that_is_lost_in_the_middle_stops_nothing(machine):
    machine.runtime.add(pod("a", grace=60), {"main": ContainerScript(after_term=4)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=3)})
    await machine.going_down(1)
    machine.logind.stop_bus()
    await machine.clock.sleep(8)
    assert not machine.runtime.running()
    assert machine.logind.descriptors == {}, "released without a word to logind"
    assert not machine.status.logind_reachable


@on_machine()
async def test_a_bus_that_is_lost_at_rest_is_looked_for_for_ever(machine):
    await machine.start_agent()
    machine.logind.stop_bus()
    await machine.clock.sleep(3607)
    assert not machine.status.logind_reachable
    assert machine.status.retries > 300
    assert len(machine.logind.descriptors) == 2, "the lock is kept meanwhile"
    machine.logind.start_bus()
    machine.logind.restart_logind()
    await machine.until(lambda: machine.status.logind_reachable, 15)
    await machine.until(lambda: machine.status.armed, 5)
    machine.runtime.add(pod("a", uid="a"))
    await machine.logind.power_off()
    await machine.off()
    assert len(machine.terms("a")) == 1


@on_machine()
async def test_logind_absent_at_the_start(machine):
    machine.logind.stop_logind()
    await machine.start_agent()
    assert machine.status.state is AgentState.ACQUIRING
    assert "org.freedesktop.login1 is not on the bus" in machine.status.sentence
    machine.logind.start_logind()
    await machine.until(lambda: machine.status.armed, 15)


@on_machine()
async def test_a_lock_that_logind_has_lost_is_taken_again(machine):
    await machine.start_agent()
    lost = Inhibitor(what="shutdown", who="somebody else", why="", mode="delay", uid=0, pid=0)
    for fault in (lambda: None, machine.logind.stop_bus):
        machine.logind.descriptors.update(dict.fromkeys(machine.logind.descriptors, lost))
        fault()
        await machine.clock.sleep(1)
        machine.logind.start_bus()
        machine.logind.restart_logind()
        await machine.clock.sleep(2)
        assert [lock.who for lock in machine.logind.descriptors.values()] == ["lastcall", "lastcall"]


@on_machine()
async def test_a_button_that_is_pressed_as_soon_as_the_bus_is_back_is_seen_within_a_second(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), {"main": ContainerScript(after_term=1)})
    await machine.start_agent()
    machine.logind.stop_bus()
    await machine.clock.sleep(60)
    tried = machine.status.retries
    await machine.until(lambda: machine.status.retries > tried)
    machine.logind.start_bus()
    machine.logind.start_logind()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.until(machine.terms)
    assert machine.terms()[0] - pressed <= 1.1


@on_machine()
async def test_leaving_while_the_bus_is_away_leaves_the_lock_to_its_holder(machine):
    """What logind has said before is no answer: the button may have been pressed since."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    await machine.start_agent()
    machine.logind.stop_bus()
    machine.agent.request_stop()
    await machine.task
    machine.life.die()
    assert len(machine.logind.descriptors) == 1, "the holder's"
    machine.logind.start_bus()
    machine.logind.start_logind()
    await machine.start_agent()
    assert machine.status.armed
