"""Taints a new node so that it gets no pods until it is ready (``TaintNodesByCondition``)."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.admission.default_tolerations import NOT_READY


class NodeTaints(AdmissionPlugin):
    """Handles new nodes."""

    sees = ("nodes",)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Adds the taint if it is absent."""
        node = attributes.obj
        if attributes.operation != "CREATE" or not node:
            return
        spec = node.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
