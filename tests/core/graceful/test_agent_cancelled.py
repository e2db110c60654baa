"""The agent when a shutdown is called off, and what it has begun by then."""

import math

import pytest
from support.agents.virtual_machine import STUBBORN, on_machine
from support.agents.virtual_parts import pod

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import ShutdownOutcome
from lastcall_lab.fakes.actor_runtime import ContainerScript


def begun_and_spared(machine):
    """A pod of the first phase, which takes five seconds to end, and one of the last."""
    machine.runtime.add(pod("begun"), {"main": ContainerScript(after_term=5)})
    machine.runtime.add(pod("spared", uid="spared", priority=2_000_000_000))


@on_machine()
async def test_a_cancel_spares_the_next_phase_and_arms_again(machine):
    begun_and_spared(machine)
    await machine.going_down(2)
    await machine.logind.cancel_schedule()  # 257: no PrepareForShutdown(false), only the property
    await machine.clock.sleep(2)
    assert machine.node.told[-1][1] == "back"
    assert machine.status.state is AgentState.ARMED
    assert machine.terms("spared") == []
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.CANCELLED
    await machine.clock.sleep(60)
    assert len(machine.logind.descriptors) == 2, "the new lock has no deadline of the old shutdown's"
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.off()
    assert machine.terms("spared") == [pressed]
    assert [r.outcome for r in machine.disk.records()] == [ShutdownOutcome.CANCELLED, ShutdownOutcome.COMPLETED]


@on_machine()
async def test_logind_restarted_in_the_middle_forgets_the_shutdown(machine):
    begun_and_spared(machine)
    await machine.going_down(2)
    machine.logind.restart_logind()
    await machine.until(lambda: machine.status.state is AgentState.ARMED, 3)
    await machine.clock.sleep(10)
    assert machine.terms("spared") == []
    assert machine.node.whens("back") != []
    assert len(machine.logind.descriptors) == 2


@on_machine()
async def test_cancelled_while_no_agent_was_running(machine):
    begun_and_spared(machine)
    await machine.going_down(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(5)
    await machine.start_agent()
    await machine.clock.sleep(20)
    assert machine.terms("spared") == []
    assert machine.node.told[-1][1] == "back"
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.CANCELLED
    assert machine.status.armed


@on_machine()
async def test_a_cancel_without_any_signal_is_seen_all_the_same(machine):
    begun_and_spared(machine)
    await machine.going_down(2)
    machine.logind._forget_shutdown()
    await machine.clock.sleep(2)
    assert machine.node.told[-1][1] == "back"
    await machine.clock.sleep(20)
    assert machine.terms("spared") == []


@on_machine()
async def test_a_node_that_was_slow_to_be_told_is_ready_after_a_cancel(machine):
    """Nothing of the announcement comes after the node is ready again."""
    machine.node.slow = 1.5
    await machine.going_down(0.5)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(10)
    assert [what for _, what in machine.node.told] == ["refuse", "expect", "back"]


@on_machine()
async def test_a_node_that_cannot_be_made_ready_is_tried_again_while_the_agent_is_armed(machine):
    back, tries = machine.node.mark_ready, []

    async def fail():
        tries.append(machine.clock.boottime())
        if len(tries) < 3:
            raise OSError(28, "No space left on device")
        await back()

    machine.node.mark_ready = fail
    await machine.going_down(0.5)
    assert machine.logind.descriptors == {}, "nothing ran: it is released"
    machine.logind.restart_logind()
    await machine.clock.sleep(2)
    assert machine.status.armed
    assert "back" not in [what for _, what in machine.node.told]
    await machine.clock.sleep(20)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [ShutdownOutcome.CANCELLED]


@on_machine()
async def test_killed_before_the_node_is_ready_again_the_next_life_sees_to_it(machine):
    machine.node.slowly_back = 2
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=3)})
    await machine.going_down(1)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    assert machine.node.whens("back") == []
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [ShutdownOutcome.CANCELLED]


@on_machine()
async def test_a_new_shutdown_goes_on_with_what_a_cancelled_one_had_begun(machine):
    """SIGTERM once, no hook after it, none twice at once; the pod's grace is the one that had begun."""
    machine.runtime.add(pod("termed", uid="termed", grace=12, hook=1), STUBBORN)
    machine.runtime.add(pod("hooked", uid="hooked", grace=12, hook=6), {"main": ContainerScript(after_term=1)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000))
    await machine.start_agent()
    first = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(3)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(1)
    await machine.logind.power_off()
    await machine.off()
    seen = [(round(d.at - first, 2), d.uid, d.what) for d in machine.runtime.deliveries]
    assert [(at, what) for at, uid, what in seen if uid == "termed"] == [
        (0, "hook"),
        (1, "hook over"),
        (1, "TERM"),
        (12, "KILL"),
        (12, "exit"),
    ]
    assert [(at, what) for at, uid, what in seen if uid == "hooked"] == [
        (0, "hook"),
        (4, "hook over"),  # broken off by the new shutdown, which runs it once more
        (4, "hook"),
        (10, "hook over"),
        (10, "TERM"),
        (11, "exit"),
    ]
    assert machine.terms("dns") == [pytest.approx(first + 12)], "the lower phase is waited for"
    one, two = machine.disk.records()
    assert (one.outcome, two.outcome) == (ShutdownOutcome.CANCELLED, ShutdownOutcome.COMPLETED)
    assert sorted(p.name for p in two.pods) == ["dns", "hooked", "termed"]
    [termed] = [p.containers[0] for p in two.pods if p.name == "termed"]
    assert (termed.term, termed.hook_ok) == (0, True), "its journal tells what had been done before"


@on_machine()
async def test_a_new_shutdown_is_not_undone_by_the_end_of_the_one_before(machine):
    machine.node.slowly_back = 3
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=9)})
    await machine.going_down(1)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(1)
    await machine.logind.power_off()
    await machine.off()
    told = [what for _, what in machine.node.told if what != "expect"]
    assert told == ["refuse", "not ready"] * 2 + ["ended web", "last word"]
    assert [record.outcome for record in machine.disk.records()] == [
        ShutdownOutcome.CANCELLED,
        ShutdownOutcome.COMPLETED,
    ]


@on_machine()
async def test_a_restart_does_not_give_the_two_seconds_after_sigterm_again(machine):
    machine.runtime.add(pod("web", uid="web", grace=0), STUBBORN)
    pressed = await machine.going_down(0.5)
    await machine.kill_agent()
    await machine.start_agent()
    await machine.off()
    assert [d.at for d in machine.runtime.deliveries if d.what == "KILL"] == [pytest.approx(pressed + 2)]


@on_machine()
async def test_a_restarted_agent_goes_on_waiting_for_a_kill_that_has_not_worked(machine):
    machine.runtime.add(pod("stuck", grace=1), {"main": ContainerScript(after_term=math.inf, after_kill=22)})
    pressed = await machine.going_down(21)
    await machine.kill_agent()
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 2 + 22), "there was time until 30"


@on_machine()
async def test_a_lock_of_an_earlier_life_is_replaced_at_rest(machine):
    """It may have the deadline of a shutdown that was called off, and would be gone some time later."""
    machine.runtime.add(pod("web"), STUBBORN)
    await machine.going_down(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(1)
    await machine.start_agent()
    await machine.clock.sleep(60)
    await machine.kill_agent()
    assert len(machine.logind.descriptors) == 1, "the holder still has it"


@on_machine()
async def test_leaving_before_logind_could_be_asked_leaves_the_lock_to_its_holder(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=8)})
    await machine.going_down(1)
    await machine.kill_agent()
    machine.logind.stop_bus()
    await machine.start_agent()
    machine.agent.request_stop()
    await machine.task
    machine.life.die()
    assert len(machine.logind.descriptors) == 1
    assert await machine.logind.starts() == []


@on_machine()
async def test_told_to_do_nothing_it_still_goes_on_with_what_it_has_begun(machine):
    """The new configuration is for the next shutdown, also over a restart."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=5)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)})
    pressed = await machine.going_down(1)
    await machine.kill_agent()
    machine.config = AgentConfig(kind="AgentConfiguration")
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 6)


@on_machine()
async def test_told_to_do_nothing_it_still_undoes_what_was_called_off_while_it_was_dead(machine):
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=5)})
    await machine.going_down(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    machine.config = AgentConfig(kind="AgentConfiguration")
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert machine.status.state is AgentState.IDLE
    assert machine.logind.descriptors == {}
