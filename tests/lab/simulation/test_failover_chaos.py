"""300 seeds of machines that are lost, of controllers that die, and of BMCs that lie: no promise is broken.

``LASTCALL_FAILOVER_SEEDS`` names others: how many from 1 on, or ``FIRST:LAST``.
"""

import json
import os

import pytest

from lastcall_lab.simulation import failover_chaos
from lastcall_lab.simulation.coverage import fault_kinds
from lastcall_lab.simulation.report import text
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import Verb
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario

BATCHES = 12


def seeds():
    first, _, last = os.environ.get("LASTCALL_FAILOVER_SEEDS", "300").rpartition(":")
    return range(int(first or 1), int(last) + 1)


def batches():
    """So many that all processors have enough to do."""
    wanted = seeds()
    size = -(-len(wanted) // BATCHES)
    return [wanted[at : at + size] for at in range(0, len(wanted), size)]


@pytest.fixture
def noted(tmp_path_factory):
    """A directory of all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "failover-chaos"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", batches(), ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_no_promise_is_broken_and_every_fault_strikes(batch, noted):
    """The batch that ends last sees to it that over all of them everything that can happen has happened."""
    fenced, struck = 0, set()
    for seed in batch:
        outcome = run_rehearsal(failover_chaos.generate_scenario(seed), seed)
        if outcome.violations:
            again = f"lastcall simulate failover-chaos --seed {seed}"
            pytest.fail(f"{text.render_text(outcome)}\n{again}\n{again} --shrink", pytrace=False)
        struck |= {one.kind for one in outcome.faults}
        fenced += any("switched off by its BMC" in line.text for line in outcome.lines)
    assert fenced or len(batch) < 10, "machines are fenced in many of them"
    unfinished = noted / f"{batch[0]}.part"
    unfinished.write_text(json.dumps(sorted(struck)))
    unfinished.rename(unfinished.with_suffix(".json"))
    parts = [json.loads(path.read_text()) for path in noted.glob("*.json")]
    if len(parts) == len(batches()) and sum(map(len, batches())) >= 300:
        everywhere = {kind for part in parts for kind in part}
        assert {kind for verb in failover_chaos.VERBS for kind in fault_kinds(verb)} - everywhere == set()


def test_everything_happens_to_somebody():
    happens = {event.verb for seed in range(1, 301) for event in failover_chaos.generate_scenario(seed).timeline}
    assert happens == set(failover_chaos.VERBS)
    assert all(fault_kinds(verb) for verb in happens)


def test_no_bmc_that_switches_nothing_says_that_it_is_off():
    for seed in range(1, 5001):
        told = failover_chaos.generate_scenario(seed).timeline
        stuck, says_off = (
            {event.nodes for event in told if event.verb is verb} for verb in (Verb.BMC_STUCK, Verb.BMC_SAYS_OFF)
        )
        assert not stuck & says_off, f"seed {seed}: nobody could find that out"


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_story_can_be_written_down(seed):
    told = failover_chaos.generate_scenario(seed)
    assert read_scenario(write_scenario(told).encode(), "x") == told


def test_the_same_seed_is_the_same_run():
    told = failover_chaos.generate_scenario(2)
    assert run_rehearsal(told, 2) == run_rehearsal(told, 2)
