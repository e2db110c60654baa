"""How many pods each ReplicaSet of a Deployment may have now: the arithmetic of rolling updates (pure).

The rules are those of ``pkg/controller/deployment`` (``rolling.go``, ``sync.go``, ``util/deployment_util.go``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.model.int_or_percent import resolve_portion


class RolloutBounds(NamedTuple):
    """What a Deployment allows: pods more than wanted, and pods of the wanted that are not available."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def max_pods(self) -> int:
        """Pods that there may be at once."""
        return self.replicas + self.surge

    @property
    def min_available(self) -> int:
        """Pods that must be available."""
        return self.replicas - self.unavailable


@dataclass(frozen=True)
class ReplicaSetCounts:
    """A ReplicaSet in numbers.

    ``available`` is what its status says, ``before`` the most that the Deployment allowed when it was last scaled
    (None if it does not say). Of two parts, the older has the smaller ``age``.
    """

    name: str
    replicas: int
    available: int = 0
    before: int | None = None
    age: tuple[str, str] = ("", "")

    @property
    def surely_available(self) -> int:
        """Pods that are available for certain: a status that is behind may still count some that go."""
        return min(self.available, self.replicas)


def rollout_bounds(replicas: int, surge: int | str | None, unavailable: int | str | None) -> RolloutBounds:
    """Surge is rounded up, unavailability down; if both come to nothing, one pod may be missing, or nothing would move."""
    more, less = resolve_portion(surge, replicas, up=True), resolve_portion(unavailable, replicas, up=False)
    if not more and not less:
        less = 1
    return RolloutBounds(replicas, more, min(less, replicas))


def new_set_size(new: ReplicaSetCounts, old: Sequence[ReplicaSetCounts], allowed: RolloutBounds) -> int:
    """How large the new set may be now. It shrinks at once if it is larger than wanted."""
    if new.replicas >= allowed.replicas:
        return allowed.replicas
    room = allowed.max_pods - new.replicas - sum(part.replicas for part in old)
    return min(new.replicas + max(room, 0), allowed.replicas)


def old_set_sizes(new: ReplicaSetCounts, old: Sequence[ReplicaSetCounts], allowed: RolloutBounds) -> dict[str, int]:
    """The sizes of the old sets that change now: pods that are not available go first, then as many as may be missing.

    Pods of the new set that are not available yet count as missing, so that a bad template stops the rollout.
    """
    sizes = {part.name: part.replicas for part in sorted(old, key=lambda part: part.age)}
    pods = new.replicas + sum(sizes.values())
    spare = pods - allowed.min_available - (new.replicas - new.surely_available)
    up = {part.name: part.surely_available for part in old}
    for name, size in sizes.items():
        gone = max(0, min(spare, size - up[name]))
        sizes[name] -= gone
        spare -= gone
    surplus = max(0, spare)
    for name, size in sizes.items():
        gone = min(surplus, size)
        sizes[name] -= gone
        surplus -= gone
    return {part.name: sizes[part.name] for part in old if sizes[part.name] != part.replicas}


def proportional_sizes(parts: Sequence[ReplicaSetCounts], allowed: RolloutBounds, *, present: int) -> dict[str, int]:
    """The sizes when a Deployment is scaled in the middle of a rollout: each set gets its share of the change.

    ``present`` is how many pods there are, for sets that do not say how large the Deployment was.
    """
    parts = [part for part in parts if part.replicas]
    total = sum(part.replicas for part in parts)
    change = (allowed.max_pods if allowed.replicas else 0) - total
    if not change:
        return {part.name: part.replicas for part in parts}
    younger_first = change > 0
    ordered = sorted(parts, key=lambda part: part.age, reverse=younger_first)
    ordered.sort(key=lambda part: -part.replicas)
    sizes, done = {}, 0
    for part in ordered:
        share = _proportional_share(part, allowed, present, change - done)
        sizes[part.name] = part.replicas + share
        done += share
    if ordered:
        first = ordered[0].name
        sizes[first] = max(0, sizes[first] + change - done)
    return sizes


def _proportional_share(part: ReplicaSetCounts, allowed: RolloutBounds, present: int, left: int) -> int:
    """As much as keeps its proportion, never more than what is left, nor in the other direction."""
    if not left:
        return 0
    if not allowed.replicas:
        wanted = -part.replicas
    else:
        before = part.before or present
        wanted = _round_half_away(part.replicas * allowed.max_pods / before) - part.replicas if before else 0
    return min(wanted, left) if left > 0 else max(wanted, left)


def _round_half_away(value: float) -> int:
    return int(value + 0.5)
