"""The agent in a pod, which nobody would start again during a shutdown: SIGTERM takes effect after it."""

import asyncio

from support.agents.virtual_machine import on_machine
from support.agents.virtual_parts import pod

from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import ShutdownOutcome
from lastcall_lab.fakes.actor_runtime import ContainerScript


def add_web(machine, after_term=5):
    machine.in_pod = True
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=after_term)})


@on_machine()
async def test_a_stop_during_a_shutdown_waits_for_the_pods(machine):
    """As at an upgrade of the DaemonSet: the kubelet that asked for it is stopped by then."""
    add_web(machine)
    pressed = await machine.going_down(1)
    machine.agent.request_stop()
    await machine.clock.sleep(1)
    assert machine.agent_lives
    await asyncio.wait_for(machine.task, 60)
    assert machine.clock.boottime() >= pressed + 5
    assert await machine.off() >= machine.last_exit(), "the lock was released after the last pod"
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.COMPLETED


@on_machine()
async def test_a_stop_in_the_moment_in_which_the_button_is_pressed(machine):
    add_web(machine)
    await machine.start_agent()
    await machine.logind.power_off()
    machine.agent.request_stop()
    await asyncio.wait_for(machine.task, 60)
    assert await machine.off() >= machine.last_exit()


@on_machine()
async def test_a_stop_at_rest_takes_effect_at_once(machine):
    add_web(machine)
    await machine.start_agent()
    machine.agent.request_stop()
    await asyncio.wait_for(machine.task, 5)
    assert not machine.logind.descriptors


@on_machine()
async def test_a_cancel_lets_it_go_and_releases_the_lock(machine):
    add_web(machine, after_term=30)
    await machine.going_down(1)
    machine.agent.request_stop()
    machine.logind.restart_logind()
    await asyncio.wait_for(machine.task, 60)
    assert machine.statuses[-1].state is not AgentState.ENDING
    assert not machine.logind.descriptors
    assert await machine.logind.starts() == []


@on_machine()
async def test_it_does_not_look_without_a_pause(machine):
    """A stop that waits is no reason to read logind again and again."""
    add_web(machine)
    await machine.going_down(1)
    before = len(machine.statuses)
    machine.agent.request_stop()
    await machine.clock.sleep(3)
    assert len(machine.statuses) - before <= 8
    await machine.off()
