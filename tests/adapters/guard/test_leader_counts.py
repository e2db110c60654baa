"""How the number of leaders falls."""

from lastcall.adapters.guard.leader_counts import STALL_SECONDS, LeaderCounts, LeaderMove


def test_percent_and_time_follow_from_what_has_moved_so_far():
    counts = LeaderCounts()
    assert counts.observe("a", 40, 100.0).percent == 0
    assert counts.observe("a", 40, 101.0).eta_seconds is None
    assert counts.observe("a", 30, 110.0) == LeaderMove(25, 30, is_stalled=False)
    assert counts.observe("a", 0, 140.0) == LeaderMove(100, 0, is_stalled=False)
    assert counts.observe("b", 7, 140.0).percent == 0


def test_leaders_that_do_not_become_fewer_are_told_after_two_minutes():
    counts = LeaderCounts()
    counts.observe("a", 40, 100.0)
    counts.observe("a", 30, 110.0)
    assert not counts.observe("a", 31, 110.0 + STALL_SECONDS - 1).is_stalled
    assert counts.observe("a", 30, 112.0 + STALL_SECONDS).is_stalled is False, "one less than before"
    assert counts.observe("a", 30, 112.0 + 2 * STALL_SECONDS).is_stalled


def test_more_than_at_the_beginning_is_another_beginning():
    counts = LeaderCounts()
    counts.observe("a", 10, 100.0)
    counts.observe("a", 5, 101.0)
    assert counts.observe("a", 20, 102.0).percent == 0
    assert counts.observe("a", 10, 112.0) == LeaderMove(50, 10, is_stalled=False)


def test_without_any_leader_there_is_no_percentage():
    assert LeaderCounts().observe("a", 0, 100.0) == LeaderMove(None, None, is_stalled=False)


def test_what_is_forgotten_begins_anew():
    counts = LeaderCounts()
    counts.observe("a", 10, 100.0)
    counts.forget("a")
    counts.forget("a")
    assert counts.observe("a", 5, 300.0) == LeaderMove(0, None, is_stalled=False)


def test_members_that_are_never_asked_about_again_are_not_kept_for_ever():
    counts = LeaderCounts()
    for number in range(2000):
        counts.observe(str(number), 10, float(number))
    assert counts.observe("0", 5, 2000.0).percent == 0
    assert counts.observe("1999", 5, 2000.0).percent == 50
