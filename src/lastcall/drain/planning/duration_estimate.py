"""How long a drain takes at most if nothing holds it: a sum over waves of pods (pure).

A tier goes in waves. A wave takes as many pods of each budget as the budget allows now, at least one: what holds a budget
is mended first. It lasts as long as its longest grace period. ``REPLACEMENT_SECONDS`` are added before a wave that needs a
disruption which the wave before it has used up, until the replacements of that one are ready.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from lastcall.drain.planning.covering_budgets import find_covering
from lastcall.drain.planning.drain_case import DrainCase
from lastcall.model.budgets import Budget, EvictionAllowed, decide_eviction
from lastcall.model.drain_facts import DrainPod, pod_name
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.pods import DEFAULT_GRACE, Pod, asked_grace

REPLACEMENT_SECONDS = 30
"""The assumed time until a replacement is ready."""

_BudgetName = tuple[str, str]


def estimate_seconds(case: DrainCase, tiers: Iterable[Sequence[DrainPod]]) -> int:
    """Seconds until the last pod of the tiers has ended; 0 if there is none."""
    spends = {} if case.settings.disable_eviction else _list_spends(case)
    allowed = {_budget_name(one): max(1, one.status.disruptions_allowed) for one in case.facts.budgets}
    total, before = 0, Counter[_BudgetName]()
    for tier in tiers:
        for wave in _split_waves(tier, spends, allowed):
            used = Counter(name for pod in wave for name in spends.get(pod_name(pod), ()))
            waits = any(before[name] + count > allowed[name] for name, count in used.items() if before[name])
            total += max(pod_grace(pod, case.settings) for pod in wave) + (REPLACEMENT_SECONDS if waits else 0)
            before = used
    return total


def pod_grace(pod: Pod, settings: DrainSettings) -> int:
    """The seconds that the pod has to end: none if it has finished; those of ``--grace-period``, or its own."""
    if pod.is_finished:
        return 0
    if settings.grace_period is not None:
        return settings.grace_period
    own = asked_grace(pod)
    return DEFAULT_GRACE if own is None else own


def _list_spends(case: DrainCase) -> Mapping[tuple[str, str], Sequence[_BudgetName]]:
    """The budgets that the eviction of each pod is charged to, by the pod's name."""
    found: dict[tuple[str, str], Sequence[_BudgetName]] = {}
    for name, budgets in find_covering(case.evicted, case.facts.budgets).items():
        found[name] = tuple(map(_budget_name, budgets))
    charged = {pod_name(pod): pod for pod in case.evicted if pod_name(pod) in found}
    by_name = {_budget_name(one): one for one in case.facts.budgets}
    return {
        name: found[name] for name, pod in charged.items() if _is_charged(pod, [by_name[one] for one in found[name]])
    }


def _is_charged(pod: DrainPod, budgets: Sequence[Budget]) -> bool:
    """Whether the eviction counts in a budget, now or when what holds the budget is mended."""
    decided = decide_eviction(pod, budgets)
    return not isinstance(decided, EvictionAllowed) or decided.spends is not None


def _split_waves(
    tier: Sequence[DrainPod],
    spends: Mapping[tuple[str, str], Sequence[_BudgetName]],
    allowed: Mapping[_BudgetName, int],
) -> Iterator[Sequence[DrainPod]]:
    """Waves in the order of the pods: each takes a pod if all its budgets still allow it."""
    groups: dict[tuple[_BudgetName, ...], deque[tuple[int, DrainPod]]] = {}
    for place, pod in enumerate(tier):
        groups.setdefault(tuple(spends.get(pod_name(pod), ())), deque()).append((place, pod))
    while groups:
        yield _take_wave(groups, allowed)
        groups = {budgets: pods for budgets, pods in groups.items() if pods}


def _take_wave(
    groups: Mapping[tuple[_BudgetName, ...], deque[tuple[int, DrainPod]]], allowed: Mapping[_BudgetName, int]
) -> Sequence[DrainPod]:
    """The pods of the next wave, taken from the groups: pods with the same budgets, with their places in the tier.

    Only the first pod of a group is looked at: a wave costs the same whether 5 or 5,000 pods wait for its budgets.
    """
    used: Counter[_BudgetName] = Counter()
    wave: list[DrainPod] = []
    heads = [(pods[0][0], budgets) for budgets, pods in groups.items()]
    heapify(heads)
    while heads:
        _, budgets = heappop(heads)
        if any(used[name] >= allowed[name] for name in budgets):
            continue
        pods = groups[budgets]
        wave.append(pods.popleft()[1])
        used.update(budgets)
        if pods:
            heappush(heads, (pods[0][0], budgets))
    return wave


def _budget_name(budget: Budget) -> _BudgetName:
    return budget.metadata.namespace, budget.metadata.name
