"""How long to wait before something that keeps failing is tried again (``k8s.io/client-go/util/flowcontrol``)."""

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class FailureBackoff:
    """Remembers failures by key: each doubles the wait; after a calm time of twice the longest it is the first again."""

    first: float
    longest: float
    _known: dict[Hashable, tuple[float, float]] = field(default_factory=dict)

    def seconds_left(self, key: Hashable, now: float) -> float:
        """Seconds until it may be tried again; 0 if it may be now."""
        wait, since = self._known.get(key, (0.0, now))
        return max(0.0, since + wait - now)

    def record_retry(self, key: Hashable, now: float) -> None:
        """It has failed, and is tried again now."""
        self._drop_expired(now)
        wait = self._known.get(key, (0.0, now))[0]
        self._known[key] = (min(wait * 2 or self.first, self.longest), now)

    def _drop_expired(self, now: float) -> None:
        for key in [key for key, (_, since) in self._known.items() if now - since > 2 * self.longest]:
            del self._known[key]
