"""How far a node's kube-proxy has followed the EndpointSlices (pure), from the times of its synchronizations.

kube-proxy sets ``..._last_queued_timestamp_seconds`` when a change of a Service or slice reaches it, and
``..._last_timestamp_seconds`` at the end of each synchronization (pkg/proxy/metrics). A change may arrive while a
synchronization runs that does not include it. So the end of one proves only what was queued before it began.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

_PREFIX = "kubeproxy_sync_proxy_rules"
QUEUED, FINISHED = f"{_PREFIX}_last_queued_timestamp_seconds", f"{_PREFIX}_last_timestamp_seconds"
PENDING, DURATION_BUCKET = f"{_PREFIX}_endpoint_changes_pending", f"{_PREFIX}_duration_seconds_bucket"
SYNC_SAMPLES = (QUEUED, FINISHED, PENDING, DURATION_BUCKET)
"""The samples that are read; each may have the label ``ip_family``."""

TOLERANCE = 0.5
"""Seconds by which a proxy may hear of a slice's change before the observer does."""

_UNKNOWN_DURATION = 1.0
"""Seconds that a synchronization may take while kube-proxy has counted none."""


class ProxySync(NamedTuple):
    """The times of a kube-proxy's synchronizations, in seconds of one clock."""

    queued: float
    """When the last change reached it; of two IP families the later one."""
    finished: float
    """The end of the last synchronization; of two IP families the earlier one."""
    longest: float
    """An upper bound of the duration of a synchronization, in seconds."""
    pending: int = 0
    """The changes of slices that no synchronization has begun to apply."""

    def shift(self, seconds: float) -> "ProxySync":
        """The same on a clock that is ahead by so much."""
        return self._replace(queued=self.queued + seconds, finished=self.finished + seconds)


class SyncVerdict(NamedTuple):
    """What one reading says of one change."""

    heard: bool
    """The change has reached the proxy, and a synchronization has ended since."""
    followed: bool
    """The proxy's rules follow the change."""


def judge_sync(sync: ProxySync, changed: float, *, now: float, heard_since: float | None) -> SyncVerdict:
    """Whether the proxy follows a change that the observer saw at ``changed``.

    ``heard_since`` is when the first reading of an uninterrupted row said ``heard``. After the longest synchronization
    has passed since then, one that was running and did not include the change is over, and the next one too.
    """
    heard = sync.queued >= changed - TOLERANCE and sync.finished >= sync.queued and not sync.pending
    proved = sync.finished - sync.longest >= sync.queued
    waited = heard_since is not None and now >= heard_since + sync.longest
    return SyncVerdict(heard, heard and (proved or waited))


def read_proxy_sync(samples: Iterable[tuple[str, Mapping[str, str], float]]) -> ProxySync | None:
    """The times from samples by name and labels; None if the proxy does not tell them, or has never synchronized."""
    found = [(name, labels, value) for name, labels, value in samples if name in SYNC_SAMPLES]
    queued, finished = _values(found, QUEUED), _values(found, FINISHED)
    if not queued or not finished or min(finished) <= 0:
        return None
    return ProxySync(max(queued), min(finished), _longest(found), int(max(_values(found, PENDING), default=0)))


def _values(found: Iterable[tuple[str, Mapping[str, str], float]], wanted: str) -> list[float]:
    return [value for name, _, value in found if name == wanted]


def _longest(found: Iterable[tuple[str, Mapping[str, str], float]]) -> float:
    """The smallest bound that covers all observed durations, the largest finite one if none does."""
    buckets: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name, labels, count in found:
        if name == DURATION_BUCKET:
            family = labels.get("ip_family", ""), labels.get("sync_type", "")
            buckets.setdefault(family, []).append((float(labels.get("le", "inf")), count))
    return max((_covering_bound(one) for one in buckets.values()), default=_UNKNOWN_DURATION)


def _covering_bound(buckets: list[tuple[float, float]]) -> float:
    total = max(count for _, count in buckets)
    finite = sorted(one for one in buckets if one[0] != float("inf"))
    if not total or not finite:
        return _UNKNOWN_DURATION
    return next((bound for bound, count in finite if count >= total), finite[-1][0])
