"""The turns in which a runtime gets its requests to stop containers."""

import pytest

from lastcall.adapters.cri.stop_turns import LONGEST_SECONDS, STOP_CPU_SECONDS, StopTurns


class Clock:
    def __init__(self):
        self.now = 1000.0

    def boottime(self):
        return self.now


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_requests_at_once_follow_each_other_the_sooner_the_more_cores_there_are(cores):
    turns = StopTurns(Clock(), cores)
    gap = STOP_CPU_SECONDS / cores
    assert [turns.reserve_turn() for _ in range(4)] == pytest.approx([0, gap, 2 * gap, 3 * gap])


def test_time_that_has_passed_meanwhile_counts():
    clock = Clock()
    turns = StopTurns(clock, 1)
    turns.reserve_turn()
    clock.now += STOP_CPU_SECONDS / 4
    assert turns.reserve_turn() == pytest.approx(STOP_CPU_SECONDS * 3 / 4)
    clock.now += 1
    assert turns.reserve_turn() == 0


def test_no_turn_is_far_away_however_many_there_are():
    turns = StopTurns(Clock(), 1)
    waits = [turns.reserve_turn() for _ in range(1000)]
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(LONGEST_SECONDS)
