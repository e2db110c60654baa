"""How many pods each ReplicaSet of a Deployment may have now: the arithmetic of rolling updates (pure).

The rules are those of ``pkg/controller/deployment`` (``rolling.go``, ``sync.go``, ``util/deployment_util.go``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lastcall.model.portions import portion


class Bounds(NamedTuple):
    """What a Deployment allows: pods more than wanted, and pods of the wanted that are not available."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        """Pods that there may be at once."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """Pods that must be available."""
        return self.replicas - self.unavailable


@dataclass(frozen=True)
class Part:
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
    def up(self) -> int:
        """Pods that are available for certain: a status that is behind may still count some that go."""
        return min(self.available, self.replicas)


def bounds(replicas: int, surge: int | str | None, unavailable: int | str | None) -> Bounds:
    """Surge is rounded up, unavailability down; if both come to nothing, one pod may be missing, or nothing would move."""
    more, less = portion(surge, replicas, up=True), portion(unavailable, replicas, up=False)
    if not more and not less:
        less = 1
    return Bounds(replicas, more, min(less, replicas))


def grown(new: Part, old: Sequence[Part], allowed: Bounds) -> int:
    """How large the new set may be now. It shrinks at once if it is larger than wanted."""
    if new.replicas >= allowed.replicas:
        return allowed.replicas
    room = allowed.most - new.replicas - sum(part.replicas for part in old)
    return min(new.replicas + max(room, 0), allowed.replicas)


def shrunk(new: Part, old: Sequence[Part], allowed: Bounds) -> dict[str, int]:
    """The sizes of the old sets that change now: pods that are not available go first, then as many as may be missing.

    Pods of the new set that are not available yet count as missing, so that a bad template stops the rollout.
    """
    sizes = {part.name: part.replicas for part in sorted(old, key=lambda part: part.age)}
    pods = new.replicas + sum(sizes.values())
    spare = pods - allowed.least - (new.replicas - new.up)
    up = {part.name: part.up for part in old}
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


def proportional(parts: Sequence[Part], allowed: Bounds, *, present: int) -> dict[str, int]:
    """The sizes when a Deployment is scaled in the middle of a rollout: each set gets its share of the change.

    ``present`` is how many pods there are, for sets that do not say how large the Deployment was.
    """
    parts = [part for part in parts if part.replicas]
    total = sum(part.replicas for part in parts)
    change = (allowed.most if allowed.replicas else 0) - total
    if not change:
        return {part.name: part.replicas for part in parts}
    younger_first = change > 0
    ordered = sorted(parts, key=lambda part: part.age, reverse=younger_first)
    ordered.sort(key=lambda part: -part.replicas)
    sizes, done = {}, 0
    for part in ordered:
        share = _share(part, allowed, present, change - done)
        sizes[part.name] = part.replicas + share
        done += share
    if ordered:
        first = ordered[0].name
        sizes[first] = max(0, sizes[first] + change - done)
    return sizes


def _share(part: Part, allowed: Bounds, present: int, left: int) -> int:
    """As much as keeps its proportion, never more than what is left, nor in the other direction."""
    if not left:
        return 0
    if not allowed.replicas:
        wanted = -part.replicas
    else:
        before = part.before or present
        wanted = _rounded(part.replicas * allowed.most / before) - part.replicas if before else 0
    return min(wanted, left) if left > 0 else max(wanted, left)


def _rounded(value: float) -> int:
    return int(value + 0.5)
