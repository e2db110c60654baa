"""Which PodDisruptionBudgets keep pods from being evicted, why, and how to mend it (pure)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lastcall.drain.planning.budget_mends import is_freed_by_surge, mend_budget
from lastcall.drain.planning.covering_budgets import find_covering
from lastcall.drain.planning.drain_case import DrainCase, DrainHolder, DrainObstacle
from lastcall.model.budgets import Budget, EvictionObstacle, EvictionRefused, decide_eviction
from lastcall.model.drain_facts import DrainPod, pod_name

BudgetName = tuple[str, str]


def find_budget_obstacles(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each budget that refuses an eviction, with the pods that it refuses.

    None if pods are deleted and not evicted, or --surge makes room. A budget that allows a disruption now is no
    obstacle, however many pods it covers: they go one after another.
    """
    refused: dict[BudgetName, list[tuple[DrainPod, EvictionRefused]]] = defaultdict(list)
    budgets: dict[BudgetName, Budget] = {}
    for pod, decided in _list_refused(case):
        if _is_surged(pod, decided, case):
            continue
        for budget in decided.budgets:
            name = budget.metadata.namespace, budget.metadata.name
            budgets[name] = budget
            refused[name].append((pod, decided))
    for name, found in refused.items():
        yield _obstacle(budgets[name], found, case)


def list_surged_pods(case: DrainCase) -> list[DrainPod]:
    """The pods that a budget lets go when --surge has given their workload one more pod; none without that option."""
    if not case.settings.surge:
        return []
    return [pod for pod, decided in _list_refused(case) if _is_surged(pod, decided, case)]


def _list_refused(case: DrainCase) -> Iterator[tuple[DrainPod, EvictionRefused]]:
    if case.settings.disable_eviction:
        return
    covering = find_covering(case.evicted, case.facts.budgets)
    for pod in case.evicted:
        decided = decide_eviction(pod, covering.get(pod_name(pod), ()))
        if isinstance(decided, EvictionRefused):
            yield pod, decided


def _is_surged(pod: DrainPod, decided: EvictionRefused, case: DrainCase) -> bool:
    if not case.settings.surge or decided.why is not EvictionObstacle.SPENT:
        return False
    return all(is_freed_by_surge(budget, pod, case) for budget in decided.budgets)


def _obstacle(budget: Budget, refused: Sequence[tuple[DrainPod, EvictionRefused]], case: DrainCase) -> DrainObstacle:
    """One obstacle, also if the budget refuses some pods alone and others together with other budgets."""
    reasons = {decision.why: (pod, decision) for pod, decision in reversed(refused)}
    parts = [_why_and_mend(budget, pod, decision, case) for pod, decision in reversed(reasons.values())]
    return DrainObstacle(
        by=DrainHolder(kind="PodDisruptionBudget", namespace=budget.metadata.namespace, name=budget.metadata.name),
        pods=tuple(pod_name(pod) for pod, _ in refused),
        why="; ".join(why for why, _ in parts),
        mend="; ".join(mend for _, mend in parts),
    )


def _why_and_mend(budget: Budget, pod: DrainPod, decision: EvictionRefused, case: DrainCase) -> tuple[str, str]:
    match decision.why:
        case EvictionObstacle.SEVERAL:
            others = ", ".join(one.metadata.name for one in decision.budgets if one is not budget)
            why = f"PodDisruptionBudget {others} covers pod {pod.key} too, and an eviction supports one alone"
            return why, "leave one budget for each pod: delete the others, or change their selectors"
        case EvictionObstacle.STALE:
            seen, current = budget.status.observed_generation, budget.metadata.generation
            why = f"{decision.cause} Its status is older than its spec (observedGeneration {seen} of {current})"
            return why, (
                "wait until the disruption controller of kube-controller-manager has seen the budget; "
                "if that does not happen, look whether it runs"
            )
        case EvictionObstacle.NEGATIVE | EvictionObstacle.UNCONFIRMED:
            return decision.cause, "wait until the disruption controller of kube-controller-manager has caught up"
        case EvictionObstacle.SPENT:
            said = mend_budget(budget, pod, case)
            return f"{decision.cause}: {said.why}", said.mend
