"""Backoff for looking up replacement pods (pure); some workloads never create one, and a node may be away for weeks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lastcall.failover.evidence.lost_pods import STATEFUL, LostPod

FIRST, LONGEST = 2.0, 60.0
"""Seconds after the first lookup without a result, and at most; each pause is twice as long as the last."""
MOST = 10
"""The number of lookups at a time: the check that sees a node return must not wait for more."""

Question = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LookupAttempts:
    """The number of failed lookups, the latest at ``last``."""

    times: int = 0
    last: float = 0.0


NEVER = LookupAttempts()
"""No lookup yet."""


def next_lookup_at(asked: LookupAttempts) -> float:
    """The earliest time of the next lookup."""
    return asked.last + min(LONGEST, FIRST * 2.0 ** min(asked.times - 1, 10)) if asked.times else float("-inf")


def lookup_key(one: LostPod) -> Question:
    """The query to the API server: by name for a StatefulSet's pod, by labels for those of other owners."""
    if one.kind == STATEFUL:
        return one.kind, one.namespace, one.name
    return "", one.namespace, *(f"{label}={one.labels[label]}" for label in sorted(one.labels))


def due_lookups(
    missing: Iterable[LostPod], before: Mapping[str, LookupAttempts], now: float
) -> Sequence[Sequence[LostPod]]:
    """The lookups that are due, longest waiting first; each lists all lost pods that its answer covers.

    ``before``: earlier lookups by UID.
    """
    same: dict[Question, list[LostPod]] = {}
    for one in missing:
        same.setdefault(lookup_key(one), []).append(one)
    first = {key: min(next_lookup_at(before.get(one.uid, NEVER)) for one in lost) for key, lost in same.items()}
    return [same[key] for key in sorted(same, key=lambda key: first[key]) if first[key] <= now][:MOST]


def count_lookups(
    lost: Iterable[LostPod], before: Mapping[str, LookupAttempts], now: float
) -> Mapping[str, LookupAttempts]:
    """The counts after one more lookup."""
    return {**before, **{one.uid: LookupAttempts(times=before.get(one.uid, NEVER).times + 1, last=now) for one in lost}}
