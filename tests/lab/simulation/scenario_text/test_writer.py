"""A scenario that is written is read as the same one."""

import pytest
from msgspec.structs import replace

from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan, ShutdownMode
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab.simulation import chaos
from lastcall_lab.simulation.scenario import (
    Expectation,
    Goal,
    LeaderSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario
from lastcall_lab.simulation.shipped_scenarios import shipped_scenarios


def again(scenario):
    return read_scenario(write_scenario(scenario).encode(), "written")


def test_what_chance_gives():
    for seed in range(300):
        assert again(chaos.generate_scenario(seed)) == chaos.generate_scenario(seed)


@pytest.mark.parametrize("name", shipped_scenarios())
def test_what_comes_with_lastcall(name):
    scenario = read_scenario(shipped_scenarios()[name].read_bytes(), name)
    assert again(scenario) == scenario


def test_a_watchdog_without_settings_is_one():
    config = AgentConfig(kind=AGENT_CONFIGURATION, watchdog=WatchdogSettings())
    assert again(Scenario(name="usual", agent=config)).agent.watchdog == WatchdogSettings()


def test_everything_that_can_be_said():
    groups = (PhasePlan(priority=-5, seconds=7), PhasePlan(priority=1000, seconds=3))
    workload = ScenarioWorkload(
        kind=ScenarioWorkloadKind.STATEFUL_SET,
        name="db",
        namespace="shop",
        replicas=2,
        priority_class="high",
        grace=5,
        starts=0.25,
        ready=0.0,
        pre_stop=1.5,
        ends=float("inf"),
        drains=False,
        requests=0.5,
        volume=True,
        writes=2.0,
        min_available="50%",
        leader=LeaderSettings(handover=3.0),
        cpu="1",
        memory="1Gi",
    )
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    watchdog = WatchdogSettings(lease_seconds=90.5, timeout_seconds=20, peers=PeerSettings(port=7000))
    node = NodeGroup(name="n", count=2, domains={"rack": ("a", "b")}, labels={"disk": "fast"})
    scenario = Scenario(
        name="all",
        description="Everything: at once.",
        nodes=(node, NodeGroup(name="m", count=1, capacity={**node.capacity, "cpu": "2"})),
        workloads=(
            workload,
            ScenarioWorkload(kind=ScenarioWorkloadKind.JOB, name="job", lives=12.5, max_unavailable="1"),
        ),
        objects=(high,),
        agent=AgentConfig(kind=AGENT_CONFIGURATION, groups=groups, mode=ShutdownMode.OBSERVE, watchdog=watchdog),
        manager=ScenarioShutdownManager.KUBELET,
        propagation=2.0,
        boot=0.5,
        timeline=(
            ScenarioEvent(at=0.001, verb=Verb.POWER_CUT, nodes=("rack b", "m-1")),
            ScenarioEvent(at=0.001, verb=Verb.CLOCK_STEP, nodes=("all nodes",), lasts=2.0, amount=-1.5),
            ScenarioEvent(at=70.0, verb=Verb.API_ERRORS, amount=0.05),
        ),
        lasts=100.0,
        expect=(Expectation(goal=Goal.DOWN_FOR, subject="db", limit=30.0), Expectation(goal=Goal.RUNS)),
    )
    assert again(scenario) == scenario


def test_an_agent_that_does_nothing():
    quiet = Scenario(name="quiet", agent=AgentConfig(kind=AGENT_CONFIGURATION))
    assert again(quiet) == again(replace(quiet, agent=None)) == quiet
