"""Machines without BMCs in a rehearsal, whose agents keep a watchdog: who is reset, and what the controller makes of it."""

import asyncio

import pytest
from msgspec.structs import replace
from support.simulation.user_clusters import HEAD, KUBEADM

from lastcall.aio import cancel_and_wait
from lastcall.failover.evidence.assessment import BootState
from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab import virtual
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.recorded_cluster.state_file import read_state
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario import (
    FailoverSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import scenario_text

pytestmark = pytest.mark.timeout(240)

WATCHDOG = WatchdogSettings(lease_seconds=45, pet_seconds=5, timeout_seconds=15, peers=PeerSettings())
BOUND = WATCHDOG.timing_with().reset_bound
MOST = WATCHDOG.lease_seconds + WATCHDOG.timeout_seconds + WATCHDOG.pet_seconds
"""Seconds after a cut within which who is to be reset has been."""
CUT = 10.0


class Rehearsed:
    """What came out. Times are the scenario's."""

    def __init__(self, rehearsal):
        self.rehearsal = rehearsal
        self.outcome = build_outcome(rehearsal)
        self.start, truth = rehearsal.start, rehearsal.cluster.truth
        notices = [(one.at - self.start, one.node, one.what) for one in truth.notices]
        self.resets = [(node, at) for at, node, what in notices if what == "reset by its watchdog"]
        self.proved = [(node, at) for at, node, what in notices if what == "out of service, as lastcall has proved"]
        self.off = [one.node for one in truth.powers if one.what == "off" and one.at >= self.start]

    @property
    def reset(self):
        return sorted(node for node, _ in self.resets)


def play(scenario):
    async def run():
        rehearsal = Rehearsal(scenario, 1)
        await rehearsal.run()
        return Rehearsed(rehearsal)

    found = virtual.run(run())
    assert found.outcome.violations == ()
    return found


def played(*timeline, watchdog=WATCHDOG, ends=1.0, lasts=240.0, **more):
    """``ends`` is how long each pod takes to end, for which there is always time."""
    groups = (PhasePlan(priority=0, seconds=120), PhasePlan(priority=2_000_000_000, seconds=10))
    db = ScenarioWorkload(
        kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=3, volume=True, writes=1.0, grace=120, ends=ends
    )
    found = play(
        Scenario(
            name="watchdogs",
            nodes=(NodeGroup(count=3),),
            workloads=(db,),
            agent=AgentConfig(kind=AGENT_CONFIGURATION, groups=groups, watchdog=watchdog),
            failover=FailoverSettings(suspect_after=20.0, bmc=False, min_healthy="0", per_domain=3),
            timeline=timeline,
            lasts=lasts,
            **more,
        )
    )
    assert found.outcome.workloads[0].writes_lost == 0
    return found


def cut_off(*nodes, lasts=None):
    return ScenarioEvent(at=CUT, verb=Verb.PARTITION, nodes=nodes, lasts=lasts)


# -- the scenario that comes with lastcall -----------------------------------------------------------------------------


def shipped():
    return read_scenario(scenario_text("watchdog-peers"), "watchdog-peers")


def test_nobody_is_reset_in_an_outage_and_who_is_cut_off_alone_is():
    """The API server is away from 60 s on, node-3 is cut off at 600 s; the lease is one of 60 s."""
    scenario = shipped()
    bound = scenario.agent.watchdog.timing_with().reset_bound
    found = play(scenario)
    assert found.outcome.is_good
    [(node, at)] = found.resets
    assert node == "node-3"
    assert 600 + 60 - 5 <= at <= 600 + 60 + 15 + 5
    [(proved, when)] = found.proved
    assert proved == "node-3"
    assert when >= 600 - 5 + bound, "its machine was reset long before, which nobody can know who does not hear of it"
    assert found.off == ["node-3"]


def test_the_others_hear_it_until_its_reset_and_to_the_controller_it_is_alive_until_that_is_proved():
    scenario = replace(shipped(), timeline=shipped().timeline[1:], lasts=600 + 150.0)
    found = []

    async def run():
        rehearsal = Rehearsal(scenario, 1)

        async def look():
            while True:
                await asyncio.sleep(1)
                verdict = judged(rehearsal, "node-3")
                if verdict and (verdict.state, verdict.reasons[0]) not in found[-1:]:
                    found.append((verdict.state, verdict.reasons[0]))

        looking = asyncio.create_task(look())
        await rehearsal.run()
        await cancel_and_wait(looking)
        return Rehearsed(rehearsal)

    [(_, reset)], proved = (outcome := virtual.run(run())).resets, outcome.proved[0][1]
    heard = [state for state, why in found if why.startswith(("node node-1 heard it", "node node-2 heard it"))]
    assert heard[0] is BootState.ALIVE
    assert BootState.DEAD not in heard
    assert found[-1][0] is BootState.DEAD
    assert found[-1][1].startswith("its watchdog has reset it")
    assert proved > reset


def judged(rehearsal, name):
    """The verdict on a node that the leading controller has decided by last; None if the node is in no trouble."""
    replicas = rehearsal.cluster.failing_over.replicas
    controller = replicas.leader.controller if replicas else None
    found = [one for one in controller.reconcilers if one.name == name] if controller else []
    return found[0].gathered.case.verdict if found and found[0].gathered else None


def test_without_peers_the_same_outage_resets_every_machine():
    scenario = shipped()
    alone = replace(scenario.agent, watchdog=replace(scenario.agent.watchdog, peers=None))
    found = play(replace(scenario, agent=alone, timeline=scenario.timeline[:1], lasts=600.0))
    assert found.reset == ["node-1", "node-2", "node-3"]
    assert max(at for _, at in found.resets) <= 60 + 60 + 15 + 5
    assert found.proved == []
    assert not found.outcome.is_good


# -- who is reset, and what is proved ----------------------------------------------------------------------------------


def test_one_that_is_cut_off_is_reset_and_stays_cut_off():
    found = played(cut_off("node-2"))
    [(node, at)] = found.resets
    assert node == "node-2"
    assert CUT < at <= CUT + MOST
    assert [node for node, _ in found.proved] == ["node-2"]
    assert found.proved[0][1] >= CUT - WATCHDOG.pet_seconds + BOUND
    assert found.rehearsal.cluster.machines["node-2"].cable.cut
    assert found.outcome.workloads[0].serving == 3


def test_a_majority_that_is_cut_off_lives_on_and_nothing_is_proved():
    found = played(cut_off("node-1", "node-2"), lasts=400.0)
    assert found.resets == found.proved == []
    assert found.outcome.workloads[0].serving == 3, "they run on where they were"


def test_without_bmc_and_watchdog_nothing_is_proved():
    found = played(cut_off("node-2"), watchdog=None)
    assert found.resets == found.proved == found.off == []


def test_a_hang_is_ended_by_a_reset():
    found = played(ScenarioEvent(at=CUT, verb=Verb.HANG, nodes=("node-2",)))
    [(node, at)] = found.resets
    assert node == "node-2"
    assert CUT < at <= CUT + WATCHDOG.timeout_seconds
    assert found.rehearsal.cluster.hosts["node-2"].kubelet is not None
    assert found.outcome.workloads[0].serving == 3


@pytest.mark.parametrize(("lasts", "reset"), [(2.0, []), (60.0, ["node-2"])])
def test_an_agent_that_is_killed_has_its_timeout_to_come_back(lasts, reset):
    found = played(ScenarioEvent(at=CUT, verb=Verb.KILL_AGENT, nodes=("node-2",), lasts=lasts))
    assert found.reset == reset


def test_a_machine_that_goes_down_is_not_disturbed_nor_is_its_next_boot():
    found = played(ScenarioEvent(at=CUT, verb=Verb.REBOOT, nodes=("node-2",)))
    assert (found.resets, found.off) == ([], ["node-2"])
    assert found.rehearsal.cluster.hosts["node-2"].watchdog.is_armed


def test_nor_is_one_that_takes_long_and_is_cut_off_meanwhile():
    """What it had promised it has taken back before."""
    found = played(ScenarioEvent(at=5.0, verb=Verb.REBOOT, nodes=("node-2",)), cut_off("node-2"), ends=100.0)
    assert found.resets == []
    assert found.rehearsal.start + 5 + 100 <= off_at(found, "node-2")


def off_at(found, node):
    return next(one.at for one in found.rehearsal.cluster.truth.powers if (one.node, one.what) == (node, "off"))


def test_only_lastcalls_agent_keeps_a_watchdog():
    found = played(cut_off("node-2"), manager=ScenarioShutdownManager.KUBELET, lasts=120.0)
    assert found.resets == []
    assert found.rehearsal.cluster.hosts["node-2"].watchdog is None


def test_nodes_of_a_recorded_cluster_may_have_them():
    """Also one of whose machines one is off."""
    text = """
agent: {shutdownGracePeriod: 30s, watchdog: {leaseSeconds: 45, peers: {}}}
controller: {bmc: false, suspectAfter: 20s}
timeline: {10s: cut worker-1 off from the control plane}
lasts: 4m
"""
    found = play(read_scenario((HEAD + text).encode(), "mine.yaml", read_state(KUBEADM, "state")))
    assert found.reset == ["worker-1"]
    assert "worker-1" in [node for node, _ in found.proved]
    assert found.rehearsal.cluster.machines["worker-3"].is_powered is False
