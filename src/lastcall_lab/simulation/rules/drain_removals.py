"""The pods that drains have asked to end, as the API server has it (pure)."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lastcall_lab.simulation.truth import Noted, PodState

DRAIN = "drain-"
"""How the processes of drains are called: this and a number."""


class PodRemoval(NamedTuple):
    """A pod that somebody has asked to end: what it was, and what it became.

    ``held_since``: from when on its guard has said on it that it holds it; infinite: it does not.
    """

    at: float
    before: PodState
    after: PodState
    held_since: float

    @property
    def by(self) -> str:
        """The process that has asked."""
        return self.after.by


def is_removal(before: PodState | None, after: PodState) -> bool:
    """Whether a drain has asked the pod to end by this change."""
    return after.by.startswith(DRAIN) and after.is_ending and not (before and before.is_ending)


def list_removals(states: Sequence[Noted[PodState]]) -> Iterator[PodRemoval]:
    """All of them, in order."""
    known: dict[str, PodState] = {}
    held: dict[str, float] = {}
    for at, uid, state in states:
        before = known.get(uid)
        known[uid] = state
        if before and is_removal(before, state):
            yield PodRemoval(at, before, state, held.get(uid, math.inf))
        if state.is_held:
            held.setdefault(uid, at)
        else:
            held.pop(uid, None)
