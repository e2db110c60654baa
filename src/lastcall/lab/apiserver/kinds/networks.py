"""NetworkPolicies and HorizontalPodAutoscalers, of which nothing in the lab takes notice."""

from collections.abc import Iterable, Iterator

from lastcall.lab.apiserver import fields
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.label_selectors import validate_selector
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause


class NetworkPolicy(Behaviour):
    """Which pods may speak with which."""

    has_generation = True

    def default(self, obj: Object) -> None:
        """About what comes in, and about what goes out if there are rules for that."""
        spec = rules.part(obj, "spec")
        rules.part(spec, "podSelector")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
            for port in rule.get("ports") or ():
                rules.fill(port, protocol="TCP")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Part of ``ValidateNetworkPolicySpec``: selectors and types."""
        spec = obj["spec"]
        yield from validate_selector(spec["podSelector"], "spec.podSelector")
        for index, kind in enumerate(spec["policyTypes"]):
            yield from rules.one_of(kind, f"spec.policyTypes[{index}]", "Egress", "Ingress")


class HorizontalPodAutoscaler(Behaviour):
    """How many replicas there should be by load."""

    has_status = True
    status_keeps = ()

    def default(self, obj: Object) -> None:
        """At least one replica, by 80% of CPU."""
        spec = rules.fill(rules.part(obj, "spec"), minReplicas=1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        rules.fill(rules.part(obj, "status"), desiredReplicas=0, currentMetrics=None)

    def prepare_create(self, obj: Object) -> None:
        """Nothing has been measured."""
        obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """Part of ``validateHorizontalPodAutoscalerSpec``: the limits and the target."""
        spec = obj["spec"]
        least, most = spec["minReplicas"], spec.get("maxReplicas") or 0
        if least < 1:
            yield fields.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
        if most < 1:
            yield fields.invalid("spec.maxReplicas", most, "must be greater than 0")
        if most < least:
            yield fields.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
        yield from _check_target(spec.get("scaleTargetRef") or {})


def _check_target(target: Object) -> Iterator[Cause]:
    for name in ("kind", "name"):
        if not target.get(name):
            yield fields.required(f"spec.scaleTargetRef.{name}")
