"""The client-side rate limit of a controller (pure): ``k8s.io/client-go/util/flowcontrol``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RateLimit:
    """``qps`` requests per second on average, ``burst`` at once. kube-controller-manager has 20 and 30.

    Each of its controllers has its own client and so its own bucket.
    """

    qps: float
    burst: int


KUBERNETES = RateLimit(20.0, 30)
"""``--kube-api-qps`` and ``--kube-api-burst`` by default."""


class TokenBucket:
    """The bucket of one controller; initially full."""

    def __init__(self, pace: RateLimit) -> None:
        self._pace = pace
        self._tokens = float(pace.burst)
        self._at = 0.0

    def take_token(self, now: float) -> float:
        """Takes a token; returns the seconds until it may be used."""
        gained = (now - self._at) * self._pace.qps
        self._tokens = min(float(self._pace.burst), self._tokens + gained) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._pace.qps)
