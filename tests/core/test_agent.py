"""The agent's loop in virtual time, with a logind, a runtime and a disk that are objects here."""

import math

import pytest
from support.core import phases, pod
from support.machine import Machine, on_machine

from lastcall import wiring
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.machine import State
from lastcall.lab import virtual
from lastcall.lab.actors import Behaviour
from lastcall.model.shutdown import Mode, Outcome, PodEnded, PodOutcome, PodStarted, Signalled
from lastcall.ports import Inhibitor

STUBBORN = {"main": Behaviour(after_term=math.inf)}


@on_machine()
async def test_arms_and_raises_the_limit(machine):
    await machine.start_agent()
    assert machine.status.state is State.ARMED
    assert machine.logind.limit == 30
    assert len(machine.logind.descriptors) == 2  # one here, one with the holder
    assert machine.status.armed
    assert not machine.status.degraded
    assert machine.status.sentence == "armed: 30s for the pods when the machine goes down"


@on_machine(groups=())
async def test_nothing_is_delayed_until_somebody_asks_for_it(machine):
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pressed
    assert machine.status.state is State.IDLE


@on_machine()
async def test_holds_the_machine_until_the_last_pod_is_done_and_no_longer(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=3)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=2)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.reboot()
    assert await machine.off() == pytest.approx(pressed + 5)
    assert await machine.off() == machine.last_exit()
    await machine.clock.sleep(1)
    [record] = machine.disk.records()
    assert record.outcome is Outcome.COMPLETED
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
async def test_a_cancel_spares_the_next_phase_and_arms_again(machine):
    machine.runtime.add(pod("begun"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("spared", uid="spared", priority=2_000_000_000))
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(2)
    await machine.logind.cancel_schedule()  # 257: no PrepareForShutdown(false), only the property
    await machine.clock.sleep(2)
    assert machine.node.told[-1][1] == "back"
    assert machine.status.state is State.ARMED
    assert machine.terms("spared") == []
    [record] = machine.disk.records()
    assert record.outcome is Outcome.CANCELLED
    await machine.clock.sleep(60)
    assert len(machine.logind.descriptors) == 2, "the new lock has no deadline of the old shutdown's"
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.off()
    assert machine.terms("spared") == [pressed]
    assert [r.outcome for r in machine.disk.records()] == [Outcome.CANCELLED, Outcome.COMPLETED]


@on_machine()
async def test_logind_restarted_in_the_middle_forgets_the_shutdown(machine):
    machine.runtime.add(pod("begun"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("spared", uid="spared", priority=2_000_000_000))
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(2)
    machine.logind.restart_logind()
    await machine.until(lambda: machine.status.state is State.ARMED, 3)
    await machine.clock.sleep(10)
    assert machine.terms("spared") == []
    assert machine.node.whens("back") != []
    assert len(machine.logind.descriptors) == 2


@on_machine()
async def test_a_bus_that_is_lost_in_the_middle_stops_nothing(machine):
    machine.runtime.add(pod("a", grace=60), {"main": Behaviour(after_term=4)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
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
    assert machine.status.state is State.SEEKING
    assert "org.freedesktop.login1 is not on the bus" in machine.status.sentence
    machine.logind.start_logind()
    await machine.until(lambda: machine.status.armed, 15)


@pytest.mark.parametrize("at", [0.5, 2.9, 3.5, 7.5, 11.0])
@pytest.mark.parametrize("down", [0.01, 2.5])
def test_killed_and_started_again(at, down):
    """In the middle of each phase and between them: no phase twice, no second SIGTERM, the lock never lost."""

    async def main():
        machine = Machine(groups=phases((0, 10), (1000, 8), (2_000_000_000, 6)))
        machine.runtime.add(pod("web", uid="web", hook=2), {"main": Behaviour(after_term=1)})
        machine.runtime.add(pod("db", uid="db", priority=1000, grace=20), {"main": Behaviour(after_term=4)})
        machine.runtime.add(pod("late", uid="late", priority=1000, grace=60), STUBBORN)
        machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=1)})
        await machine.start_agent()
        pressed = machine.clock.boottime()
        await machine.logind.power_off()
        await machine.clock.sleep(at)
        await machine.kill_agent()
        await machine.clock.sleep(down)
        assert await machine.logind.starts() == [], "the lock outlives the agent"
        await machine.start_agent()
        off = await machine.off()
        assert off <= pressed + 24
        assert off >= machine.last_exit(), "not before the last pod"
        terms = [d for d in machine.runtime.deliveries if d.what == "TERM"]
        assert sorted(d.uid for d in terms) == ["db", "dns", "late", "web"], "SIGTERM once each"
        order = [machine.terms(uid)[0] for uid in ("web", "db", "dns")]
        assert order == sorted(order)
        [kill] = [d.at - pressed for d in machine.runtime.deliveries if d.what == "KILL"]
        assert kill <= 3 + (at if at < 2 else 0) + 8 + down, "the phase's clock goes on, a broken hook runs again"
        hooks = [d.at for d in machine.runtime.deliveries if d.what == "hook"]
        assert len(hooks) == (2 if at < 2 else 1), "only a hook that was broken off runs again"
        [lines] = machine.disk.files.values()
        assert sum(b'"PhaseEnded"' in line for line in lines) == 3
        [record] = machine.disk.records()
        assert record.outcome is Outcome.COMPLETED
        assert [phase.end.value for phase in record.phases] == ["Done", "Done", "Done"]

    virtual.run(main())


@on_machine(groups=phases((0, 10), (1000, 10), (2_000_000_000, 10)))
async def test_a_restart_does_not_prolong_a_phase(machine):
    """Even where there would be time, as here that of the phase without pods."""
    machine.runtime.add(pod("stuck", grace=60), {"main": Behaviour(after_term=math.inf, after_kill=math.inf)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=1)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(5)
    await machine.kill_agent()
    await machine.clock.sleep(2)
    await machine.start_agent()
    await machine.off()
    assert machine.terms("dns") == [pytest.approx(pressed + 10)]


@on_machine()
async def test_agent_and_holder_killed_together(machine):
    """The known limit: the lock is gone, logind goes down at once; what is left of the time is still used."""
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent(holder_too=True)
    killed = machine.clock.boottime()
    assert await machine.off() == killed


@on_machine()
async def test_cancelled_while_no_agent_was_running(machine):
    machine.runtime.add(pod("begun"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("spared", uid="spared", priority=2_000_000_000))
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(5)
    await machine.start_agent()
    await machine.clock.sleep(20)
    assert machine.terms("spared") == []
    assert machine.node.told[-1][1] == "back"
    [record] = machine.disk.records()
    assert record.outcome is Outcome.CANCELLED
    assert machine.status.armed


@on_machine()
async def test_a_journal_of_an_earlier_boot_is_history(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=30)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent(holder_too=True)
    machine.boot = "boot-2"
    machine.logind.restart_logind()
    await machine.start_agent()
    assert machine.status.state is State.ARMED
    machine.runtime.add(pod("new", uid="new"))
    before = len(machine.terms())
    await machine.logind.power_off()
    await machine.off(2)
    assert len(machine.disk.files) == 2, "a shutdown of its own"
    assert len(machine.terms()) == before + 1
    assert machine.terms("new") != []


@on_machine()
async def test_an_earlier_boots_shutdown_is_not_gone_on_with_in_a_new_one(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=30)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent(holder_too=True)
    machine.boot = "boot-2"
    machine.logind.restart_logind()
    other = await (await machine.logind.open()).take_lock("somebody else's")
    await machine.logind.power_off()
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert [r.boot_id for r in machine.disk.records()] == ["boot-1", "boot-2"]
    assert machine.disk.records()[0].outcome is Outcome.RUNNING, "nothing is written into another boot's journal"
    machine.logind.close(other)


@on_machine()
async def test_started_late_without_a_lock_it_still_ends_the_pods(machine):
    other = await (await machine.logind.open()).take_lock("somebody else's")
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=1)})
    await machine.logind.power_off()
    await machine.start_agent()
    await machine.clock.sleep(3)
    assert not machine.runtime.running()
    [record] = machine.disk.records()
    assert not record.lock
    machine.logind.close(other)


@on_machine(mode=Mode.OBSERVE)
async def test_observing_holds_nothing_up(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pressed
    assert machine.runtime.deliveries == []
    [record] = machine.disk.records()
    assert [p.name for p in record.pods] == ["web"]
    assert machine.node.told == []


@on_machine()
async def test_a_full_disk_stops_nothing(machine):
    machine.disk.full = True
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pytest.approx(pressed + 3)
    assert len(machine.terms("web")) == 1


@on_machine()
async def test_a_new_configuration_is_taken_up(machine):
    await machine.start_agent()
    machine.agent.reconfigure(AgentConfig(kind="AgentConfiguration", groups=phases((0, 50))))
    await machine.clock.sleep(1)
    assert machine.logind.limit == 50
    assert machine.status.requested == 50
    machine.agent.reconfigure(AgentConfig(kind="AgentConfiguration"))
    await machine.clock.sleep(1)
    assert machine.status.state is State.IDLE
    assert machine.logind.descriptors == {}


@on_machine()
async def test_leaving_at_rest_releases_the_lock(machine):
    await machine.start_agent()
    machine.agent.leave()
    await machine.task
    assert machine.logind.descriptors == {}


@on_machine()
async def test_leaving_in_a_shutdown_leaves_the_lock_to_its_holder(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=5)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    machine.agent.leave()
    await machine.task
    machine.keeper.die()
    await machine.clock.sleep(1)
    assert await machine.logind.starts() == []
    await machine.start_agent()
    await machine.off()
    assert len(machine.terms("web")) == 1


@on_machine()
async def test_nobody_comes_back_and_the_lock_is_closed_at_the_deadline(machine):
    machine.runtime.add(pod("web", uid="web"), STUBBORN)
    machine.logind.files.put("zzz.conf", "300")
    machine.logind.reload()
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    assert await machine.off() == pytest.approx(pressed + 30)


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
async def test_the_deadline_releases_the_lock_whatever_hangs(machine):
    machine.logind.files.put("zzz.conf", "300")
    machine.logind.reload()
    machine.runtime.add(pod("web"))
    await machine.start_agent()

    async def hang():
        await machine.clock.sleep(1000)

    machine.runtime.pods = hang
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pytest.approx(pressed + 30)


@on_machine()
async def test_a_pod_that_ended_while_no_agent_ran_gets_its_last_status(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=2)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000))
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    await machine.clock.sleep(3)
    await machine.start_agent()
    await machine.off()
    assert "ended web" in [what for _, what in machine.node.told]
    [record] = machine.disk.records()
    assert [p.outcome for p in record.pods if p.name == "web"] == [PodOutcome.GRACEFUL]


# -- cancelled, and what then -------------------------------------------------------------------------------------------


@on_machine()
async def test_a_cancel_without_any_signal_is_seen_all_the_same(machine):
    machine.runtime.add(pod("begun"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("spared", uid="spared", priority=2_000_000_000))
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(2)
    machine.logind._forget()
    await machine.clock.sleep(2)
    assert machine.node.told[-1][1] == "back"
    await machine.clock.sleep(20)
    assert machine.terms("spared") == []


@on_machine()
async def test_a_node_that_was_slow_to_be_told_is_ready_after_a_cancel(machine):
    """Nothing of the announcement comes after the node is ready again."""
    machine.node.slow = 1.5
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(0.5)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(10)
    assert [what for _, what in machine.node.told] == ["refuse", "back"]


@on_machine()
async def test_a_node_that_cannot_be_made_ready_is_tried_again_while_the_agent_is_armed(machine):
    back, tries = machine.node.back, []

    async def fail():
        tries.append(machine.clock.boottime())
        if len(tries) < 3:
            raise OSError(28, "No space left on device")
        await back()

    machine.node.back = fail
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(0.5)
    assert machine.logind.descriptors == {}, "nothing ran: it is released"
    machine.logind.restart_logind()
    await machine.clock.sleep(2)
    assert machine.status.armed
    assert "back" not in [what for _, what in machine.node.told]
    await machine.clock.sleep(20)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [Outcome.CANCELLED]


@on_machine()
async def test_killed_before_the_node_is_ready_again_the_next_life_sees_to_it(machine):
    machine.node.slowly_back = 2
    machine.runtime.add(pod("web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    assert machine.node.whens("back") == []
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [Outcome.CANCELLED]


@on_machine()
async def test_a_new_shutdown_goes_on_with_what_a_cancelled_one_had_begun(machine):
    """SIGTERM once, no hook after it, none twice at once; the pod's grace is the one that had begun."""
    machine.runtime.add(pod("termed", uid="termed", grace=12, hook=1), STUBBORN)
    machine.runtime.add(pod("hooked", uid="hooked", grace=12, hook=6), {"main": Behaviour(after_term=1)})
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
    assert (one.outcome, two.outcome) == (Outcome.CANCELLED, Outcome.COMPLETED)
    assert sorted(p.name for p in two.pods) == ["dns", "hooked", "termed"]
    [termed] = [p.containers[0] for p in two.pods if p.name == "termed"]
    assert (termed.term, termed.hook_ok) == (0, True), "its journal tells what had been done before"


@on_machine()
async def test_a_new_shutdown_is_not_undone_by_the_end_of_the_one_before(machine):
    machine.node.slowly_back = 3
    machine.runtime.add(pod("web"), {"main": Behaviour(after_term=9)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(1)
    await machine.logind.power_off()
    await machine.off()
    assert [what for _, what in machine.node.told] == ["refuse", "not ready"] * 2 + ["ended web"]
    assert [record.outcome for record in machine.disk.records()] == [Outcome.CANCELLED, Outcome.COMPLETED]


@on_machine()
async def test_a_restart_does_not_give_the_two_seconds_after_sigterm_again(machine):
    machine.runtime.add(pod("web", uid="web", grace=0), STUBBORN)
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(0.5)
    await machine.kill_agent()
    await machine.start_agent()
    await machine.off()
    assert [d.at for d in machine.runtime.deliveries if d.what == "KILL"] == [pytest.approx(pressed + 2)]


@on_machine()
async def test_a_restarted_agent_goes_on_waiting_for_a_kill_that_has_not_worked(machine):
    machine.runtime.add(pod("stuck", grace=1), {"main": Behaviour(after_term=math.inf, after_kill=22)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(21)
    await machine.kill_agent()
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 2 + 22), "there was time until 30"


@on_machine()
async def test_a_lock_of_an_earlier_life_is_replaced_at_rest(machine):
    """It may have the deadline of a shutdown that was called off, and would be gone some time later."""
    machine.runtime.add(pod("web"), STUBBORN)
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(1)
    await machine.start_agent()
    await machine.clock.sleep(60)
    await machine.kill_agent()
    assert len(machine.logind.descriptors) == 1, "the holder still has it"


@on_machine()
async def test_leaving_before_logind_could_be_asked_leaves_the_lock_to_its_holder(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=8)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    machine.logind.stop_bus()
    await machine.start_agent()
    machine.agent.leave()
    await machine.task
    machine.life.die()
    assert len(machine.logind.descriptors) == 1
    assert await machine.logind.starts() == []


@on_machine()
async def test_told_to_do_nothing_it_still_goes_on_with_what_it_has_begun(machine):
    """The new configuration is for the next shutdown, also over a restart."""
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=1)})
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    machine.config = AgentConfig(kind="AgentConfiguration")
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 6)


@on_machine()
async def test_told_to_do_nothing_it_still_undoes_what_was_called_off_while_it_was_dead(machine):
    machine.runtime.add(pod("web"), {"main": Behaviour(after_term=5)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    machine.logind.restart_logind()
    machine.config = AgentConfig(kind="AgentConfiguration")
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert machine.status.state is State.IDLE
    assert machine.logind.descriptors == {}


# -- what cannot be written ---------------------------------------------------------------------------------------------


@on_machine()
async def test_a_journal_that_cannot_be_opened_again_stops_nothing(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=5)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000))
    await machine.start_agent()
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()

    def reopen(_):
        raise OSError(30, "Read-only file system")

    machine.disk.reopen = reopen
    await machine.start_agent()
    assert await machine.off() == pytest.approx(pressed + 5)
    assert len(machine.terms("dns")) == 1


@on_machine()
async def test_a_status_that_cannot_be_written_stops_nothing(machine):
    """Of a pod that has ended while no agent was there to see it."""
    machine.runtime.add(pod("web", uid="web"), {"main": Behaviour(after_term=2)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": Behaviour(after_term=1)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    await machine.kill_agent()
    await machine.clock.sleep(3)

    async def pod_ended(live, codes):
        raise OSError(28, "No space left on device")

    machine.node.pod_ended = pod_ended
    await machine.start_agent()
    await machine.off()
    assert len(machine.terms("dns")) == 1
    assert not machine.runtime.running()


@on_machine()
async def test_a_full_disk_is_told(machine, caplog):
    machine.runtime.add(pod("web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    machine.disk.full = True
    await machine.logind.power_off()
    await machine.off()
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "No space left on device" in told[0]
    assert any("start and end" in text for text in told)


# -- released already ---------------------------------------------------------------------------------------------------


@on_machine()
async def test_a_restart_after_the_release_keeps_what_was_written(machine):
    machine.runtime.add(pod("web"), {"main": Behaviour(after_term=3)})
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.off()
    await machine.clock.sleep(1)
    began = machine.disk.states[-1][0]
    await machine.kill_agent()
    await machine.start_agent()
    assert machine.status.state is State.LEAVING
    assert [start for start, _ in machine.disk.states] == [began] * len(machine.disk.states)
    machine.logind.restart_logind()  # and the machine stays after all
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [Outcome.CANCELLED]


@on_machine(mode=Mode.OBSERVE)
async def test_who_only_observes_refuses_no_pods_after_a_restart_either(machine):
    await machine.start_agent()
    await machine.logind.power_off()
    await machine.off()
    await machine.kill_agent()
    await machine.start_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(5)
    assert machine.node.told == []


def test_the_log_does_not_repeat_what_an_earlier_life_has_said(caplog):
    caplog.set_level("INFO")
    tell = wiring._log_events(since=10.0)
    who = {"uid": "u", "namespace": "default", "name": "web"}
    tell(PodStarted(at=4.0, **who, priority=0, phase=0, grace=30, asked=30, containers=("main",)))
    tell(Signalled(at=5.0, uid="u", container="main", signal="KILL"))
    tell(PodEnded(at=11.0, uid="u", outcome=PodOutcome.KILLED))
    assert [record.getMessage() for record in caplog.records] == ["default/web has ended: Killed"]
