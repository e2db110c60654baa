"""The settle time (pure): how long proxies need to follow an EndpointSlice, learnt from what was seen.

Nothing is stored. Each kube-proxy keeps a histogram of its own delays since it started, whose high quantile its node's
agent tells. A drain adds the delays that it sees itself: those of removals, which kube-proxy's histogram leaves out.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

DEFAULT_SECONDS = 5.0
"""The settle time while nothing was seen: the delay that is widely advised for preStop hooks."""
LEAST_SECONDS, MOST_SECONDS = 0.5, 30.0
"""The bounds of a learnt time. A proxy that needs more has a fault that no pod should wait for."""
BALANCER_SECONDS = 20.0
"""The least settle time of a pod behind a load balancer of a cloud: so long deregistering a target usually takes."""
QUANTILE = 0.99
"""The share of the seen delays that the time covers, as that of kube-proxy's own histogram."""
MARGIN = 1.25
"""The factor by which a learnt time is longer: the next delay may be the longest so far."""


class SettleEstimate(NamedTuple):
    """The settle time in seconds, and where it is from."""

    seconds: float
    source: str
    is_learnt: bool = True
    """False: nothing was seen, and the default stands."""


def estimate_settle_time(latencies: Collection[float], delays: Sequence[float]) -> SettleEstimate:
    """From the proxies' own high quantiles, one for each node that told it, and the delays that a drain has seen.

    The slowest node counts. A bound of a histogram needs no margin, since it is above what was observed.
    """
    told, seen = max(latencies, default=0.0), MARGIN * quantile(delays, QUANTILE)
    if not latencies and not delays:
        return SettleEstimate(DEFAULT_SECONDS, "nothing was seen yet", is_learnt=False)
    bounded = min(max(told, seen, LEAST_SECONDS), MOST_SECONDS)
    source = f"{len(delays)} delays that were seen" if seen > told else f"the kube-proxies of {len(latencies)} nodes"
    return SettleEstimate(bounded, source)


def sleep_seconds(settle: SettleEstimate) -> int:
    """The seconds of a preStop hook that holds SIGTERM for the settle time: whole ones, as Kubernetes has them."""
    return math.ceil(settle.seconds)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that covers so large a share of all (nearest rank); 0 of none."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else 0.0
