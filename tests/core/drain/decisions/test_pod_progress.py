"""The pods of a drain: in which order they are asked for, and how long each has to end."""

import pytest
from support.drain.objects import bare

from lastcall.drain.decisions.pod_progress import choose_targets


def targets(*tiers, grace=None):
    return choose_targets([[bare(**one) for one in tier] for tier in tiers], grace=grace, depended=frozenset())


def test_pods_that_use_up_no_budget_go_first_in_their_tier():
    found = targets([{"name": "a"}, {"name": "b", "ready": False}, {"name": "c"}], [{"name": "d", "ready": False}])
    assert [one.name for one in found] == ["b", "a", "c", "d"]
    assert [one.tier for one in found] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("own", "asked", "seconds"), [(90, None, 90), (None, None, 30), (0, None, 0), (90, 7, 7), (90, 0, 0)]
)
def test_how_long_a_pod_has(own, asked, seconds):
    [found] = targets([{"grace": own}], grace=asked)
    assert found.grace == seconds
