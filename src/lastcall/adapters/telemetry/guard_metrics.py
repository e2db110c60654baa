"""The guard's metrics in Prometheus' exposition format."""

import functools
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lastcall import names

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
"""Seconds of an answer, which takes one at most."""


class GuardMetrics:
    """Metrics in a registry of their own. Known label values exist from the start with 0."""

    def __init__(self, *, operations: Iterable[str] = (), states: Iterable[str] = ()) -> None:
        registry = self._registry = CollectorRegistry()
        meaning = {name.text: name.meaning.split(": ", 1)[-1] for name in names.ALL if name.kind == "metric"}
        self._reviews = Counter(
            names.M_GUARD_REVIEWS,
            meaning[names.M_GUARD_REVIEWS],
            ("operation", "allowed", "reason"),
            registry=registry,
        )
        self._seconds = Histogram(
            names.M_GUARD_REVIEW_SECONDS,
            meaning[names.M_GUARD_REVIEW_SECONDS],
            ("operation",),
            registry=registry,
            buckets=_BUCKETS,
        )
        self._held = Gauge(names.M_GUARD_HELD, meaning[names.M_GUARD_HELD], ("state",), registry=registry)
        self._leads = Gauge(names.M_GUARD_LEADS, meaning[names.M_GUARD_LEADS], registry=registry)
        self._answers = functools.cache(self._answers_of)
        """The search for labels costs more than the count."""
        self._times = functools.cache(self._seconds.labels)
        self._states = tuple(states)
        for operation in operations:
            self._seconds.labels(operation=operation)

    def observe_review(self, operation: str, *, allowed: bool, reason: str, seconds: float) -> None:
        """Counts one answer."""
        self._answers(operation, allowed, reason).inc()
        self._times(operation).observe(seconds)

    def _answers_of(self, operation: str, allowed: bool, reason: str) -> Counter:
        return self._reviews.labels(operation, str(allowed).lower(), reason)

    def set_status(self, *, leads: bool, held: Mapping[str, int]) -> None:
        """``held``: how many pods are held, by state; only the guard that leads knows it."""
        self._leads.set(leads)
        for state in self._states:
            self._held.labels(state=state).set(held.get(state, 0))

    def render_text(self) -> bytes:
        """As text/plain; version=0.0.4."""
        return generate_latest(self._registry)
