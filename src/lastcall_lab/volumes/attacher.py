"""Attaches and detaches volumes by VolumeAttachments (``kubernetes-csi/external-attacher``)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lastcall_lab.controllers.framework.actions import Action, Decision, PatchObject, RunWork
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import finalizers
from lastcall_lab.controllers.volumes import volume_matching as match
from lastcall_lab.volumes import DRIVER
from lastcall_lab.volumes.storage import Storage

FINALIZER = f"external-attacher/{DRIVER.replace('.', '-')}"
"""Finalizer of an attachment until its volume is detached, and of a volume while it may have attachments."""


@dataclass(frozen=True, kw_only=True)
class AttacherSettings:
    """Durations of the storage's operations, in seconds."""

    attach: float = 0.2
    detach: float = 0.2


class Attacher:
    """Handles the attachments of its driver. It remembers when it has begun with each."""

    name = "csi-attacher"
    resources: Sequence[str] = (match.ATTACHMENTS, match.VOLUMES)

    def __init__(self, storage: Storage, settings: AttacherSettings | None = None) -> None:
        self._storage = storage
        self._settings = settings or AttacherSettings()
        self._begun: dict[tuple[str, bool], float] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The attachment and its volume; a volume and its attachments."""
        if resource == match.ATTACHMENTS:
            return [ref_of(resource, obj), ObjectRef(match.VOLUMES, "", _volume_name(obj))]
        return [
            ref_of(resource, obj),
            *(ref_of(match.ATTACHMENTS, one) for one in _attachments_of(obj["metadata"]["name"], view)),
        ]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Takes one step: the finalizers first, then the timed operation, then its result."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        if key.resource == match.VOLUMES:
            going = obj["metadata"].get("deletionTimestamp") and not _attachments_of(key.name, view)
            return Decision(finalizers.remove_finalizer(match.VOLUMES, obj, FINALIZER) if going else ())
        volume = view.get(match.VOLUMES, "", _volume_name(obj))
        if obj["spec"]["attacher"] != DRIVER or volume is None:
            return Decision()
        going = bool(obj["metadata"].get("deletionTimestamp"))
        return self._detach_step(obj, volume, now) if going else self._attach_step(key, obj, volume, now)

    def _attach_step(self, key: ObjectRef, attachment: Object, volume: Object, now: float) -> Decision:
        first = finalizers.add_finalizer(match.VOLUMES, volume, FINALIZER) or finalizers.add_finalizer(
            match.ATTACHMENTS, attachment, FINALIZER
        )
        if first:
            return Decision(first)
        uid, node = attachment["metadata"]["uid"], attachment["spec"]["nodeName"]
        handle, shared = volume["spec"]["csi"]["volumeHandle"], match.is_multi_attach(volume)
        work = RunWork(self._storage.attach, (handle, node, shared))
        if attachment["status"].get("attached"):
            self._begun.pop((uid, True), None)
            return Decision(() if self._storage.is_attached(handle, node) else (work,))
        done = PatchObject(key, {"status": {"attached": True, "attachError": None}}, "status", uid=uid)
        return self._act_after((uid, True), self._settings.attach, (work, done), now)

    def _detach_step(self, attachment: Object, volume: Object, now: float) -> Decision:
        uid, node = attachment["metadata"]["uid"], attachment["spec"]["nodeName"]
        work = RunWork(self._storage.detach, (volume["spec"]["csi"]["volumeHandle"], node))
        last = finalizers.remove_finalizer(match.ATTACHMENTS, attachment, FINALIZER)
        return self._act_after((uid, False), self._settings.detach, (work, *last), now) if last else Decision()

    def _act_after(self, what: tuple[str, bool], seconds: float, actions: tuple[Action, ...], now: float) -> Decision:
        left = self._begun.setdefault(what, now) + seconds - now
        return Decision(again_in=left) if left > 0 else Decision(actions)


def _volume_name(attachment: Object) -> str:
    return str(attachment["spec"]["source"].get("persistentVolumeName", ""))


def _attachments_of(volume: str, view: View) -> list[Object]:
    return [one for one in view.all(match.ATTACHMENTS) if _volume_name(one) == volume]
