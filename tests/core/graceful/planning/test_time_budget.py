"""Granted less than asked."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lastcall.graceful.planning import time_budget
from lastcall.model.shutdown import PhasePlan

CRITICAL = 2_000_000_000


def plan(*pairs):
    return tuple(PhasePlan(priority=priority, seconds=seconds) for priority, seconds in pairs)


def seconds(groups):
    return [group.seconds for group in groups]


TWO = plan((0, 20), (CRITICAL, 10))
FOUR = plan((0, 30), (1000, 10), (CRITICAL, 6), (CRITICAL + 1000, 3))
NO_CRITICAL = plan((0, 7), (10, 7))

CASES = [
    (TWO, math.inf, [20, 10]),
    (TWO, 30, [20, 10]),
    (TWO, 30.5, [20, 10]),
    (TWO, 29.999, [19, 10]),
    (TWO, 29, [19, 10]),
    (TWO, 10.9, [0, 10]),
    (TWO, 10, [0, 10]),
    (TWO, 5.5, [0, 5]),
    (TWO, 0.9, [0, 0]),
    (TWO, 0, [0, 0]),
    (TWO, -3, [0, 0]),
    (FOUR, 49, [30, 10, 6, 3]),
    (FOUR, 48, [29, 9, 6, 3]),  # 39 for two that ask for 40: 29.25 and 9.75
    (FOUR, 29, [15, 5, 6, 3]),
    (FOUR, 9, [0, 0, 6, 3]),
    (FOUR, 8, [0, 0, 5, 2]),  # 5.33 and 2.67
    (FOUR, 3, [0, 0, 2, 1]),
    (FOUR, 1, [0, 0, 0, 0]),
    (NO_CRITICAL, 13, [6, 6]),
    (NO_CRITICAL, 5, [2, 2]),
    (plan((CRITICAL - 1, 10), (CRITICAL, 10)), 12, [2, 10]),
    (plan((CRITICAL, 10), (CRITICAL + 1000, 10)), 12, [6, 6]),
    (plan((0, 0), (CRITICAL, 10)), 5, [0, 5]),
    (plan((0, 0), (CRITICAL, 0)), 0, [0, 0]),
    ((), 5, []),
]


@pytest.mark.parametrize(("groups", "granted", "expected"), CASES)
def test_critical_groups_keep_theirs_and_the_others_shrink_pro_rata(groups, granted, expected):
    assert seconds(time_budget.fit_phases(groups, granted)) == expected


GROUPS = st.lists(
    st.builds(
        PhasePlan,
        priority=st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, CRITICAL - 1, CRITICAL, CRITICAL + 1000]),
        seconds=st.integers(0, 100) | st.integers(0, 2**63 - 1),
    ),
    max_size=6,
).map(tuple)
GRANTED = st.floats(0, 1000) | st.integers(0, 2**64) | st.just(math.inf)


@given(GROUPS, GRANTED)
def test_never_more_than_granted_nor_than_asked(groups, granted):
    fitted = time_budget.fit_phases(groups, granted)
    assert sum(seconds(fitted)) <= granted
    assert all(0 <= after.seconds <= before.seconds for before, after in zip(groups, fitted, strict=True))


@given(GROUPS, GRANTED)
def test_order_and_priorities_are_kept(groups, granted):
    assert [group.priority for group in time_budget.fit_phases(groups, granted)] == [group.priority for group in groups]


@given(GROUPS, GRANTED, GRANTED)
def test_more_time_takes_nothing_from_anybody(groups, one, other):
    less, more = sorted([one, other])
    pairs = zip(time_budget.fit_phases(groups, less), time_budget.fit_phases(groups, more), strict=True)
    assert all(before.seconds <= after.seconds for before, after in pairs)


@given(GROUPS, st.integers(0, 2**64))
def test_rounding_loses_less_than_a_second_a_group(groups, granted):
    assume(granted < sum(seconds(groups)))
    assert granted - sum(seconds(time_budget.fit_phases(groups, granted))) <= max(0, len(groups) - 1)


@given(GROUPS, GRANTED)
def test_ordinary_groups_get_nothing_before_critical_ones_have_all(groups, granted):
    fitted = time_budget.fit_phases(groups, granted)
    if any(group.seconds for group in fitted if group.priority < CRITICAL):
        assert [g for g in fitted if g.priority >= CRITICAL] == [g for g in groups if g.priority >= CRITICAL]
