"""PodDisruptionBudgets: which pod may be evicted now, which may not and why, and what an eviction spends.

The rules and the words are those of the API server's eviction subresource (pkg/registry/core/pod/storage/eviction.go).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from lastcall.model.base import Facts
from lastcall.model.label_selector import selector_matcher
from lastcall.model.pods import Int32, Int64, ObjectMetadata, Pod, StatusCondition

ALWAYS_ALLOW = "AlwaysAllow"
"""The unhealthyPodEvictionPolicy (KEP-3017) by which no budget protects a pod that is not ready."""

STALE_SECONDS = 10
"""When to ask again if the disruption controller has not seen the budget's latest version yet."""

MOST_DISRUPTED = 2000
"""A budget with more evicted pods than this that the disruption controller has not seen going allows no more."""

SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


class BudgetSpec(Facts, frozen=True):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Facts, frozen=True):
    """policy/v1 PodDisruptionBudgetStatus; ``disrupted_pods`` has the times of evictions by pod."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: tuple[StatusCondition, ...] | None = None

    @property
    def blocking_condition(self) -> StatusCondition | None:
        """The condition by which the disruption controller says why nothing is allowed, if it has words for it."""
        found = next((one for one in self.conditions or () if one.type == "DisruptionAllowed"), None)
        return found if found and found.status == "False" and found.message else None


class Budget(Facts, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: ObjectMetadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def covers(self, pod: Pod) -> bool:
        """Whether the pod is one of the budget's; without a selector, or with one that makes no sense, it has none."""
        if self.metadata.namespace != pod.metadata.namespace:
            return False
        try:
            return selector_matcher(self.spec.selector)(pod.metadata.labels or {})
        except ValueError:
            return False


class EvictionObstacle(Enum):
    """Why a pod may not be evicted now."""

    SEVERAL = "several budgets cover the pod, which evictions do not support"
    STALE = "the budget's status is older than its spec"
    NEGATIVE = "the budget allows less than no disruption"
    UNCONFIRMED = "too many evictions have not been seen by the disruption controller"
    SPENT = "the budget allows no disruption now"


@dataclass(frozen=True)
class EvictionAllowed:
    """The pod may be evicted. ``spends`` is the budget that pays for it: none if no pod counts that is lost.

    ``exempted_by`` is the budget that lets the pod go because it is unhealthy: the eviction must fail if the pod has
    changed since, for it may have become healthy.
    """

    spends: Budget | None = None
    exempted_by: Budget | None = None


@dataclass(frozen=True)
class EvictionRefused:
    """The pod may not be evicted now. ``cause`` says what one budget lacks, in the API server's words."""

    why: EvictionObstacle
    budgets: Sequence[Budget]
    cause: str = ""


def decide_eviction(pod: Pod, budgets: Iterable[Budget]) -> EvictionAllowed | EvictionRefused:
    """Whether the pod may be evicted now; ``budgets`` may hold others than its own."""
    if is_unprotected(pod):
        return EvictionAllowed()
    own = [budget for budget in budgets if budget.covers(pod)]
    if len(own) > 1:
        return EvictionRefused(EvictionObstacle.SEVERAL, own)
    if not own:
        return EvictionAllowed()
    if _is_harmless(pod, own[0]):
        return EvictionAllowed(exempted_by=own[0])
    return _budget_refusal(own[0]) or EvictionAllowed(spends=own[0])


def is_unprotected(pod: Pod) -> bool:
    """Whether no budget is asked: pods that have not begun, have finished or are being deleted serve nobody."""
    return pod.is_finished or pod.status.phase == "Pending" or pod.metadata.deletion_timestamp is not None


def is_ready(pod: Pod) -> bool:
    """What budgets call healthy: the pod's condition Ready is True."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def spend_disruption(budget: Budget, pod: str, at: str) -> Budget:
    """The budget after an eviction of ``pod`` at the time ``at`` (RFC 3339): one less, and the pod is remembered.

    The disruption controller counts remembered pods as gone, until it has seen them go or two minutes have passed.
    """
    status = budget.status
    disrupted = {**(status.disrupted_pods or {}), pod: at}
    after = msgspec.structs.replace(
        status, disruptions_allowed=status.disruptions_allowed - 1, disrupted_pods=disrupted
    )
    return msgspec.structs.replace(budget, status=after)


def stale_refusal(budget: Budget) -> EvictionRefused:
    """The refusal that asks the client to come back when the status of the budget is up to date."""
    cause = f"The disruption budget {budget.metadata.name} is still being processed by the server."
    return EvictionRefused(EvictionObstacle.STALE, [budget], cause)


def _is_harmless(pod: Pod, budget: Budget) -> bool:
    """Whether the pod is unhealthy, so that it does not count, and its budget lets such a pod go."""
    if is_ready(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0


def _budget_refusal(budget: Budget) -> EvictionRefused | None:
    status = budget.status
    if status.observed_generation < budget.metadata.generation:
        return stale_refusal(budget)
    if status.disruptions_allowed < 0:
        return EvictionRefused(EvictionObstacle.NEGATIVE, [budget], "pdb disruptions allowed is negative")
    if len(status.disrupted_pods or {}) > MOST_DISRUPTED:
        cause = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        return EvictionRefused(EvictionObstacle.UNCONFIRMED, [budget], cause)
    return None if status.disruptions_allowed else EvictionRefused(EvictionObstacle.SPENT, [budget], _lack_text(budget))


def _lack_text(budget: Budget) -> str:
    """What is missing; if the controller could not count, its numbers mean nothing and its own words are told."""
    status, begin = budget.status, f"The disruption budget {budget.metadata.name}"
    said = status.blocking_condition
    if said and said.reason == "SyncFailed":
        return f"{begin} does not allow evicting pods currently because it failed sync: {said.message}"
    if status.current_healthy <= status.desired_healthy:
        return f"{begin} needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    if said:
        return f"{begin} does not allow evicting pods currently ({said.reason}): {said.message}"
    return f"{begin} does not allow evicting pods currently"
