"""The shortest scenario that still shows a violation."""

import itertools

import pytest
from msgspec.structs import replace

from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import LastcallError
from lastcall_lab.simulation import chaos
from lastcall_lab.simulation.invariants import Invariant
from lastcall_lab.simulation.scenario import (
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
from lastcall_lab.simulation.shrink import minimal_subset, shrink_scenario, violation_finder


class Tick:
    """A clock on which each look takes a second."""

    def __init__(self):
        self.ticks = itertools.count()

    def boottime(self):
        return float(next(self.ticks))


def verbs(scenario):
    return [event.verb for event in scenario.timeline]


def after(*wanted):
    """Shows it with the last of these verbs, if all of them are there."""

    def when(scenario):
        found = [event.at for event in scenario.timeline if event.verb in wanted]
        return max(found) if {*wanted} <= {*verbs(scenario)} else None

    return when


@pytest.mark.parametrize("needed", [set(), {0}, {9}, {4, 5}, {0, 3, 9}, set(range(10))])
def test_what_is_not_needed_goes(needed):
    asked = []

    def enough(some):
        asked.append(some)
        return needed <= {*some}

    assert list(minimal_subset(range(10), enough)) == sorted(needed)
    assert len(asked) < 40


def noisy():
    """A story with many events, two of which are looked for."""
    base = chaos.generate_scenario(1)
    wanted = (
        ScenarioEvent(at=71.123, verb=Verb.LOSE_BUS, nodes=("node-3",), lasts=5.0),
        ScenarioEvent(at=83.456, verb=Verb.KILL_AGENT, nodes=("node-2",), lasts=3.0, amount=12.0),
    )
    noise = [chaos.generate_scenario(seed).timeline for seed in range(2, 8)]
    kept = [event for some in noise for event in some if event.verb not in (Verb.LOSE_BUS, Verb.KILL_AGENT)]
    return replace(base, timeline=tuple(sorted([*wanted, *kept], key=lambda event: event.at)))


def test_events_workloads_and_machines_that_are_not_needed_go():
    scenario = noisy()
    assert len(scenario.timeline) > 10
    best = shrink_scenario(scenario, after(Verb.LOSE_BUS, Verb.KILL_AGENT), clock=Tick(), seconds=10_000)
    assert verbs(best) == [Verb.LOSE_BUS, Verb.KILL_AGENT]
    assert [(event.at, event.amount) for event in best.timeline] == [(10.0, 0.0), (20.0, 0.0)]
    assert best.workloads == ()
    assert best.nodes[0].count <= 2
    assert best.lasts == scenario.lasts
    assert read_scenario(write_scenario(best).encode(), "") == best


@pytest.mark.parametrize(("clear_from", "lasts"), [(0.0, 120.0), (200.0, 300.0), (5000.0, None)])
def test_it_lasts_until_nothing_else_is_broken(clear_from, lasts):
    """The last event is at 20 s then."""
    when = after(Verb.LOSE_BUS, Verb.KILL_AGENT)
    best = shrink_scenario(noisy(), when, clock=Tick(), seconds=10_000, clear=lambda one: one.lasts >= clear_from)
    assert best.lasts == (lasts or noisy().lasts)
    assert read_scenario(write_scenario(best).encode(), "") == best


def test_what_is_needed_stays():
    web = ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=3, pre_stop=4.0, grace=7)
    db = ScenarioWorkload(kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=2)
    scenario = Scenario(
        name="one", workloads=(web, db), timeline=(ScenarioEvent(at=5.0, verb=Verb.HANG, nodes=("node-2",)),)
    )

    def when(candidate):
        found = [one for one in candidate.workloads if one.name == "web" and one.pre_stop and one.replicas > 1]
        return 6.0 if found and candidate.timeline else None

    best = shrink_scenario(scenario, when, clock=Tick(), seconds=10_000)
    assert best.workloads == (replace(web, replicas=2, grace=30),)
    assert best.nodes == (NodeGroup(count=1),)
    assert [event.nodes for event in best.timeline] == [("node-1",)]


def test_the_search_is_bounded_by_runs_and_by_time():
    runs = []

    def when(candidate):
        runs.append(candidate)
        return 100.0

    shrink_scenario(noisy(), when, clock=Tick(), most=5, seconds=10_000)
    assert len(runs) == 5
    runs.clear()
    shrink_scenario(noisy(), when, clock=Tick(), seconds=3)
    assert len(runs) <= 4


def test_what_shows_nothing_cannot_be_shortened():
    with pytest.raises(LastcallError, match="nothing is broken by it"):
        shrink_scenario(noisy(), lambda _: None, clock=Tick())


@pytest.mark.timeout(600)
def test_a_rehearsal_is_shortened():
    """A kubelet that dies lets the lock go, so that the machine goes down with its pods."""
    fatal = (
        ScenarioEvent(at=40.123, verb=Verb.REBOOT, nodes=("node-2",), lasts=5.0),
        ScenarioEvent(at=43.456, verb=Verb.KILL_AGENT, nodes=("node-2",), lasts=1.0),
    )
    noise = (
        ScenarioEvent(at=20.0, verb=Verb.API_COMPACT),
        ScenarioEvent(at=60.0, verb=Verb.CLOCK_STEP, nodes=("node-1",), amount=5.0),
    )
    workloads = (
        ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs", ends=10.0),
        ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=3, requests=5.0),
    )
    story = Scenario(
        name="story",
        nodes=(NodeGroup(count=2),),
        workloads=workloads,
        agent=chaos.generate_scenario(1).agent,
        manager=ScenarioShutdownManager.KUBELET,
        boot=5.0,
        timeline=tuple(sorted([*fatal, *noise], key=lambda event: event.at)),
        lasts=120.0,
    )
    best = shrink_scenario(story, violation_finder(Invariant.LOCK_LOST.value, 8), clock=SystemClock(), most=80)
    assert verbs(best) == [Verb.REBOOT, Verb.KILL_AGENT]
    assert [one.name for one in best.workloads] == ["logs"]
    assert best.nodes == (NodeGroup(count=1),)
    assert best == shrink_scenario(story, violation_finder(Invariant.LOCK_LOST.value, 8), clock=SystemClock(), most=80)
