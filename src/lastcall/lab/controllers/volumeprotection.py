"""Claims that pods use, and volumes that claims have, are not removed (``pvcprotection``, ``pvprotection``)."""

from collections.abc import Iterable, Sequence

from lastcall.lab.controllers import finalizers
from lastcall.lab.controllers import volume_match as match
from lastcall.lab.controllers.actions import Decision
from lastcall.lab.controllers.view import Object, Ref, View, claims, ref

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"


class ClaimProtection:
    """Takes the finalizer off a claim that is being deleted when no pod that has a node names it, finished or not."""

    name = "pvc-protection"
    resources: Sequence[str] = (match.CLAIMS, "pods")

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The claim, or those of a pod."""
        if resource == match.CLAIMS:
            return [ref(resource, obj)]
        return [Ref(match.CLAIMS, obj["metadata"]["namespace"], name) for name in claims(obj)]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """One that is not being deleted has the finalizer."""
        claim = view.get(*key)
        if claim is None:
            return Decision()
        if not claim["metadata"].get("deletionTimestamp"):
            return Decision(finalizers.add(match.CLAIMS, claim, CLAIM_FINALIZER))
        used = any(pod["spec"].get("nodeName") for pod in view.claiming(key.namespace, key.name))
        return Decision(() if used else finalizers.remove(match.CLAIMS, claim, CLAIM_FINALIZER))


class VolumeProtection:
    """Takes the finalizer off a volume that is being deleted when no claim has it."""

    name = "pv-protection"
    resources: Sequence[str] = (match.VOLUMES,)

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The volume."""
        return [ref(resource, obj)]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """One that is not being deleted has the finalizer."""
        volume = view.get(*key)
        if volume is None:
            return Decision()
        if not volume["metadata"].get("deletionTimestamp"):
            return Decision(finalizers.add(match.VOLUMES, volume, VOLUME_FINALIZER))
        bound = (volume.get("status") or {}).get("phase") == "Bound"
        return Decision(() if bound else finalizers.remove(match.VOLUMES, volume, VOLUME_FINALIZER))
