"""300 seeds of three to seven machines to which everything happens: no promise is broken, and every fault strikes.

``LASTCALL_SIMULATION_SEEDS`` names others: how many from 1 on, or ``FIRST:LAST``.
"""

import sys
from collections import Counter

import pytest
from support.simulation.chaos_batches import ChaosBatches
from support.virtual_time.other_python import check_same, other_python, told_by

from lastcall_lab.simulation import chaos
from lastcall_lab.simulation.coverage import FaultCoverage
from lastcall_lab.simulation.outcome import FaultCount, MachineOutcome, RehearsalOutcome
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import Verb

STORIES = ChaosBatches("chaos", chaos, "LASTCALL_SIMULATION_SEEDS")


@pytest.mark.timeout(600)
@STORIES.each
def test_no_promise_is_broken_and_every_fault_strikes(batch, tmp_path_factory):
    STORIES.play(batch, tmp_path_factory)


def test_most_stories_have_three_machines_and_others_up_to_seven():
    counts = Counter(chaos.generate_scenario(seed).nodes[0].count for seed in range(1, 1001))
    assert set(counts) == {3, 4, 5, 6, 7}
    assert counts[3] > 600
    many = [one for seed in range(1, 301) for one in shutdowns(chaos.generate_scenario(seed)) if len(one.nodes) > 1]
    assert {len(one.nodes) for one in many} >= {2, 3, 4}


def test_every_machine_of_a_larger_cluster_may_be_hit_and_no_other():
    hit = set()
    for seed in range(1, 301):
        story = chaos.generate_scenario(seed)
        named = {node for event in story.timeline for node in event.nodes}
        assert named <= {*story.nodes[0].node_names}
        assert all(event.nodes for event in shutdowns(story))
        hit |= {event.nodes for event in story.timeline if event.verb is Verb.KILL_AGENT and len(event.nodes) == 1}
    assert hit == {(f"node-{number}",) for number in range(1, 8)}


def test_where_programs_begin_with_old_lists_some_begin():
    for seed in range(1, 301):
        timeline = chaos.generate_scenario(seed).timeline
        starts = [one for one in timeline if one.verb in (Verb.KILL_AGENT, Verb.KILL_CONTROLLERS)]
        for old in (one for one in timeline if one.verb is Verb.STALE_STARTS):
            assert any(old.at <= one.at <= old.at + min(old.lasts, 5.0) for one in starts)


def shutdowns(story):
    return [event for event in story.timeline if event.verb in (Verb.REBOOT, Verb.CANCEL)]


# -- the same seed, the same run ---------------------------------------------------------------------------------------


def play_in(python, seed, hashes):
    """Every step, every request, every piece of a watch, and the truth."""
    return told_by(python, "support.simulation.repeatable_chaos", seed, hashes=hashes)


def eventful(least):
    """A seed to which much happens."""
    return next(seed for seed in range(1000) if len(chaos.generate_scenario(seed).timeline) >= least)


@pytest.mark.timeout(600)
def test_neither_the_process_nor_its_hashes_matter():
    one = play_in(sys.executable, eventful(6), hashes=1)
    check_same(one, play_in(sys.executable, eventful(6), hashes=2))
    assert len([line for line in one if " is answered " in line]) > 300
    assert len([line for line in one if line.startswith("ContainerEvent(")]) > 20
    assert len(one) > 5000


@pytest.mark.timeout(600)
def test_another_python_does_the_same():
    python, why = other_python()
    if not python:
        pytest.skip(why)
    seed = eventful(7)
    check_same(play_in(sys.executable, seed, hashes=1), play_in(python, seed, hashes=2))


@pytest.mark.timeout(360)
def test_neither_do_earlier_runs_in_the_same_process():
    first, other, again = (run_rehearsal(chaos.generate_scenario(seed), seed) for seed in (7, 8, 7))
    assert first == again
    assert first != other


# -- what has struck ---------------------------------------------------------------------------------------------------


def outcome_with(*faults):
    nodes = tuple(MachineOutcome(name=f"node-{number}", spans=()) for number in (1, 10))
    return RehearsalOutcome(
        scenario="chaos-1",
        description="",
        seed="1",
        lasts=1.0,
        lines=(),
        workloads=(),
        nodes=nodes,
        verdicts=(),
        violations=(),
        faults=tuple(FaultCount(kind=kind, step=step, count=count) for kind, step, count in faults),
    )


def test_coverage_counts_steps_whoever_took_them_and_names_what_never_struck():
    coverage = FaultCoverage([Verb.API_SLOW, Verb.HANG, Verb.WATCH_SILENT])
    coverage.add(outcome_with(("hang", "node-10, at rest", 1), ("slow answer", "node-1: GET pods", 3)))
    coverage.add(
        outcome_with(
            ("slow answer", "node-10: GET pods", 2), ("slow answer", "controllers: GET pods", 9), ("else", "node-1", 1)
        )
    )
    assert coverage.hits() == [
        ("slow answer", 14, 2, {"controllers: GET pods": 9, "GET pods": 5}),
        ("hang", 1, 1, {"at rest": 1}),
        ("else", 1, 1, {"a machine": 1}),
    ]
    assert coverage.missing_kinds() == ["silent watch"]
