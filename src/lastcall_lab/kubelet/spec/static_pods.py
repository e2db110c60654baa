"""Static pods: what a manifest becomes on its node, and how the API server shows it (pure; ``pkg/kubelet/config/common.go``)."""

import hashlib
import json

from lastcall import names
from lastcall.adapters.kube.resources import Object

CONFIG_HASH = "kubernetes.io/config.hash"
"""The annotation with the uid by which the node knows a static pod."""

_MIRRORS_OWN = ("deletionTimestamp", "deletionGracePeriodSeconds")


def static_pod(document: Object, *, node: str, source: str) -> Object:
    """The pod of a manifest: named after its node, with a uid from its content and the name of its file."""
    metadata, spec = document["metadata"], document["spec"]
    text = json.dumps([document, node, source], sort_keys=True, default=str)
    uid = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    own = {CONFIG_HASH: uid, names.CONFIG_SOURCE: "file"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": f"{metadata['name']}-{node.lower()}",
            "namespace": metadata.get("namespace") or "default",
            "uid": uid,
            "annotations": {**(metadata.get("annotations") or {}), **own},
        },
        "spec": {
            **spec,
            "nodeName": node,
            "tolerations": [*(spec.get("tolerations") or ()), {"operator": "Exists", "effect": "NoExecute"}],
        },
    }


def mirror_pod(pod: Object, node: Object) -> Object:
    """The pod that shows a static pod at the API server (``pkg/kubelet/pod/mirror_client.go``)."""
    metadata = {name: value for name, value in pod["metadata"].items() if name != "uid"}
    own = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": own["name"], "uid": own["uid"], "controller": True}
    annotations = {**metadata["annotations"], names.MIRROR_ANNOTATION: pod["metadata"]["uid"]}
    return {**pod, "metadata": {**metadata, "annotations": annotations, "ownerReferences": [owner]}}


def mirrored_uid(pod: Object) -> str:
    """The uid of the static pod that a pod of the API shows; "" if it is no mirror pod."""
    return str((pod["metadata"].get("annotations") or {}).get(names.MIRROR_ANNOTATION, ""))


def shown_pod(mirror: Object) -> Object:
    """The static pod that a mirror pod shows, with the status of the mirror pod, whose deletion does not concern it."""
    metadata = {name: value for name, value in mirror["metadata"].items() if name not in _MIRRORS_OWN}
    annotations = {name: value for name, value in metadata["annotations"].items() if name != names.MIRROR_ANNOTATION}
    return {**mirror, "metadata": {**metadata, "uid": mirrored_uid(mirror), "annotations": annotations}}
