"""Admission of claims and volumes: the default class, resizing, and the protection finalizers."""

from fractions import Fraction

from lastcall.model import quantities
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

_SINCE = "lastPhaseTransitionTime"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}


class DefaultStorageClass(AdmissionPlugin):
    """Sets the default class of a claim without one; the newest if there are several."""

    sees = ("persistentvolumeclaims",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Acts only on creation."""
        claim = attributes.obj
        if attributes.operation != "CREATE" or not claim:
            return
        if claim["spec"].get("storageClassName") is None and (name := self._default()):
            claim["spec"]["storageClassName"] = name

    def _default(self) -> str:
        classes = [stored.to_object()["metadata"] for stored in self._store.objects("storageclasses.storage.k8s.io")]
        defaults = [one for one in classes if (one.get("annotations") or {}).get(_DEFAULT) == "true"]
        newest = max(defaults, key=_age, default={"name": ""})
        return str(newest["name"])


class ClaimResize(AdmissionPlugin):
    """Allows a claim to grow if its class does (``PersistentVolumeClaimResize``)."""

    sees = ("persistentvolumeclaims",)

    def __init__(self, store: Store) -> None:
        self._store = store

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if the claim has grown without permission."""
        new, old = attributes.obj, attributes.old
        if attributes.subresource or not new or not old:
            return
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise refusal_error(attributes, "Only bound persistent volume claims can be expanded")
        name = new["spec"].get("storageClassName")
        stored = self._store.get(StorageKey("storageclasses.storage.k8s.io", "", name)) if name else None
        if stored is None or not stored.to_object().get("allowVolumeExpansion"):
            raise refusal_error(
                attributes,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
                " support resize",
            )


class StorageObjectProtection(AdmissionPlugin):
    """``StorageObjectInUseProtection``: adds finalizers; controllers remove them when the object is unused."""

    sees = tuple(_FINALIZERS)

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Acts only on creation."""
        if attributes.operation != "CREATE" or not attributes.obj or attributes.subresource:
            return
        finalizer = _FINALIZERS[attributes.resource.storage]
        finalizers = attributes.obj["metadata"].setdefault("finalizers", [])
        if finalizer not in finalizers:
            finalizers.append(finalizer)


class VolumePhases(AdmissionPlugin):
    """Sets the time of a volume's phase change unless the writer sets it (strategy of the volume status)."""

    sees = ("persistentvolumes",)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """Acts only on status writes."""
        if attributes.subresource != "status":
            return
        new, old = ((one or {}).get("status") or {} for one in (attributes.obj, attributes.old))
        if new.get("phase") != old.get("phase") and new.get(_SINCE) in (None, old.get(_SINCE)):
            new[_SINCE] = object_meta.timestamp(self._clock.wall())


def _size(claim: Object) -> Fraction:
    return quantities.parse_quantity((claim["spec"]["resources"].get("requests") or {}).get("storage", "0"))


def _age(metadata: Object) -> tuple[str, list[int]]:
    """The newest is the largest; equals are ordered by name."""
    return metadata["creationTimestamp"], [-ord(character) for character in metadata["name"]]
