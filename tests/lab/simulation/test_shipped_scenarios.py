"""Every scenario that comes with lastcall holds what it expects, whatever the seed."""

import pytest

from lastcall_lab.simulation.report.text import failure_line
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import scenario_text, shipped_scenarios

SEEDS = (1, 2, 3)


def scenario(name):
    return read_scenario(scenario_text(name), name)


@pytest.mark.timeout(360)
@pytest.mark.parametrize("name", shipped_scenarios())
def test_all_that_is_expected_holds(name):
    outcomes = [run_rehearsal(scenario(name), seed) for seed in SEEDS]
    assert [failure_line(outcome) for outcome in outcomes if not outcome.is_good] == []


@pytest.mark.parametrize("name", shipped_scenarios())
def test_it_says_what_it_is_about(name):
    found = scenario(name)
    assert found.name == name
    assert found.description
    assert found.timeline
    assert found.expect


def test_there_are_ten():
    assert len(shipped_scenarios()) >= 10


def test_the_storage_pods_of_k3s_end_last():
    """Of what has no system priority: when the first of them ends, nothing that writes runs any more."""
    [found] = [run_rehearsal(scenario("k3s-storage-last"), seed) for seed in (1,)]
    ends = [line for line in found.lines if " end" in line.text]
    assert [line.text.split(" of ")[1].split()[0] for line in ends] == ["web", "db", "longhorn", "coredns"]
