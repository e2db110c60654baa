"""The guard's page of metrics: the same text as prometheus_client's own counters would write."""

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from lastcall.adapters.telemetry.guard_metrics import GuardMetrics
from lastcall.adapters.telemetry.review_counts import BUCKETS, ReviewCounts
from lastcall.model.admission import RemovalKind

SEEN = [
    ("delete", True, "ready", 0.0),
    ("delete", False, "preparing", 0.0025),
    ("delete", False, "preparing", 0.0026),
    ("eviction", False, "waiting", 2.5),
    ("eviction", False, "waiting", 7.0),
]


def own_text():
    registry = CollectorRegistry()
    counts = ReviewCounts(("answers_total", "some"), ("seconds", "others"), ["delete", "eviction", "never"])
    registry.register(counts)
    for operation, allowed, reason, seconds in SEEN:
        counts.observe(operation, allowed=allowed, reason=reason, seconds=seconds)
    return generate_latest(registry).decode()


def text_of_the_library():
    registry = CollectorRegistry()
    answers = Counter("answers_total", "some", ("operation", "allowed", "reason"), registry=registry)
    times = Histogram("seconds", "others", ("operation",), registry=registry, buckets=BUCKETS)
    for operation in ("delete", "eviction", "never"):
        times.labels(operation=operation)
    for operation, allowed, reason, seconds in SEEN:
        answers.labels(operation, str(allowed).lower(), reason).inc()
        times.labels(operation).observe(seconds)
    return generate_latest(registry).decode()


def test_the_page_is_that_of_the_librarys_counters():
    prometheus_client.disable_created_metrics()
    assert own_text() == text_of_the_library()


def test_each_kind_of_removal_and_each_state_is_known_from_the_start():
    metrics = GuardMetrics(operations=[one.value for one in RemovalKind], states=["Ready"])
    for kind in RemovalKind:
        metrics.observe_review(kind.value, allowed=False, reason="preparing", seconds=0.1)
    metrics.set_status(leads=True, held={"Ready": 2})
    text = metrics.render_text().decode()
    for kind in RemovalKind:
        labels = f'allowed="false",operation="{kind.value}",reason="preparing"'
        assert f"lastcall_guard_reviews_total{{{labels}}} 1.0\n" in text
        assert f'lastcall_guard_review_duration_seconds_count{{operation="{kind.value}"}} 1.0\n' in text
    assert 'lastcall_guard_held_pods{state="Ready"} 2.0\n' in text
    assert "lastcall_guard_leads 1.0\n" in text
