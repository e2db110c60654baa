"""Who leads a workload, and when nobody does (pure).

One of the pods that serve leads. A leader whose preStop hook runs hands over at once, and for ``handover`` seconds
nobody leads; a leader that ends without is noticed by the others, and ``election`` seconds later another leads. If no
pod can lead then, the first that can does. One whose hook has begun, or that has had SIGTERM, is not taken.
The leader's lease is not at the API server here: a machine that is cut off from it keeps its leader.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.measurements.serving import serving_span
from lastcall_lab.simulation.scenario import LeaderSettings, ScenarioWorkload
from lastcall_lab.simulation.time_spans import TimeSpan


class LeaderCandidate(NamedTuple):
    """One run of a pod: when it serves, and when it is told to go (``inf``: never): its hook's begin, and SIGTERM's."""

    serves: TimeSpan
    hook: float = math.inf
    term: float = math.inf

    @property
    def eligible_span(self) -> TimeSpan:
        """When it can be taken."""
        return TimeSpan(self.serves.begin, min(self.serves.end, self.hook, self.term))


def to_candidate(life: ContainerLife, workload: ScenarioWorkload) -> LeaderCandidate:
    """What a pod's container has heard."""
    hook = life.hooks[0][0] if life.hooks else math.inf
    return LeaderCandidate(serving_span(life, workload), hook, math.inf if life.term is None else life.term)


def led_spans(candidates: Sequence[LeaderCandidate], leader: LeaderSettings) -> list[TimeSpan]:
    """When somebody leads. The first that serves does so at once: nobody's lease has to run out."""
    at, found = -math.inf, []
    while chosen := _next_leader(candidates, at):
        begin = max(at, chosen.eligible_span.begin)
        end, at = _end_of_term(chosen, leader)
        found.append(TimeSpan(begin, end))
    return found


def _next_leader(candidates: Sequence[LeaderCandidate], at: float) -> LeaderCandidate | None:
    """The one that can be taken first, from then on; of several the one that has served longest."""
    able = [one for one in candidates if max(at, one.eligible_span.begin) < one.eligible_span.end]
    return min(able, key=lambda one: (max(at, one.eligible_span.begin), one.eligible_span.begin), default=None)


def _end_of_term(chosen: LeaderCandidate, leader: LeaderSettings) -> tuple[float, float]:
    """When it leads no longer, and when another can. One that ends before it has handed over has not done so."""
    if chosen.hook + leader.handover <= chosen.serves.end:
        return chosen.hook, chosen.hook + leader.handover
    end = min(chosen.hook, chosen.serves.end)
    return end, chosen.serves.end + leader.election
