"""The objects that a pod refers to, readable for its kubelet (``pkg/api/v1/pod/util.go``, Node authorizer), pure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from lastcall_lab.apiserver.values.request import Object

MIRROR = "kubernetes.io/config.mirror"
_SECRET_REFERENCES = (
    ("cephfs", "secretRef", "name"),
    ("cinder", "secretRef", "name"),
    ("flexVolume", "secretRef", "name"),
    ("rbd", "secretRef", "name"),
    ("scaleIO", "secretRef", "name"),
    ("iscsi", "secretRef", "name"),
    ("storageos", "secretRef", "name"),
    ("csi", "nodePublishSecretRef", "name"),
)
"""Volume types that refer to a Secret, and the path of the reference."""

_VOLUME_SECRETS = (
    ("csi", "nodePublishSecretRef"),
    ("csi", "nodeStageSecretRef"),
    ("csi", "nodeExpandSecretRef"),
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
)
"""The same for persistent volumes (``pkg/api/v1/persistentvolume/util.go``), as far as kubelets read them."""


class PodReference(NamedTuple):
    """An object in the pod's namespace: ``resource`` is ``secrets``, ``configmaps``, ``serviceaccounts`` or claims."""

    resource: str
    name: str


def pod_references(pod: Object) -> frozenset[PodReference]:
    """The objects that the pod's node may read.

    A mirror pod gives its node no rights, because the node itself created it.
    """
    return frozenset() if MIRROR in (pod["metadata"].get("annotations") or {}) else named_references(pod)


def named_references(pod: Object) -> frozenset[PodReference]:
    """All objects that the pod refers to by name."""
    metadata, spec = pod["metadata"], pod["spec"]
    found = {PodReference("serviceaccounts", spec.get("serviceAccountName") or "")}
    found |= {PodReference("secrets", one.get("name", "")) for one in spec.get("imagePullSecrets") or ()}
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            found.update(_environment(container))
    for volume in spec.get("volumes") or ():
        found.update(_volume(volume, metadata["name"]))
    return frozenset(one for one in found if one.name)


def volume_secrets(volume: Object) -> Iterator[tuple[str, str]]:
    """Namespace and name of the Secrets of a PersistentVolume that kubelets read."""
    spec = volume.get("spec") or {}
    claim = (spec.get("claimRef") or {}).get("namespace", "")
    for kind, field in _VOLUME_SECRETS:
        reference = _at(spec, kind, field)
        if reference and reference.get("name"):
            yield reference.get("namespace") or claim, reference["name"]
    file = spec.get("azureFile") or {}
    if file.get("secretName"):
        yield file.get("secretNamespace") or claim, file["secretName"]


def _environment(container: Object) -> Iterator[PodReference]:
    for source in container.get("envFrom") or ():
        yield PodReference("secrets", _at(source, "secretRef", "name") or "")
        yield PodReference("configmaps", _at(source, "configMapRef", "name") or "")
    for variable in container.get("env") or ():
        yield PodReference("secrets", _at(variable, "valueFrom", "secretKeyRef", "name") or "")
        yield PodReference("configmaps", _at(variable, "valueFrom", "configMapKeyRef", "name") or "")


def _volume(volume: Object, pod: str) -> Iterator[PodReference]:
    yield PodReference("secrets", _at(volume, "secret", "secretName") or _at(volume, "azureFile", "secretName") or "")
    yield PodReference("configmaps", _at(volume, "configMap", "name") or "")
    yield PodReference("persistentvolumeclaims", _at(volume, "persistentVolumeClaim", "claimName") or "")
    if volume.get("ephemeral"):
        yield PodReference("persistentvolumeclaims", f"{pod}-{volume['name']}")
    for path in _SECRET_REFERENCES:
        yield PodReference("secrets", _at(volume, *path) or "")
    for source in _at(volume, "projected", "sources") or ():
        yield PodReference("secrets", _at(source, "secret", "name") or "")
        yield PodReference("configmaps", _at(source, "configMap", "name") or "")


def _at(obj: Object, *path: str) -> Any:
    """The value at a path; None if a part of the path is missing."""
    found: Any = obj
    for name in path:
        found = (found or {}).get(name)
    return found
