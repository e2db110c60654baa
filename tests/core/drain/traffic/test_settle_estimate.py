"""The settle time that is learnt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.drain.traffic.settle_estimate import (
    DEFAULT_SECONDS,
    LEAST_SECONDS,
    MOST_SECONDS,
    SettleEstimate,
    estimate_settle_time,
    quantile,
    sleep_seconds,
)


@pytest.mark.parametrize(
    ("latencies", "delays", "seconds", "source"),
    [
        ((), (), DEFAULT_SECONDS, "nothing was seen yet"),
        ((2.0, 8.0), (), 8.0, "the kube-proxies of 2 nodes"),
        ((0.1,), (), LEAST_SECONDS, "the kube-proxies of 1 nodes"),
        ((300.0,), (), MOST_SECONDS, "the kube-proxies of 1 nodes"),
        ((), (4.0, 1.0), 5.0, "2 delays that were seen"),
        ((1.0,), (4.0,), 5.0, "1 delays that were seen"),
        ((), [1.0] * 999 + [20.0], 1.25, "1000 delays that were seen"),
    ],
)
def test_the_slowest_that_was_seen_counts(latencies, delays, seconds, source):
    assert estimate_settle_time(latencies, delays)[:2] == (seconds, source)


@given(st.lists(st.floats(0, 100), max_size=8), st.lists(st.floats(0, 100), max_size=200))
def test_it_is_bounded_and_covers_the_share(latencies, delays):
    seconds = estimate_settle_time(latencies, delays).seconds
    assert LEAST_SECONDS <= seconds <= MOST_SECONDS
    uncovered = sum(delay > seconds for delay in delays)
    assert uncovered <= len(delays) / 100 or seconds == MOST_SECONDS


@pytest.mark.parametrize(("seconds", "whole"), [(0.5, 1), (5.0, 5), (8.2, 9)])
def test_a_hook_sleeps_whole_seconds(seconds, whole):
    assert sleep_seconds(SettleEstimate(seconds, "")) == whole


@pytest.mark.parametrize(("values", "found"), [((), 0.0), ((3.0,), 3.0), (range(1, 101), 99)])
def test_the_nearest_rank(values, found):
    assert quantile(list(values), 0.99) == found
