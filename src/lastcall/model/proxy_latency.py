"""How long Services' proxies take to follow an EndpointSlice (pure), from kube-proxy's own histogram.

kube-proxy observes ``kubeproxy_network_programming_duration_seconds`` at each synchronization: the time from a change
of a pod or Service until the node's rules follow it, once for each IP family.
"""

import math
from collections.abc import Iterable, Mapping

SHARE = 0.99
"""The share of the observed changes that the learnt time covers."""

PROGRAMMING_BUCKET = "kubeproxy_network_programming_duration_seconds_bucket"
"""The samples that are read: each has the labels ``ip_family`` and ``le``."""


def sum_buckets(samples: Iterable[tuple[Mapping[str, str], float]]) -> Mapping[float, float]:
    """The cumulative counts by upper bound in seconds, summed over the IP families; samples without a bound are left out."""
    counts: dict[float, float] = {}
    for labels, count in samples:
        bound = _parse_bound(labels.get("le", ""))
        if bound is not None:
            counts[bound] = counts.get(bound, 0.0) + count
    return counts


def latency_bound(buckets: Mapping[float, float]) -> float | None:
    """The smallest bound in seconds that covers ``SHARE`` of the observations; None if there are none, or no bound does."""
    total = buckets.get(math.inf, 0.0)
    if not total > 0:
        return None
    covering = (bound for bound, count in sorted(buckets.items()) if count >= SHARE * total)
    bound = next(covering, math.inf)
    return bound if math.isfinite(bound) else None


def _parse_bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) or bound < 0 else bound
