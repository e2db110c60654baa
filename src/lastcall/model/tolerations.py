"""Taints and tolerations (pure): ``k8s.io/api/core/v1/toleration.go``, ``pkg/controller/tainteviction``."""

import re
from collections.abc import Iterable, Sequence

from lastcall.model.base import Facts
from lastcall.model.pods import Int64

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

FOR_EVER = float("inf")


_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_MAX = 2**63 - 1


class Taint(Facts, frozen=True):
    """v1.Taint, without the time at which it was added."""

    key: str
    value: str = ""
    effect: str = ""


class Toleration(Facts, frozen=True):
    """v1.Toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


def tolerates(toleration: Toleration, taint: Taint, *, comparisons: bool = False) -> bool:
    """Whether one toleration matches one taint (``Toleration.ToleratesTaint``).

    An empty effect matches all effects, an empty key all keys, ``Exists`` any value. ``Gt`` and ``Lt`` (KEP-5471)
    compare the taint's value with the toleration's, both 64-bit integers in canonical form. They match nothing without
    ``comparisons``, the feature gate TaintTolerationComparisonOperators (alpha, off by default).
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in ("Gt", "Lt"):
        return comparisons and _compares_values(toleration, taint)
    return toleration.operator == "Exists"


def first_untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, effects: Sequence[str] = (NO_SCHEDULE, NO_EXECUTE)
) -> Taint | None:
    """The first taint with one of these effects that no toleration matches; None if there is none.

    The default effects are those that prevent scheduling.
    """
    candidates = (taint for taint in taints if taint.effect in effects)
    return next((taint for taint in candidates if not any(tolerates(one, taint) for one in tolerations)), None)


def matching_tolerations(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparisons: bool = False
) -> list[Toleration] | None:
    """For each NoExecute taint the first matching toleration, in the pod's order; None if a taint has none.

    ``GetMatchingTolerations`` of ``pkg/apis/core/v1/helper``.
    """
    found: list[Toleration] = []
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        first = next((one for one in tolerations if tolerates(one, taint, comparisons=comparisons)), None)
        if first is None:
            return None
        found.append(first)
    return found


def seconds_tolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, comparisons: bool = False
) -> float:
    """How many seconds a pod may stay on a node with these taints, from their observation; 0 or up to ``FOR_EVER``.

    Only NoExecute counts. The shortest time of the matching tolerations applies; one without a time tolerates for ever
    (``getMinTolerationTime``). A time too long for Go's Duration overflows, as it does there.
    """
    found = matching_tolerations(taints, tolerations, comparisons=comparisons)
    if found is None:
        return 0.0
    shortest = min((one.toleration_seconds for one in found if one.toleration_seconds is not None), default=_MAX)
    if shortest <= 0:
        return 0.0
    nanoseconds = (shortest * 10**9 + 2**63) % 2**64 - 2**63
    return FOR_EVER if shortest == _MAX or nanoseconds < 0 else nanoseconds / 10**9


def _compares_values(toleration: Toleration, taint: Taint) -> bool:
    values = [int(text) for text in (taint.value, toleration.value) if _CANONICAL.fullmatch(text)]
    if len(values) < 2 or not all(-_MAX - 1 <= value <= _MAX for value in values):
        return False
    return values[0] > values[1] if toleration.operator == "Gt" else values[0] < values[1]
