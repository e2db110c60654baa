"""A new node takes no pods until somebody finds it ready (``TaintNodesByCondition``)."""

from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.admission.tolerations import NOT_READY


class NodeTaints(Plugin):
    """Sees new nodes."""

    sees = ("nodes",)

    async def mutate(self, attributes: Attributes) -> None:
        """Adds the taint, if it is not there."""
        node = attributes.obj
        if attributes.operation != "CREATE" or not node:
            return
        spec = node.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]
