"""Exponential backoff for repeated failures (``k8s.io/client-go/util/flowcontrol``)."""

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class FailureBackoff:
    """Backoff by key: each failure doubles the wait, and a quiet time of twice the maximum resets it."""

    first: float
    longest: float
    _known: dict[Hashable, tuple[float, float]] = field(default_factory=dict)

    def seconds_left(self, key: Hashable, now: float) -> float:
        """Seconds until the next attempt is allowed; 0 if it is allowed now."""
        wait, since = self._known.get(key, (0.0, now))
        return max(0.0, since + wait - now)

    def record_retry(self, key: Hashable, now: float) -> None:
        """Records a failure that is retried now."""
        self._drop_expired(now)
        wait = self._known.get(key, (0.0, now))[0]
        self._known[key] = (min(wait * 2 or self.first, self.longest), now)

    def _drop_expired(self, now: float) -> None:
        for key in [key for key, (_, since) in self._known.items() if now - since > 2 * self.longest]:
            del self._known[key]
