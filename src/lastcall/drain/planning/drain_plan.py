"""The plan of a drain: the document that ``lastcall drain --plan`` prints.

The document's shape is a contract: fields may be added, never changed or removed.
"""

from collections.abc import Callable, Iterator
from typing import Any

from lastcall.drain.planning.budget_obstacles import find_budget_obstacles
from lastcall.drain.planning.drain_case import DrainCase, DrainNote, DrainObstacle
from lastcall.drain.planning.duration_estimate import estimate_seconds
from lastcall.drain.planning.guard_obstacles import find_guard_obstacles
from lastcall.drain.planning.node_obstacles import find_finalizers, find_gone_nodes, find_opt_out_obstacles
from lastcall.drain.planning.notes import list_notes
from lastcall.drain.planning.pod_filters import FilterFate
from lastcall.drain.planning.tiers import arrange_tiers
from lastcall.drain.planning.webhook_obstacles import find_webhook_obstacles
from lastcall.model.base import Facts
from lastcall.model.drain_facts import PodName, pod_name

_RULES: tuple[Callable[[DrainCase], Iterator[DrainObstacle]], ...] = (
    find_opt_out_obstacles,
    find_gone_nodes,
    find_finalizers,
    find_budget_obstacles,
    find_guard_obstacles,
    find_webhook_obstacles,
)


class PassedPod(Facts, frozen=True):
    """A pod that stays."""

    pod: PodName
    why: str


class RefusedPod(Facts, frozen=True):
    """A pod without whose mend the drain does not begin."""

    pod: PodName
    why: str
    mend: str


class DrainPlan(Facts, frozen=True):
    """What would happen. ``evict`` are the tiers after the mends; ``seconds`` is the estimate for them."""

    nodes: tuple[str, ...]
    evict: tuple[tuple[PodName, ...], ...]
    skip: tuple[PassedPod, ...]
    refuse: tuple[RefusedPod, ...]
    blocked: tuple[DrainObstacle, ...]
    seconds: int
    notes: tuple[DrainNote, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.refuse and not self.blocked


def build_plan(case: DrainCase) -> DrainPlan:
    """The plan. Its lists are sorted; the holders of pods by kind, namespace and name."""
    tiers = arrange_tiers(case.evicted, case.facts.dns)
    obstacles = [obstacle for rule in _RULES for obstacle in rule(case)]
    return DrainPlan(
        nodes=tuple(node.name for node in case.nodes),
        evict=tuple(tuple(map(pod_name, tier)) for tier in tiers),
        skip=tuple(
            PassedPod(pod=pod_name(one.pod), why=one.verdict.why)
            for one in case.judged
            if one.verdict.fate is FilterFate.SKIP
        ),
        refuse=tuple(
            RefusedPod(pod=pod_name(one.pod), why=one.verdict.why, mend=one.verdict.mend)
            for one in case.judged
            if one.verdict.fate is FilterFate.REFUSE
        ),
        blocked=tuple(sorted(obstacles, key=_obstacle_place)),
        seconds=estimate_seconds(case, tiers),
        notes=tuple(list_notes(case)),
    )


def plan_document(plan: DrainPlan) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "nodes": list(plan.nodes),
        "evict": [list(map(_pod_object, tier)) for tier in plan.evict],
        "skip": [{**_pod_object(one.pod), "why": one.why} for one in plan.skip],
        "refuse": [{**_pod_object(one.pod), "why": one.why, "mend": one.mend} for one in plan.refuse],
        "blocked": [_obstacle_object(one) for one in plan.blocked],
        "etaSeconds": plan.seconds,
    }


def _obstacle_place(obstacle: DrainObstacle) -> tuple[Any, ...]:
    by = obstacle.by
    return by.kind, by.namespace, by.name, obstacle.why, obstacle.pods


def _obstacle_object(obstacle: DrainObstacle) -> dict[str, Any]:
    by = obstacle.by
    return {
        "by": {"kind": by.kind, "namespace": by.namespace, "name": by.name},
        "pods": list(map(_pod_object, obstacle.pods)),
        "why": obstacle.why,
        "mend": obstacle.mend,
    }


def _pod_object(pod: PodName) -> dict[str, str]:
    namespace, name = pod
    return {"namespace": namespace, "name": name}
