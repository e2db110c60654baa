"""When a kube-proxy's synchronizations prove that it follows a change."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from lastcall.model.proxy_sync import ProxySync, judge_sync, read_proxy_sync

PAGE = """\
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.7e+09
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} 1.700000001e+09
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.700000004e+09
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} 1.700000003e+09
kubeproxy_sync_proxy_rules_endpoint_changes_pending{ip_family="IPv4"} 0
kubeproxy_sync_proxy_rules_endpoint_changes_pending{ip_family="IPv6"} 2
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.064"} 10
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.128"} 12
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 12
"""


def samples(text):
    return [
        (one.name, one.labels, one.value) for family in text_string_to_metric_families(text) for one in family.samples
    ]


def test_of_two_families_the_one_that_is_behind_counts():
    assert read_proxy_sync(samples(PAGE)) == ProxySync(1.700000001e9, 1.700000003e9, 0.128, 2)


@pytest.mark.parametrize(
    "page",
    [
        "",
        "\n".join(line for line in PAGE.splitlines() if "queued" not in line) + "\n",
        "\n".join(line for line in PAGE.splitlines() if "last_timestamp" not in line) + "\n",
        PAGE.replace("1.700000003e+09", "0"),
    ],
)
def test_a_proxy_that_does_not_tell(page):
    assert read_proxy_sync(samples(page)) is None


def test_without_durations_a_synchronization_takes_a_second():
    page = "\n".join(line for line in PAGE.splitlines() if "bucket" not in line) + "\n"
    assert read_proxy_sync(samples(page)).longest == 1.0


@pytest.mark.parametrize(
    ("sync", "now", "heard_since", "verdict"),
    [
        (ProxySync(9.0, 9.1, 0.05), 20, None, (False, False)),  # nothing was queued since the change
        (ProxySync(9.6, 11, 0.05), 20, None, (True, True)),  # it heard a moment before the observer
        (ProxySync(11, 10.9, 0.05), 20, None, (False, False)),  # queued, not synchronized
        (ProxySync(11, 11.1, 0.05), 11.1, None, (True, True)),  # the synchronization began after it was queued
        (ProxySync(11, 11.1, 0.2), 11.1, None, (True, False)),  # it may have begun before
        (ProxySync(11, 11.1, 0.2), 11.2, 11.1, (True, False)),
        (ProxySync(11, 11.1, 0.2), 11.31, 11.1, (True, True)),  # that one, and the one that followed it, are over
        (ProxySync(11, 11.1, 0.05, pending=1), 20, 11, (False, False)),  # a change waits for the next synchronization
    ],
)
def test_what_proves_that_a_proxy_follows(sync, now, heard_since, verdict):
    assert judge_sync(sync, 10.0, now=now, heard_since=heard_since) == verdict


@given(
    arrival=st.floats(0, 5),
    durations=st.lists(st.floats(0.01, 1.0), min_size=8, max_size=8),
    gap=st.floats(0.0, 1.0),
    phase=st.floats(0, 1),
    every=st.floats(0.05, 0.7),
)
def test_no_proxy_is_believed_that_has_not_written_the_change(arrival, durations, gap, phase, every):
    """A model of kube-proxy: synchronizations run one at a time, and take the changes that are there when they begin."""
    longest, begun = max(durations), []
    at = phase
    for duration in durations * 80:
        begun.append((at, at + duration))
        at += duration + gap
    written = next(end for start, end in begun if start >= arrival)  # it is taken up at the next begin
    heard_since = None
    for step in itertools.count():
        now = arrival + step * every
        if now > written + 3:
            break
        finished = max((end for _, end in begun if end <= now), default=0.0)
        # Whether the change waits for a synchronization to begin.
        pending = not any(arrival <= start <= now for start, _ in begun)
        verdict = judge_sync(
            ProxySync(arrival, finished, longest, int(pending)), arrival, now=now, heard_since=heard_since
        )
        heard_since = (heard_since if heard_since is not None else now) if verdict.heard else None
        assert not verdict.followed or now >= written
