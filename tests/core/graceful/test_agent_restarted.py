"""The agent that ends in the middle of a shutdown, and what its next life goes on with."""

import math

import pytest
from msgspec.structs import replace
from support.agents.virtual_machine import STUBBORN, Machine, on_machine
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import (
    ContainerSignalled,
    PodEnded,
    PodOutcome,
    PodStarted,
    ShutdownMode,
    ShutdownOutcome,
    ShutdownState,
)
from lastcall.wiring import agent
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ContainerScript


@pytest.mark.parametrize("at", [0.5, 2.9, 3.5, 7.5, 11.0])
@pytest.mark.parametrize("down", [0.01, 2.5])
def test_killed_and_started_again(at, down):
    """In the middle of each phase and between them: no phase twice, no second SIGTERM, the lock never lost."""

    async def main():
        machine = Machine(groups=phases((0, 10), (1000, 8), (2_000_000_000, 6)))
        machine.runtime.add(pod("web", uid="web", hook=2), {"main": ContainerScript(after_term=1)})
        machine.runtime.add(pod("db", uid="db", priority=1000, grace=20), {"main": ContainerScript(after_term=4)})
        machine.runtime.add(pod("late", uid="late", priority=1000, grace=60), STUBBORN)
        machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)})
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
        assert record.outcome is ShutdownOutcome.COMPLETED
        assert [phase.end.value for phase in record.phases] == ["Done", "Done", "Done"]

    virtual.run(main())


@on_machine(groups=phases((0, 10), (1000, 10), (2_000_000_000, 10)))
async def test_a_restart_does_not_prolong_a_phase(machine):
    """Even where there would be time, as here that of the phase without pods."""
    machine.runtime.add(pod("stuck", grace=60), {"main": ContainerScript(after_term=math.inf, after_kill=math.inf)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)})
    pressed = await machine.going_down(5)
    await machine.kill_agent()
    await machine.clock.sleep(2)
    await machine.start_agent()
    await machine.off()
    assert machine.terms("dns") == [pytest.approx(pressed + 10)]


@on_machine()
async def test_agent_and_holder_killed_together(machine):
    """The known limit: the lock is gone, logind goes down at once; what is left of the time is still used."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    await machine.going_down(1)
    await machine.kill_agent(holder_too=True)
    killed = machine.clock.boottime()
    assert await machine.off() == killed


@on_machine()
async def test_a_journal_of_an_earlier_boot_is_history(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=30)})
    await machine.going_down(1)
    await machine.kill_agent(holder_too=True)
    machine.boot = "boot-2"
    machine.logind.restart_logind()
    await machine.start_agent()
    assert machine.status.state is AgentState.ARMED
    machine.runtime.add(pod("new", uid="new"))
    before = len(machine.terms())
    await machine.logind.power_off()
    await machine.off(2)
    assert len(machine.disk.files) == 2, "a shutdown of its own"
    assert len(machine.terms()) == before + 1
    assert machine.terms("new") != []


@on_machine()
async def test_the_next_boot_completes_the_journal_once_and_cleans_up_after_it(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=30)})
    await machine.going_down(1)
    await machine.kill_agent(holder_too=True)
    machine.boot = "boot-2"
    machine.logind.restart_logind()
    for _ in range(2):
        await machine.start_agent()
        await machine.clock.sleep(5)
        await machine.kill_agent(holder_too=True)
    [record] = machine.disk.records()
    assert (record.outcome, record.state) == (ShutdownOutcome.INTERRUPTED, ShutdownState.RETURNED)
    [lines] = machine.disk.files.values()
    assert sum(b'"Returned"' in line for line in lines) == 1
    assert [last and last.returned for last in machine.node.cleaned_up] == [None, record.returned, record.returned]


@on_machine()
async def test_an_earlier_boots_shutdown_is_not_gone_on_with_in_a_new_one(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=30)})
    await machine.going_down(1)
    await machine.kill_agent(holder_too=True)
    machine.boot = "boot-2"
    machine.logind.restart_logind()
    other = await (await machine.logind.open()).take_lock("somebody else's")
    await machine.logind.power_off()
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert [r.boot_id for r in machine.disk.records()] == ["boot-1", "boot-2"]
    assert machine.disk.records()[0].outcome is ShutdownOutcome.RUNNING, (
        "nothing is written into another boot's journal"
    )
    machine.logind.close(other)


@on_machine()
async def test_leaving_in_a_shutdown_leaves_the_lock_to_its_holder(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=5)})
    await machine.going_down(1)
    machine.agent.request_stop()
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
    pressed = await machine.going_down(1)
    await machine.kill_agent()
    assert await machine.off() == pytest.approx(pressed + 30)


@on_machine()
async def test_a_pod_that_ended_while_no_agent_ran_gets_its_last_status(machine):
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=2)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000))
    await machine.going_down(1)
    await machine.kill_agent()
    await machine.clock.sleep(3)
    await machine.start_agent()
    await machine.off()
    assert "ended web" in [what for _, what in machine.node.told]
    [record] = machine.disk.records()
    assert [p.outcome for p in record.pods if p.name == "web"] == [PodOutcome.GRACEFUL]


@on_machine()
async def test_a_restart_after_the_release_keeps_what_was_written(machine):
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=3)})
    await machine.going_down()
    await machine.off()
    await machine.clock.sleep(1)
    began = machine.disk.states[-1][0]
    await machine.kill_agent()
    await machine.start_agent()
    assert machine.status.state is AgentState.RELEASED
    assert [start for start, _ in machine.disk.states] == [began] * len(machine.disk.states)
    machine.logind.restart_logind()  # and the machine stays after all
    await machine.clock.sleep(5)
    assert machine.node.told[-1][1] == "back"
    assert [record.outcome for record in machine.disk.records()] == [ShutdownOutcome.CANCELLED]


@on_machine(mode=ShutdownMode.OBSERVE)
async def test_who_only_observes_refuses_no_pods_after_a_restart_either(machine):
    await machine.going_down()
    await machine.off()
    await machine.kill_agent()
    await machine.start_agent()
    machine.logind.restart_logind()
    await machine.clock.sleep(5)
    assert machine.node.told == []


def test_the_log_does_not_repeat_what_an_earlier_life_has_said(caplog):
    caplog.set_level("INFO")
    tell = agent._log_events(since=10.0)
    who = {"uid": "u", "namespace": "default", "name": "web"}
    tell(PodStarted(at=4.0, **who, priority=0, phase=0, grace=30, asked=30, containers=("main",)))
    tell(ContainerSignalled(at=5.0, uid="u", container="main", signal="KILL"))
    tell(PodEnded(at=11.0, uid="u", outcome=PodOutcome.KILLED))
    assert [record.getMessage() for record in caplog.records] == ["default/web has ended: Killed"]


@on_machine()
async def test_a_soft_reboot_that_is_over_is_no_cancelled_shutdown(machine):
    """The boot id is the same, so that the journal seems to be of a shutdown that this machine has survived."""
    machine.runtime.add(pod("web"), {"main": ContainerScript(after_term=3)})
    await machine.start_agent()
    await machine.logind.shut_down("soft-reboot")
    await machine.off()
    await machine.clock.sleep(1)
    await machine.kill_agent(holder_too=True)
    machine.logind._forget_shutdown()
    machine.logind.restart_logind()
    await machine.start_agent()
    await machine.clock.sleep(5)
    [record] = machine.disk.records()
    assert (record.outcome, record.how) == (ShutdownOutcome.COMPLETED, "soft-reboot")
    assert record.returned is not None
    assert machine.node.cleaned_up[-1] == record, "as after a boot"
    assert machine.status.armed


@on_machine()
async def test_an_agent_that_starts_during_a_shutdown_after_a_soft_reboot_begins_it_anew(machine):
    """The journal of the soft-reboot is of the same boot, and says that the lock was released."""
    await machine.start_agent()
    await machine.logind.shut_down("soft-reboot")
    await machine.off()
    await machine.clock.sleep(1)
    await machine.kill_agent(holder_too=True)
    machine.logind._forget_shutdown()
    machine.logind.restart_logind()
    await machine.start_agent()
    await machine.clock.sleep(2)
    await machine.kill_agent()
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=3)})
    await machine.logind.power_off()
    await machine.start_agent()
    await machine.off()
    assert len(machine.terms("web")) == 1
    assert [record.how for record in machine.disk.records()] == ["soft-reboot", "poweroff"]


@on_machine(groups=phases((0, 10), (2_000_000_000, 10)))
async def test_an_agent_killed_while_it_unmounts_is_continued_by_the_next_one(machine):
    machine.runtime.add(pod("db", uid="db"), {"main": ContainerScript(after_term=1)})
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=1)})
    machine.node.unmounts = ("db", "web")
    machine.node.slow_end = {"db": math.inf}
    await machine.going_down(2)
    await machine.kill_agent()
    machine.node.slow_end = {"db": 3.0}
    await machine.start_agent()
    await machine.off()
    assert len(machine.node.whens("ended db")) == 2
    assert len(machine.node.whens("ended web")) == 1, "its volumes were unmounted already"
    [record] = machine.disk.records()
    assert {one.name: one.unmounted is not None for one in record.pods} == {"db": True, "web": True}
    assert [one.outcome for one in record.pods] == [PodOutcome.GRACEFUL, PodOutcome.GRACEFUL]


@on_machine(groups=phases((0, 10), (2_000_000_000, 10)))
async def test_a_container_that_the_kubelet_started_while_no_agent_ran_has_a_time_of_its_own(machine):
    """Its predecessor got SIGTERM, and nobody saw its end."""
    db = pod("db", uid="db", grace=4, hook=1)
    machine.runtime.add(db, {"main": ContainerScript(after_term=1, hook=1)})
    await machine.going_down(1.5)
    await machine.kill_agent()
    await machine.clock.sleep(2)
    machine.runtime._script = lambda *_: ContainerScript(after_term=math.inf, hook=1)
    await machine.runtime.launch_container(db, db.spec.containers[0], attempt=1)
    await machine.clock.sleep(3)
    await machine.start_agent()
    await machine.off()
    found = [(d.what, d.at) for d in machine.runtime.deliveries if d.uid == "db"]
    assert [what for what, _ in found if what in ("hook", "TERM", "KILL")] == ["hook", "TERM", "hook", "TERM", "KILL"]
    last = dict(found)
    assert last["KILL"] >= last["TERM"] + 2


async def goes_on_without_specs(machine, seconds):
    """The agent is killed in the phase of web. For so many seconds no source knows the next agent's pods."""
    machine.runtime.add(pod("web", uid="web"), {"main": ContainerScript(after_term=5)})
    machine.runtime.add(pod("db", uid="db", priority=1000), {"main": ContainerScript(after_term=1)})
    await machine.going_down(1)
    await machine.kill_agent()
    known, list_pods = machine.clock.boottime() + seconds, machine.runtime.list_pods

    async def list_without_specs():
        found = await list_pods()
        if machine.clock.boottime() >= known:
            return found
        specs = (replace(live.pod.spec, priority=None) for live in found)
        return [replace(live, pod=replace(live.pod, spec=spec)) for live, spec in zip(found, specs, strict=True)]

    machine.runtime.list_pods = machine.runtime.refresh_pods = list_without_specs
    await machine.start_agent()
    await machine.off()
    [web] = [d.at for d in machine.runtime.deliveries if (d.uid, d.what) == ("web", "exit")]
    [db] = machine.terms("db")
    return web, db


@on_machine(groups=phases((0, 10), (1000, 10)))
async def test_an_agent_that_goes_on_waits_for_the_specs_of_pods_that_no_source_knows_yet(machine):
    web, db = await goes_on_without_specs(machine, 0.1)
    assert db >= web, "its phase is known in time"


@on_machine(groups=phases((0, 10), (1000, 10)))
async def test_an_agent_that_goes_on_does_not_wait_for_sources_that_do_not_answer(machine):
    web, db = await goes_on_without_specs(machine, math.inf)
    assert db < web, "a pod that nobody knows ends first"
