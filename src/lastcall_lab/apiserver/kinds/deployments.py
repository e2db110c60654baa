"""Deployments and ReplicaSets (``pkg/apis/apps/v1/defaults.go``, ``pkg/apis/apps/validation``)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.workloads import (
    TOO_MANY,
    BaseWorkloadKind,
    check_owned_selector,
    check_replica_template,
)
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_EMPTY = "invalid for deployment"


class DeploymentKind(BaseWorkloadKind):
    """Replaces its pods gradually when the template changes."""

    status_keeps = ("labels",)

    def default(self, obj: Object) -> None:
        """One replica, rolling update by 25%, ten old revisions, a progress deadline of ten minutes."""
        super().default(obj)
        spec = common_rules.fill_missing(obj["spec"], replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        strategy = common_rules.sub_object(spec, "strategy")
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            common_rules.fill_missing(
                common_rules.sub_object(strategy, "rollingUpdate"), maxUnavailable="25%", maxSurge="25%"
            )

    def generation_source(self, obj: Object) -> object:
        """Includes annotations, because they are copied to ReplicaSets."""
        return obj["spec"], obj["metadata"].get("annotations")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateDeploymentSpec``."""
        spec = obj["spec"]
        yield from common_rules.check_not_negative(spec, "spec", "replicas")
        yield from check_owned_selector(spec, _EMPTY)
        yield from check_replica_template(spec)
        yield from check_strategy(spec["strategy"], "spec.strategy")
        yield from common_rules.check_not_negative(
            spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
        )
        deadline = spec["progressDeadlineSeconds"]
        if deadline <= (spec.get("minReadySeconds") or 0):
            yield field_errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateDeploymentStatus``."""
        names = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        yield from self.counts(new, old, *names, "unavailableReplicas", "terminatingReplicas")
        status = new.get("status") or {}
        yield from common_rules.check_at_most(
            status, "status", "replicas", TOO_MANY, "updatedReplicas", "readyReplicas", "availableReplicas"
        )
        why = "cannot be greater than readyReplicas"
        yield from common_rules.check_at_most(status, "status", "readyReplicas", why, "availableReplicas")


class ReplicaSetKind(BaseWorkloadKind):
    """Maintains a number of pods."""

    empty_status: ClassVar[Object] = {"replicas": 0}

    def default(self, obj: Object) -> None:
        """One replica."""
        super().default(obj)
        common_rules.fill_missing(obj["spec"], replicas=1)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateReplicaSetSpec``."""
        spec = obj["spec"]
        yield from common_rules.check_not_negative(spec, "spec", "replicas", "minReadySeconds")
        yield from check_owned_selector(spec, _EMPTY)
        yield from check_replica_template(spec)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateReplicaSetStatus``."""
        names = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        yield from self.counts(new, old, "replicas", *names, "terminatingReplicas", "observedGeneration")
        status = new.get("status") or {}
        yield from common_rules.check_at_most(status, "status", "replicas", TOO_MANY, *names)
        why = "cannot be greater than readyReplicas"
        yield from common_rules.check_at_most(status, "status", "readyReplicas", why, "availableReplicas")

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The number of pods."""
        return {"status.replicas": str((obj.get("status") or {}).get("replicas") or 0)}


def check_strategy(strategy: Object, path: str) -> Iterator[Cause]:
    """``ValidateDeploymentStrategy``."""
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield field_errors.forbidden(f"{path}.rollingUpdate", why)
    elif strategy["type"] != "RollingUpdate":
        said = {"Type": strategy["type"], "RollingUpdate": rolling}
        yield field_errors.not_supported(path, said, ["Recreate", "RollingUpdate"])
    else:
        yield from _rolling(rolling or {}, f"{path}.rollingUpdate")


def _rolling(rolling: Object, path: str) -> Iterator[Cause]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    yield from common_rules.check_number_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from common_rules.check_number_or_percent(surge, f"{path}.maxSurge")
    if common_rules.is_zero(unavailable) and common_rules.is_zero(surge):
        yield field_errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from common_rules.check_at_most_all(unavailable, f"{path}.maxUnavailable")
