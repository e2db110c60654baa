"""300 seeds of machines that are lost, of controllers that die, and of BMCs that lie: no promise is broken.

``LASTCALL_FAILOVER_SEEDS`` names others: how many from 1 on, or ``FIRST:LAST``.
"""

import pytest
from support.simulation.chaos_batches import ChaosBatches

from lastcall_lab.simulation import failover_chaos
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario import Verb

STORIES = ChaosBatches("failover-chaos", failover_chaos, "LASTCALL_FAILOVER_SEEDS")


@pytest.mark.timeout(600)
@STORIES.each
def test_no_promise_is_broken_and_every_fault_strikes(batch, tmp_path_factory):
    outcomes = STORIES.play(batch, tmp_path_factory)
    fenced = any("switched off by its BMC" in line.text for outcome in outcomes for line in outcome.lines)
    assert fenced or len(batch) < 10, "machines are fenced in many of them"


def test_everything_happens_to_somebody():
    STORIES.check_verbs()


def test_no_bmc_that_switches_nothing_says_that_it_is_off():
    for seed in range(1, 5001):
        told = failover_chaos.generate_scenario(seed).timeline
        stuck, says_off = (
            {event.nodes for event in told if event.verb is verb} for verb in (Verb.BMC_STUCK, Verb.BMC_SAYS_OFF)
        )
        assert not stuck & says_off, f"seed {seed}: nobody could find that out"


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_story_can_be_written_down(seed):
    STORIES.check_text(seed)


def test_the_same_seed_is_the_same_run():
    told = failover_chaos.generate_scenario(2)
    assert run_rehearsal(told, 2) == run_rehearsal(told, 2)
