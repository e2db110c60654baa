"""StatefulSets and ControllerRevisions (``pkg/apis/apps``, ``pkg/registry/apps/statefulset``)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.persistent_volumes import set_claim_defaults
from lastcall_lab.apiserver.kinds.workloads import (
    TOO_MANY,
    BaseWorkloadKind,
    check_owned_selector,
    check_restart_policy,
    check_selector_match,
    check_template,
)
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_RIGID = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetKind(BaseWorkloadKind):
    """Pods with stable names and volumes."""

    empty_status: ClassVar[Object] = {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Object) -> None:
        """Pod management OrderedReady; claims are retained."""
        super().default(obj)
        spec = common_rules.fill_missing(
            obj["spec"], replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady"
        )
        common_rules.fill_missing(
            common_rules.sub_object(spec, "persistentVolumeClaimRetentionPolicy"),
            whenDeleted="Retain",
            whenScaled="Retain",
        )
        spec.setdefault("serviceName", "")
        strategy = common_rules.sub_object(spec, "updateStrategy")
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            common_rules.fill_missing(common_rules.sub_object(strategy, "rollingUpdate"), partition=0)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
            set_claim_defaults(claim)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateStatefulSetSpec``."""
        spec = obj["spec"]
        policy = spec["podManagementPolicy"]
        if policy not in ("OrderedReady", "Parallel"):
            why = "must be 'OrderedReady' or 'Parallel'"
            yield field_errors.invalid("spec.podManagementPolicy", policy, why)
        yield from _strategy(spec["updateStrategy"])
        yield from _retention(spec["persistentVolumeClaimRetentionPolicy"])
        yield from common_rules.check_not_negative(spec, "spec", "replicas", "minReadySeconds")
        yield from common_rules.check_not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
        yield from check_owned_selector(spec, "invalid for statefulset")
        yield from check_selector_match(spec)
        yield from check_template(_with_claims(spec))
        yield from check_restart_policy(spec)
        deadline = spec["template"]["spec"].get("activeDeadlineSeconds")
        if deadline is not None:
            why = "activeDeadlineSeconds in StatefulSet is not Supported"
            yield field_errors.forbidden("spec.template.spec.activeDeadlineSeconds", why)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """Most fields are immutable (``ValidateStatefulSetUpdate``)."""
        yield from self.validate(new)
        after, before = ({k: v for k, v in one["spec"].items() if k not in _CHANGEABLE} for one in (new, old))
        if after != before:
            yield field_errors.forbidden("spec", _RIGID)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateStatefulSetStatus``."""
        names = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        yield from self.counts(new, old, "replicas", *names, "observedGeneration")
        status = new.get("status") or {}
        yield from common_rules.check_at_most(status, "status", "replicas", TOO_MANY, *names)
        why = "cannot be greater than status.readyReplicas"
        yield from common_rules.check_at_most(status, "status", "readyReplicas", why, "availableReplicas")


class ControllerRevisionKind(KindBehaviour):
    """A recorded template of a StatefulSet or DaemonSet."""

    def default(self, obj: Object) -> None:
        """``revision`` is always present."""
        common_rules.fill_missing(obj, revision=0)

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateControllerRevision``."""
        if obj.get("data") is None:
            yield field_errors.value_required("data", "data is mandatory")
        if obj["revision"] < 0:
            yield field_errors.invalid("revision", obj["revision"], common_rules.NOT_NEGATIVE)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``data`` is immutable."""
        yield from self.validate(new)
        yield from common_rules.check_immutable(new, old, "", "data")


def _strategy(strategy: Object) -> Iterator[Cause]:
    path, rolling = "spec.updateStrategy", strategy.get("rollingUpdate")
    if strategy["type"] == "OnDelete":
        if rolling is not None:
            yield field_errors.invalid(
                f"{path}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'"
            )
    elif strategy["type"] != "RollingUpdate":
        said = {"Type": strategy["type"], "RollingUpdate": rolling}
        yield field_errors.invalid(path, said, "must be 'RollingUpdate' or 'OnDelete'")
    else:
        yield from common_rules.check_not_negative(rolling or {}, f"{path}.rollingUpdate", "partition")
        yield from _unavailable((rolling or {}).get("maxUnavailable"), f"{path}.rollingUpdate.maxUnavailable")


def _unavailable(value: object, path: str) -> Iterator[Cause]:
    yield from common_rules.check_number_or_percent(value, path)
    if value is not None and common_rules.is_zero(value):
        yield field_errors.invalid(path, value, "cannot be 0")
    yield from common_rules.check_at_most_all(value, path)


def _retention(policy: Object) -> Iterator[Cause]:
    for name in ("whenDeleted", "whenScaled"):
        yield from common_rules.check_one_of(
            policy.get(name), f"spec.persistentVolumeClaimRetentionPolicy.{name}", "Delete", "Retain"
        )


def _with_claims(spec: Object) -> Object:
    """The template with the volumes from the claim templates."""
    claims = [claim.get("metadata", {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    pod = spec["template"]["spec"]
    own = [one for one in pod.get("volumes") or () if one.get("name") not in claims]
    more = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {**spec["template"], "spec": {**pod, "volumes": [*own, *more]}} if claims else spec["template"]
