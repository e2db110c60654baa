"""Binds claims to volumes (``k8s.io/kubernetes/pkg/controller/volume/persistentvolume``).

A binding takes four writes, and a crash can follow each of them; the next decision finds and makes the missing ones.
Only the provisioner of a class creates and deletes volumes, never this controller.
"""

from collections.abc import Iterable, Iterator, Sequence

from lastcall_lab.controllers.framework.actions import Action, Decision, PatchObject, RecordEvent
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, claim_names_of, ref_of
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.volumes import volume_matching as match

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class VolumeBinderController:
    """Reconciles a claim or a volume when it or a dependency changes. Remembers its last event for each."""

    name = "persistentvolume-binder"
    resources: Sequence[str] = (match.CLAIMS, match.VOLUMES, match.CLASSES, "pods")

    def __init__(self) -> None:
        self._said: dict[ObjectRef, str] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """A claim affects its volume; a volume affects the claims that it is reserved for or could bind to."""
        if resource == "pods":
            return (
                []
                if obj["spec"].get("nodeName")
                else [ObjectRef(match.CLAIMS, obj["metadata"]["namespace"], name) for name in claim_names_of(obj)]
            )
        if resource == match.CLAIMS:
            named = obj["spec"].get("volumeName") or f"pvc-{obj['metadata']['uid']}"
            return [ref_of(resource, obj), ObjectRef(match.VOLUMES, "", named)]
        own = [ref_of(resource, obj)] if resource == match.VOLUMES else []
        reference = obj.get("spec", {}).get("claimRef")
        if reference:
            return [*own, ObjectRef(match.CLAIMS, reference["namespace"], reference["name"])]
        waiting = (one for one in view.all(match.CLAIMS) if not match.annotation_of(one, match.BIND_COMPLETED))
        return [*own, *(ref_of(match.CLAIMS, one) for one in waiting)]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The next write, or an event."""
        obj = view.get(*key)
        if obj is None:
            self._said.pop(key, None)
            return Decision()
        if key.resource == match.VOLUMES:
            return Decision(tuple(_phase_patches(key, obj, _desired_volume_phase(obj, view))))
        if match.annotation_of(obj, match.BIND_COMPLETED):
            return Decision(tuple(self._decide_bound(key, obj, view)))
        return Decision(tuple(self._decide_unbound(key, obj, view)))

    def _decide_unbound(self, key: ObjectRef, claim: Object, view: View) -> Iterable[Action]:
        wanted = claim["spec"].get("volumeName")
        if not wanted:
            volume = match.best_volume(claim, view)
            if volume and (match.refers_to_claim(volume, claim) or not match.is_binding_delayed(claim, view)):
                return _bind_step(key, claim, volume)
            return self._decide_unmet(key, claim, view)
        volume = view.get(match.VOLUMES, "", wanted)
        if volume is None:
            return ()
        if volume["spec"].get("claimRef"):
            if match.refers_to_claim(volume, claim):
                return _bind_step(key, claim, volume)
            said = f'volume "{wanted}" already bound to a different claim.'
            return self._report_once(key, claim, "FailedBinding", said, kind="Warning")
        if why := match.unsuitable_reason(volume, claim):
            said = f'Cannot bind to requested volume "{wanted}": {why}'
            return self._report_once(key, claim, "VolumeMismatch", said, kind="Warning")
        return _bind_step(key, claim, volume)

    def _decide_unmet(self, key: ObjectRef, claim: Object, view: View) -> Iterable[Action]:
        """No volume fits: the claim waits for its first consumer, or a provisioner is asked for a volume."""
        found = match.storage_class_of(claim, view)
        if match.is_binding_delayed(claim, view) and not match.annotation_of(claim, match.SELECTED_NODE):
            return self._report_once(key, claim, *_waiting_reason(key, view))
        if not claim["spec"].get("storageClassName") or (found and found["provisioner"] == _NO_PROVISIONER):
            said = "no persistent volumes available for this claim and no storage class is set"
            return self._report_once(key, claim, "FailedBinding", said)
        if found is None:
            said = f'storageclass.storage.k8s.io "{claim["spec"]["storageClassName"]}" not found'
            return self._report_once(key, claim, "ProvisioningFailed", said, kind="Warning")
        return self._request_provisioning(key, claim, found["provisioner"])

    def _request_provisioning(self, key: ObjectRef, claim: Object, provisioner: str) -> Iterator[Action]:
        if match.annotation_of(claim, match.PROVISIONER) != provisioner:
            asked = {match.PROVISIONER: provisioner, match.OLD_PROVISIONER: provisioner}
            yield PatchObject(key, {"metadata": {"annotations": asked}}, uid=claim["metadata"]["uid"])
        said = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the"
            " system administrator. If volume creation is delayed, please verify that the provisioner is running and"
            " correctly registered."
        )
        yield from self._report_once(key, claim, "ExternalProvisioning", said)

    def _decide_bound(self, key: ObjectRef, claim: Object, view: View) -> Iterable[Action]:
        """A claim that was bound: its volume must exist and must refer to this claim."""
        name = claim["spec"].get("volumeName")
        volume = view.get(match.VOLUMES, "", name) if name else None
        if volume and (match.refers_to_claim(volume, claim) or not volume["spec"].get("claimRef")):
            return _bind_step(key, claim, volume)
        if not name:
            reason, why = "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        elif volume is None:
            reason, why = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        else:
            reason = "ClaimMisbound"
            why = "Two claims are bound to the same volume, this one is bound incorrectly"
        lost = _phase_patches(key, claim, "Lost")
        return [*lost, *self._report_once(key, claim, reason, why, kind="Warning")] if lost else []

    def _report_once(
        self, key: ObjectRef, claim: Object, reason: str, why: str, *, kind: str = "Normal"
    ) -> Iterable[Action]:
        """Reports an event once, until the next different one."""
        if self._said.get(key) == why:
            return ()
        self._said[key] = why
        uid, source = claim["metadata"]["uid"], "persistentvolume-controller"
        return (RecordEvent(key, uid, "PersistentVolumeClaim", "v1", reason, why, type=kind, source=source),)


def _bind_step(key: ObjectRef, claim: Object, volume: Object) -> Iterable[Action]:
    """The first missing write of the four."""
    target, name = ref_of(match.VOLUMES, volume), volume["metadata"]["name"]
    reference = volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        body: Object = {"spec": {"claimRef": match.claim_reference(claim)}}
        if not reference:
            body["metadata"] = {"annotations": {match.BOUND_BY_CONTROLLER: "yes"}}
        return (PatchObject(target, body, revision=volume["metadata"]["resourceVersion"]),)
    if phase := _phase_patches(target, volume, "Bound"):
        return phase
    if claim["spec"].get("volumeName") != name or not match.annotation_of(claim, match.BIND_COMPLETED):
        annotations = {match.BIND_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[match.BOUND_BY_CONTROLLER] = "yes"
        body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
        return (PatchObject(key, body, uid=claim["metadata"]["uid"], revision=claim["metadata"]["resourceVersion"]),)
    spec = volume["spec"]
    status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["capacity"]}
    if status.items() <= (claim.get("status") or {}).items():
        return ()
    return (PatchObject(key, {"status": status}, "status", uid=claim["metadata"]["uid"]),)


def _phase_patches(key: ObjectRef, obj: Object, phase: str) -> tuple[PatchObject, ...]:
    if not phase or (obj.get("status") or {}).get("phase") == phase:
        return ()
    return (PatchObject(key, {"status": {"phase": phase}}, "status", uid=obj["metadata"]["uid"]),)


def _desired_volume_phase(volume: Object, view: View) -> str:
    """The correct phase; empty if it needs no change."""
    reference = volume["spec"].get("claimRef")
    if not reference or not reference.get("uid"):
        return "Available"
    claim = view.get(match.CLAIMS, reference["namespace"], reference["name"])
    if claim is None or claim["metadata"]["uid"] != reference["uid"]:
        return "" if (volume.get("status") or {}).get("phase") == "Failed" else "Released"
    return "Bound" if claim["spec"].get("volumeName") == volume["metadata"]["name"] else ""


def _waiting_reason(key: ObjectRef, view: View) -> tuple[str, str]:
    """Reason and message while the first consumer is unscheduled."""
    found = [pod["metadata"]["name"] for pod in view.pods_of_claim(key.namespace, key.name) if _is_unscheduled(pod)]
    if not found:
        return "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
    return "WaitForPodScheduled", f"waiting for pod{'s' if len(found) > 1 else ''} {','.join(found)} to be scheduled"


def _is_unscheduled(pod: Object) -> bool:
    return not pod["spec"].get("nodeName") and pods.pod_phase(pod) not in pods.FINISHED
