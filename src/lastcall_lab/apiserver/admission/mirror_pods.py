"""Mirror pods, the only pods that a kubelet may create; they may not refer to API objects (pure)."""

from collections.abc import Iterator, Mapping

from lastcall_lab.apiserver.authorization.pod_references import named_references
from lastcall_lab.apiserver.kinds.pod_update_rules import MIRROR
from lastcall_lab.apiserver.values.api_errors import not_found_error
from lastcall_lab.apiserver.values.request import Object

_VOLUMES: Mapping[str, str] = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_SOURCES: Mapping[str, str] = {
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
"""The sources of projected volumes."""


def mirror_pod_violation(pod: Object, name: str, node: Object | None) -> str:
    """Why node ``name`` may not create the pod; empty if it may. ApiError if ``node`` does not exist."""
    if MIRROR not in (pod["metadata"].get("annotations") or {}):
        return f'pod does not have "{MIRROR}" annotation, node "{name}" can only create mirror pods'
    if pod["spec"].get("nodeName", "") != name:
        return f'node "{name}" can only create pods with spec.nodeName set to itself'
    return _owner_violation(pod, name, node) or _reference_violation(pod, name)


def _owner_violation(pod: Object, name: str, node: Object | None) -> str:
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
        raise not_found_error("node", "", name)
    uid = node["metadata"]["uid"]
    return "" if owner.get("uid") == uid else f"node {name} UID mismatch: expected {owner.get('uid', '')} got {uid}"


def _reference_violation(pod: Object, name: str) -> str:
    """Why a reference of the pod is not allowed (``podutil.HasAPIObjectReference``)."""
    what = next(_referenced_kinds(pod), "")
    return f'node "{name}" can not create pods that reference {what}' if what else ""


def _referenced_kinds(pod: Object) -> Iterator[str]:
    """The kinds of API objects that the pod refers to, in upstream's order and words.

    Secrets and service accounts are not included: ``PodServiceAccounts`` rejects them for every mirror pod.
    """
    spec = pod["spec"]
    if any(one.resource == "configmaps" for one in named_references(pod)):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in spec.get("volumes") or ():
        yield from (what for kind, what in _VOLUMES.items() if kind in volume)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from (what for kind, what in _SOURCES.items() if kind in source)
