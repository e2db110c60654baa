"""The size of each ReplicaSet during a rolling update of a Deployment (pure).

The rules are those of ``pkg/controller/deployment`` (``rolling.go``, ``sync.go``, ``util/deployment_util.go``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.model.int_or_percent import resolve_portion


class RolloutBounds(NamedTuple):
    """The bounds of a Deployment: the surge above the wanted size, and the unavailable pods below it."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def max_pods(self) -> int:
        """The maximum number of pods at once."""
        return self.replicas + self.surge

    @property
    def min_available(self) -> int:
        """The minimum number of available pods."""
        return self.replicas - self.unavailable


@dataclass(frozen=True)
class ReplicaSetCounts:
    """A ReplicaSet in numbers.

    ``available`` is from its status; ``before`` is the Deployment's maximum when the set was last scaled (None if not
    recorded). Older sets have the smaller ``age``.
    """

    name: str
    replicas: int
    available: int = 0
    before: int | None = None
    age: tuple[str, str] = ("", "")

    @property
    def surely_available(self) -> int:
        """A lower bound of the available pods: an outdated status may still count pods being deleted."""
        return min(self.available, self.replicas)


def rollout_bounds(replicas: int, surge: int | str | None, unavailable: int | str | None) -> RolloutBounds:
    """Surge is rounded up, unavailable down. If both are zero, one pod may be unavailable, to allow progress."""
    more, less = resolve_portion(surge, replicas, up=True), resolve_portion(unavailable, replicas, up=False)
    if not more and not less:
        less = 1
    return RolloutBounds(replicas, more, min(less, replicas))


def new_set_size(new: ReplicaSetCounts, old: Sequence[ReplicaSetCounts], allowed: RolloutBounds) -> int:
    """The size that the new set may have now. It shrinks at once if it is too large."""
    if new.replicas >= allowed.replicas:
        return allowed.replicas
    room = allowed.max_pods - new.replicas - sum(part.replicas for part in old)
    return min(new.replicas + max(room, 0), allowed.replicas)


def old_set_sizes(new: ReplicaSetCounts, old: Sequence[ReplicaSetCounts], allowed: RolloutBounds) -> dict[str, int]:
    """Changed sizes of the old sets: removes unavailable pods first, then as many as may be unavailable.

    Unavailable pods of the new set count too, so that a bad template stops the rollout.
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
    """The sizes when a Deployment is scaled during a rollout: each set gets its share of the change.

    ``present`` is the number of existing pods, for sets that do not record the Deployment's size.
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
    """The proportional part, limited to the remaining change and its direction."""
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
