"""PodDisruptionBudgets: which pod may be evicted now, why another may not, and what an eviction consumes (pure).

The rules and the messages are those of the API server's eviction subresource
(pkg/registry/core/pod/storage/eviction.go).
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
"""The unhealthyPodEvictionPolicy (KEP-3017) under which no budget protects a pod that is not ready."""

STALE_SECONDS = 10
"""Seconds until a retry if the disruption controller has not yet observed the budget's latest version."""

MOST_DISRUPTED = 2000
"""A budget with more evicted pods that the disruption controller has not yet seen end allows no more."""

SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
NEGATIVE = "pdb disruptions allowed is negative"
UNCONFIRMED = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
"""These two with code 403, though they pass when the disruption controller has caught up."""
VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


class BudgetSpec(Facts, frozen=True):
    """policy/v1 PodDisruptionBudgetSpec."""

    selector: dict[str, Any] | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Facts, frozen=True):
    """policy/v1 PodDisruptionBudgetStatus; ``disrupted_pods`` maps pod names to the times of their evictions."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: tuple[StatusCondition, ...] | None = None

    @property
    def blocking_condition(self) -> StatusCondition | None:
        """The condition in which the disruption controller explains why it allows no eviction, if it has a message."""
        found = next((one for one in self.conditions or () if one.type == "DisruptionAllowed"), None)
        return found if found and found.status == "False" and found.message else None


class Budget(Facts, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    metadata: ObjectMetadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def covers(self, pod: Pod) -> bool:
        """Whether the budget covers the pod. A budget without a selector, or with an invalid one, covers none."""
        if self.metadata.namespace != pod.metadata.namespace:
            return False
        try:
            return selector_matcher(self.spec.selector)(pod.metadata.labels or {})
        except ValueError:
            return False


class EvictionObstacle(Enum):
    """Why a pod cannot be evicted now."""

    SEVERAL = "several budgets cover the pod, which evictions do not support"
    STALE = "the budget's status is older than its spec"
    NEGATIVE = "the budget allows less than no disruption"
    UNCONFIRMED = "too many evictions have not been seen by the disruption controller"
    SPENT = "the budget allows no disruption now"


@dataclass(frozen=True)
class EvictionAllowed:
    """The pod may be evicted. ``spends`` is the budget that it is charged to; None if its loss counts in no budget.

    ``exempted_by`` is the budget that permits the eviction because the pod is unhealthy. The eviction must then fail if
    the pod has changed since, because it may have become healthy.
    """

    spends: Budget | None = None
    exempted_by: Budget | None = None


@dataclass(frozen=True)
class EvictionRefused:
    """The pod cannot be evicted now. ``cause`` is what one budget lacks, in the API server's words."""

    why: EvictionObstacle
    budgets: Sequence[Budget]
    cause: str = ""


def decide_eviction(pod: Pod, budgets: Iterable[Budget]) -> EvictionAllowed | EvictionRefused:
    """Whether the pod may be evicted now; ``budgets`` may include budgets that do not cover it."""
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
    """Whether budgets do not apply: the pod has not started, has finished or is being deleted."""
    return pod.is_finished or pod.status.phase == "Pending" or pod.metadata.deletion_timestamp is not None


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition Ready is True, which budgets call healthy."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def spend_disruption(budget: Budget, pod: str, at: str) -> Budget:
    """The budget after an eviction of ``pod`` at ``at`` (RFC 3339): one disruption less, and the pod is recorded.

    The disruption controller counts recorded pods as gone until it observes their end, or for two minutes.
    """
    status = budget.status
    disrupted = {**(status.disrupted_pods or {}), pod: at}
    after = msgspec.structs.replace(
        status, disruptions_allowed=status.disruptions_allowed - 1, disrupted_pods=disrupted
    )
    return msgspec.structs.replace(budget, status=after)


def stale_refusal(budget: Budget) -> EvictionRefused:
    """The refusal that asks the client to retry when the budget's status is up to date."""
    cause = f"The disruption budget {budget.metadata.name} is still being processed by the server."
    return EvictionRefused(EvictionObstacle.STALE, [budget], cause)


def _is_harmless(pod: Pod, budget: Budget) -> bool:
    """Whether the pod is unhealthy, so that it does not count, and its budget permits the eviction of such pods."""
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
        return EvictionRefused(EvictionObstacle.NEGATIVE, [budget], NEGATIVE)
    if len(status.disrupted_pods or {}) > MOST_DISRUPTED:
        return EvictionRefused(EvictionObstacle.UNCONFIRMED, [budget], UNCONFIRMED)
    return None if status.disruptions_allowed else EvictionRefused(EvictionObstacle.SPENT, [budget], _lack_text(budget))


def _lack_text(budget: Budget) -> str:
    """What the budget lacks. If the controller could not compute its numbers, its own message is used instead."""
    status, begin = budget.status, f"The disruption budget {budget.metadata.name}"
    said = status.blocking_condition
    if said and said.reason == "SyncFailed":
        return f"{begin} does not allow evicting pods currently because it failed sync: {said.message}"
    if status.current_healthy <= status.desired_healthy:
        return f"{begin} needs {status.desired_healthy} healthy pods and has {status.current_healthy} currently"
    if said:
        return f"{begin} does not allow evicting pods currently ({said.reason}): {said.message}"
    return f"{begin} does not allow evicting pods currently"
