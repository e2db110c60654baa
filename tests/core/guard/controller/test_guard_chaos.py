"""Stories of chance: clients, faults and guards that die at each await; judged from what the application lost."""

import pytest
from support.guard.stories import check_promises, play

from lastcall_lab import virtual

SEEDS = range(300)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 25))
def test_no_work_is_lost_and_nothing_is_held_for_ever(first):
    for seed in SEEDS[first : first + 25]:
        check_promises(virtual.run(play(seed)), seed)
