"""The agent's loop in virtual time, with a logind, a runtime and a disk that are objects here."""

import asyncio
import math
from contextlib import suppress

import pytest
from support.core import RecordingNode, phases, pod

from lastcall.graceful.agent import Agent, Outside
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.machine import State
from lastcall.lab import virtual
from lastcall.lab.actors import ActorRuntime, Behaviour
from lastcall.lab.fake_keeper import FakeHolder, FakeKeeper
from lastcall.lab.fake_logind import FakeLogind
from lastcall.model.record import fold
from lastcall.model.shutdown import Mode, Outcome, from_lines

TWO = phases((0, 20), (2_000_000_000, 10))
STUBBORN = {"main": Behaviour(after_term=math.inf)}


class Disk:
    """ports.Journals in memory; survives the agents."""

    def __init__(self):
        self.files, self.states, self.full = {}, [], False

    def create(self, shutdown_id):
        if self.full:
            raise OSError(28, "No space left on device")
        self.files[shutdown_id] = []
        return self.reopen(shutdown_id)

    def reopen(self, shutdown_id):
        disk = self

        class File:
            def append(self, line):
                if disk.full:
                    raise OSError(28, "No space left on device")
                disk.files[shutdown_id].append(line)

            async def sync(self):
                pass

        return File()

    def latest(self):
        if not self.files:
            return None
        newest = max(self.files)
        return newest, list(self.files[newest])

    async def write_kubelet_state(self, start, end):
        self.states.append((start, end))

    def records(self):
        return [fold(from_lines(lines)) for lines in self.files.values()]


class Machine:
    """A machine with an agent on it, which can be killed and started again."""

    def __init__(self, *, groups=TWO, version=257, mode=Mode.ENFORCE):
        self.clock = virtual.VirtualClock()
        self.logind = FakeLogind(self.clock, version=version)
        self.holder = FakeHolder(self.logind, self.clock)
        self.runtime = ActorRuntime(self.clock)
        self.node = RecordingNode(self.clock)
        self.disk = Disk()
        self.config = AgentConfig(kind="AgentConfiguration", groups=groups, mode=mode)
        self.statuses = []
        self.boot = "boot-1"

    async def start_agent(self):
        self.keeper = FakeKeeper(self.holder)
        self.agent = Agent(
            self.config,
            Outside(
                clock=self.clock,
                logind=self.logind,
                keeper=self.keeper,
                limit_files=self.logind.files,
                runtime=self.runtime,
                node=self.node,
                journals=self.disk,
            ),
            node_name="n1",
            boot_id=self.boot,
            on_status=self.statuses.append,
        )
        self.task = asyncio.create_task(self.agent.run(), name="agent")
        await self.clock.sleep(1)

    async def kill_agent(self, *, holder_too=False):
        """SIGKILL: no cleaning up of its own. Its tasks end, its descriptors are closed."""
        agent, self.agent = self.agent, None
        agent._arming.release = agent._link.close = _nothing
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        self.keeper.die()
        if holder_too:
            self.holder.drop()

    async def until(self, condition, seconds=200):
        end = self.clock.boottime() + seconds
        while not condition():
            assert self.clock.boottime() < end, f"waited {seconds} s in vain; {self.statuses[-1]}"
            await self.clock.sleep(0.01)

    async def off(self, number=1):
        return (await self.logind.wait_for_start(number, seconds=300)).at

    @property
    def status(self):
        return self.statuses[-1]

    def terms(self, uid=None):
        return [d.at for d in self.runtime.deliveries if d.what == "TERM" and uid in (None, d.uid)]

    def last_exit(self):
        return max(d.at for d in self.runtime.deliveries if d.what == "exit")


async def _nothing():
    pass


def on_machine(**options):
    """Runs an async test in virtual time with a machine."""

    def decorate(test):
        def wrapped():
            async def main():
                machine = Machine(**options)
                await test(machine)

            virtual.run(main())

        wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
        return wrapped

    return decorate


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
    await machine.clock.sleep(3600)
    assert not machine.status.logind_reachable
    assert machine.status.retries > 100
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
