"""What is done to clocks, disks, etcd, controllers and policies in a rehearsal does what it says."""

import pytest

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import PODS
from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab import virtual
from lastcall_lab.fakes.datagrams import FakeNetwork
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation.failover.manifests import POLICY
from lastcall_lab.simulation.invariants import find_violations
from lastcall_lab.simulation.machine.disk import SimulatedDisk
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import (
    FailoverSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.seeds import random_of

DB = ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=2, volume=True, writes=1.0, ends=1.0)


def rehearse(*timeline, look_at=(), look=lambda rehearsal: None, lasts=120.0, agent=None, **failover):
    """The rehearsal, and what ``look`` has seen at these times."""
    settings = FailoverSettings(**{"suspect_after": 20.0, "settle": 1.0, **failover})
    scenario = Scenario(
        "faults",
        nodes=(NodeGroup(count=3),),
        workloads=(DB,),
        agent=agent,
        failover=settings,
        timeline=timeline,
        lasts=lasts,
    )
    seen = []

    async def observe(rehearsal):
        while not rehearsal.start:
            await rehearsal.clock.sleep(0.1)
        for at in look_at:
            await rehearsal.clock.sleep(rehearsal.start + at - rehearsal.clock.boottime())
            seen.append(look(rehearsal))

    async def run():
        rehearsal = Rehearsal(scenario, 1)
        observer = virtual.VirtualProcess("observer")
        observer.start(observe(rehearsal), "observe")
        await rehearsal.run()
        return rehearsal, find_violations(rehearsal.run_record())

    rehearsal, violations = virtual.run(run())
    assert violations == []
    return rehearsal, seen


def orders(rehearsal):
    return [one.at - rehearsal.start for one in rehearsal.cluster.truth.orders]


def test_a_hung_kubelet_is_not_started_by_who_would_start_a_killed_agent():
    """Also when the machine goes down meanwhile: with two kubelets, each would overwrite what the other writes."""
    hung = ScenarioEvent(at=5, verb=Verb.HANG, nodes=("node-1",), lasts=30)
    killed = ScenarioEvent(at=10, verb=Verb.KILL_AGENT, nodes=("node-1",), lasts=4)
    rebooted = ScenarioEvent(at=12, verb=Verb.REBOOT, nodes=("node-1",), lasts=20)
    _, lives = rehearse(
        hung,
        killed,
        rebooted,
        agent=AgentConfig(AGENT_CONFIGURATION, (PhasePlan(0, 60), PhasePlan(2000000000, 10))),
        look_at=(13, 15, 90),
        look=lambda one: (one.cluster.machines["node-1"].switch, one.cluster.hosts["node-1"].process.alive),
    )
    assert lives == [(PowerSwitch.BUTTON, False), (PowerSwitch.BUTTON, False), (PowerSwitch.ON, True)]


LOST = ScenarioEvent(at=10, verb=Verb.POWER_CUT, nodes=("node-2",))


def test_a_leader_that_stands_still_is_succeeded_and_does_no_harm_when_it_goes_on():
    frozen = ScenarioEvent(at=5, verb=Verb.PAUSE_FAILOVER, lasts=60)
    rehearsal, leads = rehearse(
        frozen, LOST, replicas=2, look_at=(1, 50, 100), look=lambda one: one.cluster.failing_over.replicas.leader.name
    )
    assert leads[0] != leads[1]
    assert len(orders(rehearsal)) == 1
    assert orders(rehearsal)[0] < 65, "the other one has fenced it meanwhile"


def test_a_policy_that_observes_fences_nothing_until_it_enforces_again():
    observes = ScenarioEvent(at=5, verb=Verb.POLICY_OBSERVE, lasts=60)
    rehearsal, modes = rehearse(
        observes,
        LOST,
        look_at=(1, 30, 80),
        look=lambda one: next(
            policy["spec"]["mode"]
            for policy in one.cluster.list_objects(POLICIES)
            if policy["metadata"]["name"] == POLICY
        ),
    )
    assert modes == ["Enforce", "Observe", "Enforce"]
    assert len(orders(rehearsal)) == 1
    assert orders(rehearsal)[0] > 65


@pytest.mark.parametrize(("seconds", "earlier"), [(10.0, True), (60.0, False)])
def test_a_policy_that_is_edited_counts(seconds, earlier):
    edited = ScenarioEvent(at=5, verb=Verb.POLICY_SUSPECT, amount=seconds)
    usual, _ = rehearse(LOST)
    rehearsal, _ = rehearse(edited, LOST)
    assert (orders(rehearsal)[0] < orders(usual)[0]) is earlier


def test_etcd_restored_from_a_backup_has_what_it_had():
    restored = ScenarioEvent(at=20, verb=Verb.ETCD_RESTORE, lasts=20)
    drained = ScenarioEvent(at=25, verb=Verb.DRAIN, nodes=("node-1", "node-2", "node-3"), lasts=1)
    rehearsal, uids = rehearse(
        restored,
        drained,
        look_at=(19, 38, 40.5),
        look=lambda one: sorted(pod["metadata"]["uid"] for pod in one.cluster.list_objects(PODS)),
    )
    assert uids[0] == uids[2] != uids[1]
    assert len(rehearsal.cluster.truth.restores) == 1


def test_a_clock_drifts_and_is_set_right():
    drifts = ScenarioEvent(at=10, verb=Verb.CLOCK_DRIFT, nodes=("node-1",), amount=-20.0, lasts=40)
    _, skews = rehearse(
        drifts, look_at=(5, 30.5, 60), look=lambda one: round(one.cluster.hosts["node-1"].clock.skew, 6)
    )
    assert skews == [0.0, -10.0, 0.0]


def test_the_clocks_of_the_controllers_are_not_those_of_the_cluster():
    steps = ScenarioEvent(at=10, verb=Verb.CLOCK_FAILOVER, amount=3600.0, lasts=20)
    rehearsal, skews = rehearse(
        steps,
        LOST,
        look_at=(20, 40),
        look=lambda one: [one.clock.skew for one in one.cluster.failing_over.replicas.all],
    )
    assert skews == [[3600.0], [0.0]]
    assert len(orders(rehearsal)) == 1


def test_what_a_slow_disk_has_not_synced_is_lost_with_the_power():
    async def main():
        clock = virtual.VirtualClock()
        disk = SimulatedDisk(random_of("1", "disk"), clock)
        disk.delay = 5.0
        file = disk.create("a")
        file.append(b"one")
        writer = virtual.VirtualProcess("writer")
        writer.start(file.sync(), "sync")
        await clock.sleep(4.0)
        before = file.synced
        await clock.sleep(2.0)
        return before, file.synced

    assert virtual.run(main()) == (0, 4)


def test_machines_with_watchdogs_hear_datagrams_twice_and_out_of_order():
    twice = ScenarioEvent(at=5, verb=Verb.DATAGRAMS_DOUBLE, amount=1.0, lasts=60.0)
    down = ScenarioEvent(at=10, verb=Verb.API_DOWN, lasts=80.0)
    watchdog = WatchdogSettings(lease_seconds=60, pet_seconds=5, timeout_seconds=15, peers=PeerSettings())
    scenario = Scenario(
        "datagrams",
        nodes=(NodeGroup(count=3),),
        agent=AgentConfig(kind=AGENT_CONFIGURATION, watchdog=watchdog),
        timeline=(twice, down),
        lasts=300.0,
    )
    found = run_rehearsal(scenario, 1)
    assert [one.count > 10 for one in found.faults if one.kind == "doubled datagram"] == [True]
    assert not [line for line in found.lines if "watchdog" in line.text], "no machine is reset: its peers answer"
    assert found.violations == ()


async def _arrived(copies):
    network = FakeNetwork()
    network.copies = lambda: copies
    one, other = network.open("a", 1), network.open("b", 1)
    one.send(b"x", other.bound_address)
    await virtual.VirtualClock().sleep(1.0)
    return [await other.receive() for _ in range(copies)]


@pytest.mark.parametrize("copies", [1, 2])
def test_a_network_may_deliver_a_datagram_twice(copies):
    assert virtual.run(_arrived(copies)) == [(b"x", ("a", 1))] * copies
