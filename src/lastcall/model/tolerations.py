"""Taints of nodes and what tolerates them (pure): ``k8s.io/api/core/v1/toleration.go``, ``pkg/controller/tainteviction``."""

from collections.abc import Iterable, Sequence

from lastcall.model.base import Facts
from lastcall.model.pods import Int64

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

FOR_EVER = float("inf")


class Taint(Facts, frozen=True):
    """v1.Taint."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Toleration(Facts, frozen=True):
    """v1.Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration matches one taint.

    An empty effect matches all effects, an empty key all keys; ``Exists`` any value. The operators ``Gt`` and ``Lt`` are
    alpha (KEP-5471) and match nothing as long as their feature is off, which is the default.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, effects: Sequence[str] = (NO_SCHEDULE, NO_EXECUTE)
) -> Taint | None:
    """The first taint of one of these effects that nothing tolerates; None if there is none.

    The default effects are those that keep a pod from being scheduled.
    """
    candidates = (taint for taint in taints if taint.effect in effects)
    return next((taint for taint in candidates if not any(tolerates(one, taint) for one in tolerations)), None)


def seconds_tolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """How long a pod stays on a node with these taints, from when they are seen: 0 is not at all, else ``FOR_EVER``.

    Only NoExecute counts. For each taint the first toleration that matches is used, in the order of the pod; the shortest
    time of those used holds, and one without a time tolerates for ever (``getMinTolerationTime``).
    """
    shortest = FOR_EVER
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        used = next((one for one in tolerations if tolerates(one, taint)), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            shortest = min(shortest, max(0.0, float(used.toleration_seconds)))
    return shortest
