"""The agent when others than logind announce that the machine goes down."""

import math

import pytest
from msgspec.structs import replace
from support.agents.virtual_machine import STUBBORN, on_machine
from support.agents.virtual_parts import phases, pod

from lastcall.graceful.state_machine import AgentState
from lastcall.model.shutdown import PhasePlan, ShutdownMode, ShutdownOutcome
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice
from lastcall_lab.fakes.actor_runtime import ContainerScript

EC2, NUT, SOCKET = NoticeSource.EC2, NoticeSource.NUT, NoticeSource.SOCKET


def tell(machine, seconds, source=EC2, *, key="1", replaces=False):
    """A source says that the machine goes down in so many seconds."""
    notice = ShutdownNotice(source=source, key=key, deadline=machine.clock.boottime() + seconds, reason="because")
    return machine.agent.put_notice(notice, replace=replaces)


def two_pods(machine, seconds=3.0):
    machine.runtime.add(pod("web", uid="web", grace=60), {"main": ContainerScript(after_term=seconds)})
    machine.runtime.add(pod("dns", uid="dns", priority=2_000_000_000), {"main": ContainerScript(after_term=1)})


def kills(machine):
    return [(d.at, d.uid) for d in machine.runtime.deliveries if d.what == "KILL"]


@on_machine()
async def test_a_notice_ends_the_pods_and_keeps_them_ended_while_logind_says_nothing(machine):
    two_pods(machine)
    await machine.start_agent()
    told = machine.clock.boottime()
    assert tell(machine, 120)
    await machine.clock.sleep(10)
    assert machine.terms() == [told, told + 3]
    assert machine.status.state is AgentState.RELEASED
    assert machine.node.whens("back") == []
    [record] = machine.disk.records()
    assert (record.announced_by, record.how, record.outcome) == (("EC2",), "", ShutdownOutcome.COMPLETED)
    assert record.deadline == pytest.approx(120)
    assert await machine.logind.starts() == [], "lastcall itself switches nothing off"


@on_machine()
async def test_the_deadline_caps_the_budget_and_phases_keep_their_order(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 15)
    await machine.until(lambda: machine.status.state is AgentState.RELEASED, 20)
    [(first, web), (second, dns)] = kills(machine)
    assert (web, dns) == ("web", "dns")
    assert first <= told + 5, "critical phases keep their 10 s of the 15"
    assert first <= machine.terms("dns")[0] < second <= told + 15


@on_machine()
async def test_a_notice_begins_nothing_until_the_configured_time_before_its_deadline(machine):
    two_pods(machine)
    machine.config = replace(machine.config, deadlines=replace(machine.config.deadlines, lead_seconds=100))
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 300)
    await machine.clock.sleep(199)
    assert machine.terms() == []
    assert machine.status.armed
    await machine.clock.sleep(10)
    assert machine.terms("web") == [pytest.approx(told + 200, abs=0.1)]


@on_machine()
async def test_the_lead_is_never_shorter_than_the_phases(machine):
    two_pods(machine)
    machine.config = replace(machine.config, deadlines=replace(machine.config.deadlines, lead_seconds=0))
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 300)
    await machine.clock.sleep(280)
    assert machine.terms("web") == [pytest.approx(told + 270, abs=0.1)]


@on_machine()
async def test_logind_that_announces_it_during_the_notice_is_the_same_shutdown(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 120)
    await machine.clock.sleep(5)
    await machine.logind.reboot()
    off = await machine.off()
    assert [uid for _, uid in kills(machine)] == ["web", "dns"]
    assert len(machine.terms()) == 2, "no second SIGTERM"
    assert off <= told + 31, "no second budget"
    [record] = machine.disk.records()
    assert (record.announced_by, record.how) == (("EC2", "Logind"), "reboot")


@on_machine()
async def test_logind_that_grants_less_cuts_the_running_phase(machine):
    machine.logind.files.put("zzz-corporate.conf", "12")
    machine.logind.reload()
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    await machine.start_agent()
    tell(machine, 120)
    await machine.clock.sleep(5)
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    off = await machine.off()
    assert [uid for _, uid in kills(machine)] == ["web", "dns"]
    assert machine.last_exit() <= off <= pressed + 12, "the last kill is confirmed before logind's patience ends"


@on_machine()
async def test_logind_after_the_pods_have_ended_waits_for_nothing(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 120)
    await machine.clock.sleep(20)
    pressed = machine.clock.boottime()
    await machine.logind.power_off()
    assert await machine.off() == pressed
    await machine.clock.sleep(2)
    [record] = machine.disk.records()
    assert (record.announced_by, record.how) == (("EC2", "Logind"), "poweroff")


@on_machine()
async def test_a_notice_with_an_earlier_deadline_caps_logind_s_shutdown(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    pressed = await machine.going_down(2)
    tell(machine, 14, NUT)
    off = await machine.off()
    [(first, web), (_, dns)] = kills(machine)
    assert (web, dns) == ("web", "dns")
    assert first < pressed + 7
    assert machine.last_exit() <= off <= pressed + 16
    [record] = machine.disk.records()
    assert record.announced_by == ("Logind", "NUT")
    assert record.deadline == pytest.approx(16, abs=0.1)


@on_machine()
async def test_a_later_notice_gives_logind_s_shutdown_no_more_time(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    pressed = await machine.going_down(1)
    tell(machine, 500)
    assert await machine.off() <= pressed + 30


@on_machine()
async def test_a_withdrawn_notice_is_a_cancelled_shutdown(machine):
    two_pods(machine, 5)
    await machine.start_agent()
    tell(machine, 120, NUT)
    await machine.clock.sleep(2)
    assert machine.agent.withdraw_notice(NUT)
    await machine.clock.sleep(3)
    assert machine.terms("dns") == []
    assert machine.node.told[-1][1] == "back"
    assert machine.status.state is AgentState.ARMED
    assert len(machine.logind.descriptors) == 2
    [record] = machine.disk.records()
    assert record.outcome is ShutdownOutcome.CANCELLED
    assert not machine.agent.withdraw_notice(NUT)


@on_machine()
async def test_a_notice_withdrawn_after_the_pods_have_ended_gives_the_node_back(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 120, NUT)
    await machine.clock.sleep(20)
    assert machine.status.state is AgentState.RELEASED
    machine.agent.withdraw_notice(NUT)
    await machine.clock.sleep(3)
    assert machine.node.told[-1][1] == "back"
    assert machine.status.armed
    assert [record.outcome for record in machine.disk.records()] == [ShutdownOutcome.CANCELLED]


@on_machine()
async def test_one_of_two_sources_does_not_cancel(machine):
    two_pods(machine, 5)
    await machine.start_agent()
    tell(machine, 120, NUT)
    tell(machine, 60, SOCKET)
    await machine.clock.sleep(2)
    machine.agent.withdraw_notice(SOCKET)
    await machine.clock.sleep(10)
    assert machine.node.whens("back") == []
    assert machine.terms("dns") != []
    machine.agent.withdraw_notice(NUT)
    await machine.clock.sleep(3)
    assert machine.node.told[-1][1] == "back"


@on_machine()
async def test_a_withdrawn_notice_does_not_cancel_logind_s_shutdown(machine):
    two_pods(machine, 5)
    await machine.start_agent()
    tell(machine, 120, NUT)
    await machine.clock.sleep(1)
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    machine.agent.withdraw_notice(NUT)
    await machine.off()
    assert machine.terms("dns") != []
    assert machine.node.whens("back") == []


@on_machine()
async def test_a_shutdown_that_logind_cancels_goes_on_while_a_notice_holds(machine):
    two_pods(machine, 5)
    await machine.going_down(1)
    tell(machine, 120, NUT)
    await machine.clock.sleep(0.5)
    await machine.logind.cancel_schedule()
    await machine.clock.sleep(10)
    assert machine.terms("dns") != []
    assert machine.node.whens("back") == []


@on_machine()
async def test_a_machine_that_is_still_up_long_after_the_deadline_stays_up(machine):
    two_pods(machine)
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 30)
    await machine.clock.sleep(80)
    assert machine.node.whens("back") == []
    await machine.clock.sleep(15)
    [back] = machine.node.whens("back")
    assert back == pytest.approx(told + 90, abs=1.1)
    assert machine.status.armed
    assert not tell(machine, 30), "the source repeats what has not come true"
    await machine.clock.sleep(5)
    assert len(machine.terms()) == 2


@pytest.mark.parametrize("at", [0.5, 2.0, 4.5, 20.0])
def test_the_next_life_resumes_it_by_the_journal(at):
    """In each phase, and after them: the sources have said nothing to the new process yet."""

    @on_machine()
    async def story(machine):
        two_pods(machine)
        await machine.start_agent()
        told = machine.clock.boottime()
        tell(machine, 60)
        await machine.clock.sleep(at)
        await machine.kill_agent()
        await machine.start_agent()
        await machine.clock.sleep(30 - at)
        assert machine.node.whens("back") == []
        assert [uid for uid in ("web", "dns") for _ in machine.terms(uid)] == ["web", "dns"], "SIGTERM once each"
        assert machine.status.state is AgentState.RELEASED
        [notice] = machine.agent.notices
        assert notice.deadline == pytest.approx(told + 60)
        machine.agent.withdraw_notice(EC2)
        await machine.clock.sleep(3)
        assert machine.node.told[-1][1] == "back"
        assert [record.outcome for record in machine.disk.records()] == [ShutdownOutcome.CANCELLED]

    story()


@on_machine()
async def test_the_next_life_that_comes_too_late_gives_the_node_back(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 30)
    await machine.clock.sleep(1)
    await machine.kill_agent()
    await machine.clock.sleep(100)
    await machine.start_agent()
    await machine.clock.sleep(5)
    assert machine.terms("dns") == []
    assert machine.node.told[-1][1] == "back"


@on_machine(mode=ShutdownMode.OBSERVE)
async def test_in_observe_mode_a_notice_is_reported_and_ends_nothing(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 60)
    await machine.clock.sleep(5)
    assert machine.runtime.deliveries == []
    assert machine.node.told == []
    [record] = machine.disk.records()
    assert record.announced_by == ("EC2",)
    assert len(record.pods) == 2


@on_machine(groups=())
async def test_without_phases_a_notice_ends_nothing(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 60)
    await machine.clock.sleep(5)
    assert machine.runtime.deliveries == []
    assert machine.status.state is AgentState.IDLE
    assert machine.disk.records() == []


@on_machine()
async def test_a_notice_needs_no_logind(machine):
    """A power failure waits for no bus; and without one, nothing else could tell of the shutdown."""
    two_pods(machine)
    machine.logind.stop_bus()
    await machine.start_agent()
    assert not machine.status.logind_reachable
    tell(machine, 60)
    await machine.clock.sleep(10)
    assert machine.terms("dns") != []
    machine.agent.withdraw_notice(EC2)
    await machine.clock.sleep(3)
    assert machine.node.told[-1][1] == "back"


@on_machine()
async def test_a_bus_that_is_lost_in_the_middle_changes_nothing(machine):
    two_pods(machine)
    await machine.start_agent()
    tell(machine, 60)
    await machine.clock.sleep(1)
    machine.logind.stop_bus()
    await machine.clock.sleep(20)
    assert machine.terms("dns") != []
    assert machine.node.whens("back") == []
    machine.agent.withdraw_notice(EC2)
    await machine.clock.sleep(3)
    assert machine.node.told[-1][1] == "back"


@on_machine()
async def test_a_notice_before_the_agent_is_armed_begins_the_shutdown_too(machine):
    two_pods(machine)
    machine.logind.inhibit_fails = True
    await machine.start_agent(wait=0)
    tell(machine, 60)
    await machine.clock.sleep(10)
    assert machine.terms("dns") != []


@on_machine(groups=phases((0, 20), (2_000_000_000, 10)))
async def test_a_notice_whose_time_is_over_already_kills_at_once_and_in_order(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(pod("dns", uid="dns", grace=60, priority=2_000_000_000), STUBBORN)
    await machine.start_agent()
    tell(machine, 0)
    await machine.clock.sleep(5)
    assert machine.status.state is AgentState.RELEASED
    assert math.isfinite(machine.last_exit())
    assert PhasePlan(priority=0, seconds=20) in machine.config.groups


@on_machine()
async def test_logind_that_grants_more_does_not_put_the_deadline_off(machine):
    machine.runtime.add(pod("web", uid="web", grace=60), STUBBORN)
    machine.runtime.add(
        pod("dns", uid="dns", grace=60, priority=2_000_000_000), {"main": ContainerScript(after_term=1)}
    )
    await machine.start_agent()
    told = machine.clock.boottime()
    tell(machine, 14)
    await machine.clock.sleep(2)
    await machine.logind.power_off()
    await machine.clock.sleep(1)
    assert machine.holder.deadline <= told + 14
    [record] = machine.disk.records()
    assert record.deadline <= 14
    assert await machine.off() <= told + 14


@on_machine()
async def test_a_later_time_replaces_an_earlier_one_only_before_the_shutdown_has_begun(machine):
    two_pods(machine)
    await machine.start_agent()
    assert tell(machine, 2000, SOCKET)
    assert tell(machine, 4000, SOCKET, key="2", replaces=True)
    assert tell(machine, 60, SOCKET, key="3", replaces=True)
    await machine.clock.sleep(1)
    begun = machine.clock.boottime()
    assert not tell(machine, 500, SOCKET, key="4", replaces=True), "the kubelet comes back by the first one"
    [notice] = machine.agent.notices
    assert notice.deadline == pytest.approx(begun + 59)


def steps_of_a_shutdown():
    """How many contacts with the outside an agent has from its start to the end of a shutdown by a notice."""
    counted = []

    @on_machine()
    async def story(machine):
        two_pods(machine)
        await machine.start_agent(fuse=10**6)
        tell(machine, 60)
        await machine.clock.sleep(8)
        counted.append(10**6 - machine.life.fuse)

    story()
    return counted[0]


@pytest.mark.parametrize("part", range(4))
def test_killed_at_every_step_and_resumed(part):
    """No second SIGTERM, phases in order, and the node back when the notice is withdrawn."""
    for fuse in range(part, steps_of_a_shutdown(), 4):

        @on_machine()
        async def story(machine, fuse=fuse):
            two_pods(machine)
            told = machine.clock.boottime()
            await machine.start_agent(fuse=fuse)
            if machine.life.alive:
                tell(machine, 60)
                await machine.clock.sleep(8)
            await machine.kill_agent()
            await machine.start_agent()
            tell(machine, told + 60 - machine.clock.boottime())  # its source repeats it
            await machine.until(lambda: machine.status.state is AgentState.RELEASED, 60)
            terms = {uid: machine.terms(uid) for uid in ("web", "dns")}
            assert [len(times) for times in terms.values()] == [1, 1], fuse
            exits = [d.at for d in machine.runtime.deliveries if (d.uid, d.what) == ("web", "exit")]
            assert exits[0] <= terms["dns"][0], fuse
            assert machine.node.whens("back") == [], fuse
            machine.agent.withdraw_notice(EC2)
            await machine.until(lambda: machine.node.told[-1][1] == "back", 30)
            await machine.until(lambda: machine.status.armed, 30)

        story()
