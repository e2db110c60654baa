"""Pods stay for five minutes on a node that is in trouble, unless they say otherwise (``DefaultTolerationSeconds``)."""

from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.request import Object

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SECONDS = 300


class DefaultTolerations(Plugin):
    """Sees pods."""

    sees = ("pods",)

    async def mutate(self, attributes: Attributes) -> None:
        """Adds the two tolerations."""
        if attributes.subresource or attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        present = spec.get("tolerations") or []
        for taint in (NOT_READY, UNREACHABLE):
            if not any(_covers(toleration, taint) for toleration in present):
                toleration = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}
                present = [*present, toleration]
        spec["tolerations"] = present


def _covers(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")
