"""Default tolerations: pods stay five minutes on a not-ready or unreachable node (``DefaultTolerationSeconds``)."""

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.values.request import Object

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SECONDS = 300


class DefaultTolerations(AdmissionPlugin):
    """Handles pods."""

    sees = ("pods",)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Adds the two tolerations unless the pod has its own."""
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
