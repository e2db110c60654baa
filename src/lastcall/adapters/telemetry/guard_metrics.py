"""The guard's metrics in Prometheus' exposition format."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from lastcall import names
from lastcall.adapters.telemetry.review_counts import ReviewCounts


class GuardMetrics:
    """Metrics in a registry of their own, for the ``operations`` and ``states`` that there are."""

    def __init__(self, *, operations: Iterable[str] = (), states: Iterable[str] = ()) -> None:
        registry = self._registry = CollectorRegistry()
        meaning = {name.text: name.meaning.split(": ", 1)[-1] for name in names.ALL if name.kind == "metric"}
        answers, durations = ((one, meaning[one]) for one in (names.M_GUARD_REVIEWS, names.M_GUARD_REVIEW_SECONDS))
        self._reviews = ReviewCounts(answers, durations, operations)
        registry.register(self._reviews)
        self._held = Gauge(names.M_GUARD_HELD, meaning[names.M_GUARD_HELD], ("state",), registry=registry)
        self._leads = Gauge(names.M_GUARD_LEADS, meaning[names.M_GUARD_LEADS], registry=registry)
        self._states = tuple(states)

    def observe_review(self, operation: str, *, allowed: bool, reason: str, seconds: float) -> None:
        """Counts one answer."""
        self._reviews.observe(operation, allowed=allowed, reason=reason, seconds=seconds)

    def set_status(self, *, leads: bool, held: Mapping[str, int]) -> None:
        """``held``: how many pods are held, by state; only the guard that leads knows it."""
        self._leads.set(leads)
        for state in self._states:
            self._held.labels(state=state).set(held.get(state, 0))

    def render_text(self) -> bytes:
        """As text/plain; version=0.0.4."""
        return generate_latest(self._registry)
