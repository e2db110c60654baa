"""Counts of reviews as a collector of prometheus_client, whose own counters take a lock and 1 us for each answer."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Seconds of an answer, which takes one at most."""


class _Durations:
    """A histogram: how many answers are in each bucket alone, with those beyond the last one, and their seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class ReviewCounts(Collector):
    """``answers`` and ``durations`` are name and meaning of the two metrics. For one thread alone."""

    def __init__(self, answers: tuple[str, str], durations: tuple[str, str], operations: Iterable[str]) -> None:
        self._names = answers, durations
        self._answers: Counter[tuple[str, bool, str]] = Counter()
        self._durations = {operation: _Durations() for operation in operations}

    def observe(self, operation: str, *, allowed: bool, reason: str, seconds: float) -> None:
        """Counts one answer; the operation is one of those that are known."""
        self._answers[operation, allowed, reason] += 1
        found = self._durations[operation]
        found.counts[bisect_left(BUCKETS, seconds)] += 1
        found.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """``Collector.collect``."""
        answers, durations = self._names
        counter = CounterMetricFamily(*answers, labels=("operation", "allowed", "reason"))
        for (operation, allowed, reason), count in self._answers.items():
            counter.add_metric((operation, str(allowed).lower(), reason), count)
        yield counter
        histogram = HistogramMetricFamily(*durations, labels=("operation",))
        for operation, found in self._durations.items():
            histogram.add_metric((operation,), list(_cumulate(found.counts)), found.seconds)
        yield histogram


def _cumulate(counts: Iterable[int]) -> Iterator[tuple[str, float]]:
    """Each bucket's bound, and how many answers took no longer."""
    total = 0
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
        total += count
        yield bound, float(total)
