"""How a workload gets one more pod, so that its budget lets one go (pure).

Three ways, of which the first that is possible is taken:

1. A Deployment whose rollouts lose no pod (maxUnavailable resolves to 0) is restarted, as ``kubectl rollout restart`` does
   it: the new pod is ready before the old one ends, and nothing has to be put back. Only for one replica: a rollout
   replaces all pods.
2. An autoscaler of the workload gets a higher minReplicas.
3. The workload gets one more replica.

A workload of which two pods must never run at a time is left alone: a StatefulSet, and a Deployment with the strategy
Recreate or without surge.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from lastcall.model.budgets import Budget
from lastcall.model.surge_facts import Autoscaler, SurgeableWorkload, find_autoscaler, resolve_floor

SURGEABLE_KINDS = ("Deployment", "ReplicaSet", "ReplicationController")


class SurgeMethod(Enum):
    """What is changed."""

    RESTART = "Restart"
    MIN_REPLICAS = "MinReplicas"
    REPLICAS = "Replicas"


class SurgeChoice(NamedTuple):
    """The method and the object that it changes; ``autoscaler`` is the one that is changed instead of the workload."""

    method: SurgeMethod
    workload: SurgeableWorkload
    autoscaler: Autoscaler | None = None

    @property
    def subject(self) -> SurgeableWorkload | Autoscaler:
        """The object that is changed."""
        return self.autoscaler or self.workload


class SurgeImpossible(NamedTuple):
    """Why one more pod cannot run, or would not help, and what a person can do instead."""

    why: str
    mend: str


def choose_surge(
    workload: SurgeableWorkload, budgets: Sequence[Budget], autoscalers: Iterable[Autoscaler] = ()
) -> SurgeChoice | SurgeImpossible:
    """How the workload gets one more pod. ``budgets`` are those that cover the blocked pod."""
    if obstacle := _find_obstacle(workload):
        return obstacle
    if _restart_loses_no_pod(workload):
        return SurgeChoice(SurgeMethod.RESTART, workload)
    if obstacle := next(filter(None, (_find_useless_surge(workload, one) for one in budgets)), None):
        return obstacle
    autoscaler = find_autoscaler(workload, tuple(autoscalers))
    if autoscaler is None:
        return SurgeChoice(SurgeMethod.REPLICAS, workload)
    if autoscaler.spec.max_replicas <= workload.spec.replicas:
        return SurgeImpossible(
            f"{autoscaler.title} allows no more than {autoscaler.spec.max_replicas} replicas",
            f"raise maxReplicas of {autoscaler.title}",
        )
    return SurgeChoice(SurgeMethod.MIN_REPLICAS, workload, autoscaler)


def _find_obstacle(workload: SurgeableWorkload) -> SurgeImpossible | None:
    by_hand = f"end the pod of {workload.title} by hand when its application can be without it"
    if workload.kind not in SURGEABLE_KINDS:
        return SurgeImpossible(f"{workload.title} cannot have one more pod for a time", by_hand)
    if workload.metadata.deletion_timestamp is not None or not workload.spec.replicas:
        return SurgeImpossible(f"{workload.title} is being removed", "wait until its pods have ended")
    if workload.kind != "Deployment":
        return None
    if workload.spec.paused:
        return SurgeImpossible(f"{workload.title} is paused", f"kubectl rollout resume {_kubectl_name(workload)}")
    if workload.spec.strategy.type == "Recreate":
        return SurgeImpossible(
            f"{workload.title} has the strategy Recreate: no two of its pods may run at a time", by_hand
        )
    try:
        pods_above, _ = workload.resolve_update_limits()
    except ValueError as error:
        return SurgeImpossible(f"{workload.title}: strategy: {error}", "mend maxSurge and maxUnavailable")
    if not pods_above:
        return SurgeImpossible(f"{workload.title} has maxSurge 0: it may have no more pods for a time", by_hand)
    return None


def _kubectl_name(workload: SurgeableWorkload) -> str:
    return f"{workload.kind.lower()}/{workload.metadata.name} -n {workload.metadata.namespace}"


def _restart_loses_no_pod(workload: SurgeableWorkload) -> bool:
    if workload.kind != "Deployment" or workload.spec.replicas != 1:
        return False
    return not workload.resolve_update_limits()[1]


def _find_useless_surge(workload: SurgeableWorkload, budget: Budget) -> SurgeImpossible | None:
    """Why the budget would still allow nothing; it may cover pods of other workloads, whose number is not changed."""
    expected = max(budget.status.expected_pods, workload.spec.replicas)
    try:
        floor = resolve_floor(budget.spec.min_available, budget.spec.max_unavailable, expected + 1)
    except ValueError:
        return None
    if floor <= expected:
        return None
    name = f"PodDisruptionBudget {budget.metadata.namespace}/{budget.metadata.name}"
    return SurgeImpossible(f"{name} wants all {expected + 1} pods healthy with one more replica too", f"change {name}")
