"""Prevents the removal of claims in use and of bound volumes (``pvcprotection``, ``pvprotection``)."""

from collections.abc import Iterable, Sequence

from lastcall_lab.controllers.framework.actions import Decision
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, claim_names_of, ref_of
from lastcall_lab.controllers.objects import finalizers
from lastcall_lab.controllers.volumes import volume_matching as match

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"


class ClaimProtectionController:
    """Removes the finalizer of a claim being deleted when no scheduled pod, finished or not, uses it."""

    name = "pvc-protection"
    resources: Sequence[str] = (match.CLAIMS, "pods")

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The claim, or the claims of a pod."""
        if resource == match.CLAIMS:
            return [ref_of(resource, obj)]
        return [ObjectRef(match.CLAIMS, obj["metadata"]["namespace"], name) for name in claim_names_of(obj)]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Adds the finalizer to a claim that is not being deleted."""
        claim = view.get(*key)
        if claim is None:
            return Decision()
        if not claim["metadata"].get("deletionTimestamp"):
            return Decision(finalizers.add_finalizer(match.CLAIMS, claim, CLAIM_FINALIZER))
        used = any(pod["spec"].get("nodeName") for pod in view.pods_of_claim(key.namespace, key.name))
        return Decision(() if used else finalizers.remove_finalizer(match.CLAIMS, claim, CLAIM_FINALIZER))


class VolumeProtectionController:
    """Removes the finalizer of a volume being deleted when no claim is bound to it."""

    name = "pv-protection"
    resources: Sequence[str] = (match.VOLUMES,)

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The volume."""
        return [ref_of(resource, obj)]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Adds the finalizer to a volume that is not being deleted."""
        volume = view.get(*key)
        if volume is None:
            return Decision()
        if not volume["metadata"].get("deletionTimestamp"):
            return Decision(finalizers.add_finalizer(match.VOLUMES, volume, VOLUME_FINALIZER))
        bound = (volume.get("status") or {}).get("phase") == "Bound"
        return Decision(() if bound else finalizers.remove_finalizer(match.VOLUMES, volume, VOLUME_FINALIZER))
