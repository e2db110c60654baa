"""How often what takes a lost pod's place is asked for (pure): some never get one, and a node may be away for weeks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lastcall.failover.evidence.lost_pods import STATEFUL, LostPod

FIRST, LONGEST = 2.0, 60.0
"""Seconds after the first time in which a pod's was not found, and at most: each time twice as long as the last."""
MOST = 10
"""So many questions at a time: the look that sees a node come back is not to wait for more."""

Question = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LookupAttempts:
    """So often one was asked for in vain, the last time at ``last``."""

    times: int = 0
    last: float = 0.0


NEVER = LookupAttempts()
"""Not once."""


def next_lookup_at(asked: LookupAttempts) -> float:
    """When it is asked for again at the earliest."""
    return asked.last + min(LONGEST, FIRST * 2.0 ** min(asked.times - 1, 10)) if asked.times else float("-inf")


def lookup_key(one: LostPod) -> Question:
    """What is asked of the API server: a StatefulSet's pod by name, those of other owners by labels."""
    if one.kind == STATEFUL:
        return one.kind, one.namespace, one.name
    return "", one.namespace, *(f"{label}={one.labels[label]}" for label in sorted(one.labels))


def due_lookups(
    missing: Iterable[LostPod], before: Mapping[str, LookupAttempts], now: float
) -> Sequence[Sequence[LostPod]]:
    """Those that are due now, who has waited longest first: each with all whose places are told by its answer.

    ``before``: by uid.
    """
    same: dict[Question, list[LostPod]] = {}
    for one in missing:
        same.setdefault(lookup_key(one), []).append(one)
    first = {key: min(next_lookup_at(before.get(one.uid, NEVER)) for one in lost) for key, lost in same.items()}
    return [same[key] for key in sorted(same, key=lambda key: first[key]) if first[key] <= now][:MOST]


def count_lookups(
    lost: Iterable[LostPod], before: Mapping[str, LookupAttempts], now: float
) -> Mapping[str, LookupAttempts]:
    """They were asked for once more."""
    return {**before, **{one.uid: LookupAttempts(times=before.get(one.uid, NEVER).times + 1, last=now) for one in lost}}
