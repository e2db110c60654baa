"""The agent's loop in virtual time, with a logind, a runtime and a disk that are objects here."""

import pytest
from support.agents.virtual_machine import STUBBORN, on_machine
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.agent import LOOK_AT_REST
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import ShutdownMode, ShutdownOutcome
from lastcall_lab.fakes.actor_runtime import ContainerScript


@on_machine()
async def test_arms_and_raises_the_limit(machine):
    await machine.start_agent()
    assert machine.status.state is AgentState.ARMED
    assert machine.logind.limit == 30
    assert len(machine.logind.descriptors) == 2  # one here, one with the holder
    assert machine.status.armed
    assert not machine.status.degraded
    assert machine.status.sentence == "armed: 30s for the pods when the machine shuts down"


@on_machine()
async def test_at_rest_nothing_is_asked_that_would_be_answered_as_before(machine):
    await machine.start_agent()
    rounds = len(machine.statuses)
    await machine.clock.sleep(10_000)
    assert len(machine.statuses) == rounds


@on_machine()
async def test_what_changes_without_a_signal_is_seen_at_the_next_look(machine):
    await machine.start_agent()
    await machine.clock.sleep(1000)
    machine.logind.files.put("zzz.conf", "10")
    machine.logind.reload()
    await machine.clock.sleep(LOOK_AT_REST + 10)
    assert machine.status.granted == 10
    assert machine.status.degraded


@on_machine(groups=())
async def test_nothing_is_delayed_until_somebody_asks_for_it(machine):
    pressed = await machine.going_down()
    assert await machine.off() == pressed
    assert machine.status.state is AgentState.IDLE


@on_machine()
async def test_holds_the_machine_until_the_last_pod_is_done_and_no_longer(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=2)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.reboot()
    assert await machine.off() == pytest.approx(pressed + 5)
    assert await machine.off() == machine.last_exit()
    await machine.clock.sleep(1)
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.COMPLETED
    assert record.how == "reboot"
    assert machine.disk.states == [(record.wall, None), (record.wall, pytest.approx(record.wall + 5, abs=0.1))]


@on_machine()
async def test_a_rival_drop_in_leaves_it_armed_with_less(machine):
    machine.logind.files.put("zzz-corporate.conf", "12")
    machine.logind.reload()
    machine.runtime.add(pod("a", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    await machine.start_agent()
    await machine.clock.sleep(10)
    assert machine.status.armed
    assert machine.status.degraded
    assert "/etc/systemd/logind.conf.d/zzz-corporate.conf" in machine.status.sentence
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() < pressed + 12, "logind need not force anything"
    assert [at - pressed for at in machine.terms()] == [0, pytest.approx(1.85, abs=0.06)]
    assert not machine.runtime.running()


@on_machine()
async def test_a_rival_drop_in_is_told_when_it_is_written_and_counts_when_logind_reads_it(machine, caplog):
    await machine.start_agent()
    await machine.clock.sleep(10)
    written = machine.clock.boottime()
    machine.logind.files.put("zzz-corporate.conf", "12")
    await machine.until(lambda: "zzz-corporate.conf says InhibitDelayMaxSec=12" in caplog.text)
    assert machine.clock.boottime() - written < 2
    assert not machine.status.degraded, "logind grants enough still"
    await machine.clock.sleep(20)
    machine.logind.reload()
    read = machine.clock.boottime()
    await machine.until(lambda: machine.status.granted == 12)
    assert machine.clock.boottime() - read < 2
    await machine.until(lambda: machine.status.degraded)
    assert machine.clock.boottime() - read < 8
    assert "zzz-corporate.conf" in machine.status.sentence


@on_machine()
async def test_started_late_without_a_lock_it_still_ends_the_pods(machine):
    other = await (await machine.logind.open()).take_lock("somebody else's")
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=1)})
    await machine.logind.power_off()
    await machine.start_agent()
    await machine.clock.sleep(3)
    assert not machine.runtime.running()
    [record] = machine.disk.records()
    assert not record.lock
    machine.logind.close(other)


@on_machine(mode=ShutdownMode.OBSERVE)
async def test_observing_holds_nothing_up(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    pressed = await machine.going_down()
    assert await machine.off() == pressed
    assert machine.runtime.deliveries == []
    [record] = machine.disk.records()
    assert [p.name for p in record.pods] == ["web"]
    assert machine.node.told == []


@on_machine()
async def test_a_new_configuration_is_taken_up(machine):
    await machine.start_agent()
    machine.agent.reconfigure(AgentConfig(kind="AgentConfiguration", groups=phases((0, 50))))
    await machine.clock.sleep(1)
    assert machine.logind.limit == 50
    assert machine.status.requested == 50
    machine.agent.reconfigure(AgentConfig(kind="AgentConfiguration"))
    await machine.clock.sleep(1)
    assert machine.status.state is AgentState.IDLE
    assert machine.logind.descriptors == {}


@on_machine()
async def test_leaving_at_rest_releases_the_lock(machine):
    await machine.start_agent()
    machine.agent.request_stop()
    await machine.task
    assert machine.logind.descriptors == {}


@on_machine()
async def test_the_deadline_releases_the_lock_whatever_hangs(machine):
    machine.logind.files.put("zzz.conf", "300")
    machine.logind.reload()
    machine.runtime.add(pod("web"))
    await machine.start_agent()

    async def hang():
        await machine.clock.sleep(1000)

    machine.runtime.list_pods = hang
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pytest.approx(pressed + 30)


@on_machine()
async def test_a_lock_whose_keeper_does_not_answer_is_released_by_another_try(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=1)})
    await machine.start_agent()
    machine.keeper.refusing = 2
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pytest.approx(pressed + 3, abs=0.5), "a round later, and another one"
    assert machine.agent_lives
    await machine.clock.sleep(1)
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.COMPLETED
    done = [status.sentence for status in machine.statuses if status.state is AgentState.RELEASED]
    assert "not known to be released" in done[0]
    assert done[-1] == "done: the lock is released, the machine may shut down"


@on_machine()
async def test_a_lock_that_nobody_asks_for_any_more_is_released_by_another_try_soon(machine):
    await machine.start_agent()
    machine.keeper.refusing = 2
    machine.agent.reconfigure(AgentConfig(kind="AgentConfiguration"))
    await machine.clock.sleep(0.5)
    assert machine.logind.descriptors, "the holder's"
    assert "once the lock is released" in machine.status.sentence
    await machine.clock.sleep(4)
    assert machine.logind.descriptors == {}
    assert machine.status.sentence == "idle: the configuration asks for no time, a shutdown will not be delayed"


@on_machine()
async def test_leaving_at_rest_survives_a_keeper_that_does_not_answer(machine):
    await machine.start_agent()
    machine.keeper.refusing = 1
    machine.agent.request_stop()
    await machine.task


@on_machine()
async def test_leaving_in_the_moment_in_which_the_button_is_pressed_leaves_the_lock_to_its_holder(machine):
    """A restart of the service: the next life ends the pods."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    machine.agent.request_stop()
    await machine.task
    assert machine.logind.descriptors, "the holder's"
    await machine.start_agent()
    assert await machine.off() >= pressed + 3
    assert len(machine.terms()) == 1
