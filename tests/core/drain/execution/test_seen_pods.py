"""What a drain sees of pods in its watch, on its own clock."""

from support.drain.objects import bare

from lastcall.drain.execution.seen_pods import PodSight


class Clock:
    """Both clocks, 100 seconds apart on the way to 1970."""

    def __init__(self):
        self.now = 1000.0

    def boottime(self):
        return self.now

    def wall(self):
        return self.now + 1_767_268_000  # 2026-01-01T12:03:20Z at 1,000


def look(sight, **pod):
    [seen] = sight.look([bare(**pod)]).values()
    return seen


def test_a_pod_terminates_since_it_was_first_seen_so():
    clock = Clock()
    sight = PodSight(clock)
    assert look(sight).terminating_since is None
    clock.now = 1007.0
    found = look(sight, deletion="2026-01-01T12:03:37Z", deletionGracePeriodSeconds=30)
    assert (found.terminating_since, found.grace) == (1007.0, 30)
    clock.now = 1009.0
    found = look(sight, deletion="2026-01-01T12:03:14Z", deletionGracePeriodSeconds=7)
    assert (found.terminating_since, found.grace) == (1007.0, 7), "somebody has shortened it"


def test_the_end_of_its_time_is_on_the_own_clock():
    clock = Clock()
    assert look(PodSight(clock), deletion="2026-01-01T12:02:20Z").overdue_since == 940.0
    assert look(PodSight(clock), deletion="2026-01-01T14:02:20+02:00").overdue_since == 940.0
    assert look(PodSight(clock), deletion="some day").overdue_since is None
