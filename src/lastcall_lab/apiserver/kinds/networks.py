"""NetworkPolicies and HorizontalPodAutoscalers, which the lab stores and does not implement."""

from collections.abc import Iterable, Iterator

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


class NetworkPolicyKind(KindBehaviour):
    """The allowed traffic between pods."""

    has_generation = True

    def default(self, obj: Object) -> None:
        """Type Ingress, and Egress if it has egress rules."""
        spec = common_rules.sub_object(obj, "spec")
        common_rules.sub_object(spec, "podSelector")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
            for port in rule.get("ports") or ():
                common_rules.fill_missing(port, protocol="TCP")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Selectors and types of ``ValidateNetworkPolicySpec``."""
        spec = obj["spec"]
        yield from validate_selector(spec["podSelector"], "spec.podSelector")
        for index, kind in enumerate(spec["policyTypes"]):
            yield from common_rules.check_one_of(kind, f"spec.policyTypes[{index}]", "Egress", "Ingress")


class HorizontalPodAutoscalerKind(KindBehaviour):
    """The wanted number of replicas by load."""

    has_status = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """Minimum one replica; metric CPU at 80%."""
        spec = common_rules.fill_missing(common_rules.sub_object(obj, "spec"), minReplicas=1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        common_rules.fill_missing(common_rules.sub_object(obj, "status"), desiredReplicas=0, currentMetrics=None)

    def prepare_create(self, obj: Object) -> None:
        """Clears the status."""
        obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Bounds and target of ``validateHorizontalPodAutoscalerSpec``."""
        spec = obj["spec"]
        least, most = spec["minReplicas"], spec.get("maxReplicas") or 0
        if least < 1:
            yield field_errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
        if most < 1:
            yield field_errors.invalid("spec.maxReplicas", most, "must be greater than 0")
        if most < least:
            yield field_errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
        yield from _check_target(spec.get("scaleTargetRef") or {})


def _check_target(target: Object) -> Iterator[Cause]:
    for name in ("kind", "name"):
        if not target.get(name):
            yield field_errors.value_required(f"spec.scaleTargetRef.{name}")
