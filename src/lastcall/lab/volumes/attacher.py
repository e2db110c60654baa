"""Attaches and detaches what VolumeAttachments ask for (``kubernetes-csi/external-attacher``)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lastcall.lab.controllers import finalizers
from lastcall.lab.controllers import volume_match as match
from lastcall.lab.controllers.actions import Action, Decision, Patch, Work
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.lab.volumes import DRIVER
from lastcall.lab.volumes.storage import Storage

FINALIZER = f"external-attacher/{DRIVER.replace('.', '-')}"
"""On an attachment until its volume is detached, and on a volume as long as there may be attachments of it."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Seconds that the storage takes."""

    attach: float = 0.2
    detach: float = 0.2


class Attacher:
    """Looks at the attachments of its driver. It remembers when it has begun with each."""

    name = "csi-attacher"
    resources: Sequence[str] = (match.ATTACHMENTS, match.VOLUMES)

    def __init__(self, storage: Storage, settings: Settings | None = None) -> None:
        self._storage = storage
        self._settings = settings or Settings()
        self._begun: dict[tuple[str, bool], float] = {}

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The attachment and its volume; a volume and its attachments."""
        if resource == match.ATTACHMENTS:
            return [ref(resource, obj), Ref(match.VOLUMES, "", _volume_name(obj))]
        return [ref(resource, obj), *(ref(match.ATTACHMENTS, one) for one in _of(obj["metadata"]["name"], view))]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """One step: the finalizers first, then what takes time, then what has come of it."""
        obj = view.get(*key)
        if obj is None:
            return Decision()
        if key.resource == match.VOLUMES:
            going = obj["metadata"].get("deletionTimestamp") and not _of(key.name, view)
            return Decision(finalizers.remove(match.VOLUMES, obj, FINALIZER) if going else ())
        volume = view.get(match.VOLUMES, "", _volume_name(obj))
        if obj["spec"]["attacher"] != DRIVER or volume is None:
            return Decision()
        going = bool(obj["metadata"].get("deletionTimestamp"))
        return self._detach(obj, volume, now) if going else self._attach(key, obj, volume, now)

    def _attach(self, key: Ref, attachment: Object, volume: Object, now: float) -> Decision:
        first = finalizers.add(match.VOLUMES, volume, FINALIZER) or finalizers.add(
            match.ATTACHMENTS, attachment, FINALIZER
        )
        if first:
            return Decision(first)
        uid, node = attachment["metadata"]["uid"], attachment["spec"]["nodeName"]
        handle, shared = volume["spec"]["csi"]["volumeHandle"], match.shared(volume)
        work = Work(self._storage.attach, (handle, node, shared))
        if attachment["status"].get("attached"):
            self._begun.pop((uid, True), None)
            return Decision(() if self._storage.is_attached(handle, node) else (work,))
        done = Patch(key, {"status": {"attached": True, "attachError": None}}, "status", uid=uid)
        return self._after((uid, True), self._settings.attach, (work, done), now)

    def _detach(self, attachment: Object, volume: Object, now: float) -> Decision:
        uid, node = attachment["metadata"]["uid"], attachment["spec"]["nodeName"]
        work = Work(self._storage.detach, (volume["spec"]["csi"]["volumeHandle"], node))
        last = finalizers.remove(match.ATTACHMENTS, attachment, FINALIZER)
        return self._after((uid, False), self._settings.detach, (work, *last), now) if last else Decision()

    def _after(self, what: tuple[str, bool], seconds: float, actions: tuple[Action, ...], now: float) -> Decision:
        left = self._begun.setdefault(what, now) + seconds - now
        return Decision(again_in=left) if left > 0 else Decision(actions)


def _volume_name(attachment: Object) -> str:
    return str(attachment["spec"]["source"].get("persistentVolumeName", ""))


def _of(volume: str, view: View) -> list[Object]:
    return [one for one in view.all(match.ATTACHMENTS) if _volume_name(one) == volume]
