"""The pods that a kubelet may create: mirrors of its own, which ask for nothing of the API (pure)."""

from lastcall.lab.apiserver.kinds.pod_defaults import containers
from lastcall.lab.apiserver.kinds.pod_updates import MIRROR
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import not_found


def mirror_pod_violation(pod: Object, name: str, node: Object | None) -> str:
    """Why node ``name`` may not create the pod; empty if it may. ApiError if there is no such ``node``."""
    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        return f'pod does not have "{MIRROR}" annotation, node "{name}" can only create mirror pods'
    if pod["spec"].get("nodeName", "") != name:
        return f'node "{name}" can only create pods with spec.nodeName set to itself'
    return _owner(pod, name, node) or _references(pod["spec"], name)


def _owner(pod: Object, name: str, node: Object | None) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    if len(owners) > 1:
        return f'node "{name}" can only create pods with a single owner reference set to itself'
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", name):
        return f'node "{name}" can only create pods with an owner reference set to itself'
    if not owner.get("controller"):
        return f'node "{name}" can only create pods with a controller owner reference set to itself'
    if owner.get("blockOwnerDeletion"):
        return f'node "{name}" must not set blockOwnerDeletion on an owner reference'
    if node is None:
        raise not_found("node", "", name)
    uid = node["metadata"]["uid"]
    return "" if owner.get("uid") == uid else f"node {name} UID mismatch: expected {owner.get('uid', '')} got {uid}"


def _references(spec: Object, name: str) -> str:
    said = f'node "{name}" can not create pods that reference '
    if spec.get("serviceAccountName"):
        return f"{said}a service account"
    for kind, key in (("secrets", "secret"), ("configmaps", "configMap")):
        if _reads(spec, key) or (key == "secret" and spec.get("imagePullSecrets")):
            return f"{said}{kind}"
    claims = any("persistentVolumeClaim" in volume for volume in spec.get("volumes") or ())
    return f"{said}persistentvolumeclaims" if claims else ""


def _reads(spec: Object, key: str) -> bool:
    """Whether volumes or variables take anything from a secret, or from a config map."""
    volumes = spec.get("volumes") or ()
    sources = [source for volume in volumes for source in (volume.get("projected") or {}).get("sources") or ()]
    if any(key in one for one in (*volumes, *sources)):
        return True
    return any(
        f"{key}Ref" in one or f"{key}KeyRef" in (one.get("valueFrom") or {})
        for container in containers(spec)
        for one in (*(container.get("envFrom") or ()), *(container.get("env") or ()))
    )
