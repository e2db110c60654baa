"""Why a PodDisruptionBudget allows no disruption now, whether it ever can, and what a person can do (pure)."""

from collections.abc import Iterator
from typing import NamedTuple

from lastcall.drain.planning.covering_budgets import covered_pods
from lastcall.drain.planning.drain_case import DrainCase, name_pods
from lastcall.drain.planning.workload_owners import find_workload
from lastcall.drain.unlocking.surge_choice import SurgeChoice, SurgeMethod, choose_surge
from lastcall.model.budgets import ALWAYS_ALLOW, Budget, is_ready
from lastcall.model.drain_facts import DrainPod
from lastcall.model.surge_facts import SurgeableWorkload, resolve_floor

SYNC_FAILED = "SyncFailed"
"""The reason of the condition DisruptionAllowed while the disruption controller cannot count the pods."""


_MOST_REPLICAS = 100
"""So many more replicas are tried."""


class BudgetMend(NamedTuple):
    """Why the budget allows nothing, beyond its numbers, and what can be done."""

    why: str
    mend: str


def mend_budget(budget: Budget, pod: DrainPod, case: DrainCase) -> BudgetMend:
    """For a budget that allows no disruption now; ``pod`` is one that it covers."""
    said = budget.status.blocking_condition
    if said and said.reason == SYNC_FAILED:
        return BudgetMend(
            "the disruption controller cannot count its pods",
            "give its pods a controller with replicas, or the budget minAvailable as a number",
        )
    expected = _expected_pods(budget, case)
    if not _allows(budget, expected):
        return _mend_impossible(budget, pod, expected, case)
    return _mend_unhealthy(budget, case)


def is_freed_by_surge(budget: Budget, pod: DrainPod, case: DrainCase) -> bool:
    """Whether one more pod of its workload for a time makes the budget let the pod go."""
    workload, status = find_workload(pod, case.facts), budget.status
    if workload is None or status.current_healthy < status.expected_pods:
        return False
    return isinstance(choose_surge(workload, [budget], case.facts.autoscalers), SurgeChoice)


def _expected_pods(budget: Budget, case: DrainCase) -> int:
    """As the status has it, else all pods in the facts that it covers."""
    if budget.status.expected_pods:
        return budget.status.expected_pods
    return len([pod for pod in _all_covered(budget, case) if not pod.is_finished])


def _allows(budget: Budget, expected: int) -> bool:
    """Whether one of so many expected pods may go while all are healthy; also if the budget cannot be read."""
    try:
        return resolve_floor(budget.spec.min_available, budget.spec.max_unavailable, expected) < expected
    except ValueError:
        return True


def _mend_impossible(budget: Budget, pod: DrainPod, expected: int, case: DrainCase) -> BudgetMend:
    spec = budget.spec
    if spec.max_unavailable is not None:
        rule = f"maxUnavailable {spec.max_unavailable}"
    else:
        rule = f"minAvailable {spec.min_available} of {expected} {'pod' if expected == 1 else 'pods'}"
    workload = find_workload(pod, case.facts)
    return BudgetMend(f"it can never allow a disruption: {rule}", _impossible_mend(budget, workload, expected, case))


def _impossible_mend(budget: Budget, workload: SurgeableWorkload | None, expected: int, case: DrainCase) -> str:
    change = "change the budget so that it allows one disruption"
    surge = _surge_text(workload, budget, case) if workload else ""
    return ", or ".join(part for part in (surge, _replicas_text(budget, workload, expected), change) if part)


def _replicas_text(budget: Budget, workload: SurgeableWorkload | None, expected: int) -> str:
    """With how many replicas the budget allows a disruption; "" if with no number, as with 100%."""
    enough = next((more for more in range(1, _MOST_REPLICAS) if _allows(budget, expected + more)), None)
    if enough is None:
        return ""
    name, own = (workload.title, workload.spec.replicas) if workload else ("its pods' controller", expected)
    return f"raise the replicas of {name} to {own + enough}"


def _surge_text(workload: SurgeableWorkload, budget: Budget, case: DrainCase) -> str:
    """How one more pod can run for a time; "" if it cannot."""
    found = choose_surge(workload, [budget], case.facts.autoscalers)
    if not isinstance(found, SurgeChoice):
        return ""
    if found.method is SurgeMethod.RESTART:
        by_hand = f"kubectl rollout restart deployment/{workload.metadata.name} -n {workload.metadata.namespace}"
        return f"use --surge (by hand: cordon the node, then {by_hand})"
    return "use --surge"


def _mend_unhealthy(budget: Budget, case: DrainCase) -> BudgetMend:
    ailing = list(_ailing_pods(budget, case))
    if not ailing:
        return BudgetMend(
            f"{budget.status.current_healthy} of {_expected_pods(budget, case)} expected pods are healthy",
            "wait until its pods are ready",
        )
    named = name_pods(ailing)
    policy = (
        ""
        if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW
        else "; unhealthyPodEvictionPolicy: AlwaysAllow lets those that are not ready go"
    )
    return BudgetMend(f"not ready: {named}", f"mend these pods: {named}{policy}")


def _ailing_pods(budget: Budget, case: DrainCase) -> Iterator[DrainPod]:
    """Covered pods of all nodes, and of none, that do not count as healthy."""
    for pod in _all_covered(budget, case):
        if not pod.is_finished and pod.metadata.deletion_timestamp is None and not is_ready(pod):
            yield pod


def _all_covered(budget: Budget, case: DrainCase) -> list[DrainPod]:
    return covered_pods(budget, case.by_namespace.get(budget.metadata.namespace, ()))
