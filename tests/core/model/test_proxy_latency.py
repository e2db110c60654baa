"""What is learnt from kube-proxy's histogram."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.model.proxy_latency import SHARE, latency_bound, sum_buckets

INF = math.inf


@pytest.mark.parametrize(
    ("buckets", "bound"),
    [
        ({}, None),
        ({0.25: 0, INF: 0}, None),
        ({0.25: 100, 0.5: 100, INF: 100}, 0.25),
        ({0.25: 98, 0.5: 99, 1: 100, INF: 100}, 0.5),
        ({0.25: 0, 0.5: 0, 1: 98, 2: 100, INF: 100}, 2),
        ({0.25: 0, 300: 98, INF: 100}, None),
        ({0.25: 100}, None),
        ({0.25: 5, INF: math.nan}, None),
    ],
)
def test_the_bound_covers_nearly_all_observations(buckets, bound):
    assert latency_bound(buckets) == bound


def test_families_are_summed_and_garbage_is_left_out():
    samples = [
        ({"ip_family": "IPv4", "le": "0.25"}, 10.0),
        ({"ip_family": "IPv6", "le": "0.25"}, 1.0),
        ({"ip_family": "IPv4", "le": "+Inf"}, 10.0),
        ({"ip_family": "IPv6", "le": "+Inf"}, 5.0),
        ({"ip_family": "IPv4"}, 7.0),
        ({"le": "soon"}, 7.0),
        ({"le": "NaN"}, 7.0),
        ({"le": "-1"}, 7.0),
    ]
    assert sum_buckets(samples) == {0.25: 11.0, INF: 15.0}


@given(st.lists(st.floats(0, 400), min_size=1, max_size=200))
def test_at_most_one_in_a_hundred_observations_is_above_the_bound(seconds):
    bounds = [
        0.25,
        0.5,
        *map(float, range(1, 60)),
        *map(float, range(60, 120, 5)),
        *map(float, range(120, 301, 30)),
        INF,
    ]
    found = latency_bound({bound: float(sum(one <= bound for one in seconds)) for bound in bounds})
    covered = sum(one <= (INF if found is None else found) for one in seconds)
    assert covered >= SHARE * len(seconds)
    smaller = [one for one in bounds if one < (INF if found is None else found)]
    assert not smaller or sum(one <= smaller[-1] for one in seconds) < SHARE * len(seconds)
