"""Which PodDisruptionBudgets cover which pods, in time linear in the pairs of one namespace (pure)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lastcall.model.budgets import Budget
from lastcall.model.drain_facts import PodName, pod_name
from lastcall.model.label_selector import selector_matcher
from lastcall.model.pods import Pod

P = TypeVar("P", bound=Pod)


def find_covering(pods: Iterable[Pod], budgets: Iterable[Budget]) -> Mapping[PodName, Sequence[Budget]]:
    """The budgets that cover each pod; a pod that none covers is missing."""
    by_namespace = group_pods(pods)
    found: dict[PodName, list[Budget]] = defaultdict(list)
    for budget in budgets:
        for pod in covered_pods(budget, by_namespace.get(budget.metadata.namespace, ())):
            found[pod_name(pod)].append(budget)
    return found


def covered_pods(budget: Budget, pods: Iterable[P]) -> list[P]:
    """Those of its namespace's pods that the budget covers; none if it has no selector, or an invalid one."""
    try:
        matches = selector_matcher(budget.spec.selector)
    except ValueError:
        return []
    return [pod for pod in pods if matches(pod.metadata.labels or {})]


def group_pods(pods: Iterable[P]) -> Mapping[str, Sequence[P]]:
    """The pods by namespace."""
    found: dict[str, list[P]] = defaultdict(list)
    for pod in pods:
        found[pod.metadata.namespace].append(pod)
    return found
