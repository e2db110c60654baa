"""300 seeds of machines that are drained, and faults of the drains and of everything beside them: no promise is broken.

``LASTCALL_DRAIN_SEEDS`` names others: how many from 1 on, or ``FIRST:LAST``.
"""

import sys

import pytest
from support.simulation.chaos_batches import ChaosBatches
from support.virtual_time.other_python import check_same, told_by

from lastcall_lab.simulation import drain_chaos

STORIES = ChaosBatches("drain-chaos", drain_chaos, "LASTCALL_DRAIN_SEEDS")


@pytest.mark.timeout(600)
@STORIES.each
def test_no_promise_is_broken_and_every_fault_strikes(batch, tmp_path_factory):
    STORIES.play(batch, tmp_path_factory)


def test_everything_happens_to_somebody():
    STORIES.check_verbs()


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_story_can_be_written_down(seed):
    STORIES.check_text(seed)


@pytest.mark.timeout(600)
def test_neither_the_process_nor_its_hashes_matter():
    one, two = (told_by(sys.executable, "support.simulation.repeatable_chaos", 3, "drain", hashes=n) for n in (1, 2))
    check_same(one, two)
    assert len(one) > 3000
