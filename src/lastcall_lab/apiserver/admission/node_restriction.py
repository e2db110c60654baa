"""Restricts a kubelet to objects of its own node (``NodeRestriction``)."""

from collections.abc import Callable, Mapping

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin, refusal_error
from lastcall_lab.apiserver.admission.mirror_pods import mirror_pod_violation
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

_OWN_LABELS = frozenset(
    [
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    ]
)
_CLAIM_STATUS = ("allocatedResourceStatuses", "allocatedResources", "capacity", "conditions")
"""The fields of a claim that a node may write."""
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KUBERNETES = ("kubernetes.io", "k8s.io")


class NodeRestriction(AdmissionPlugin):
    """Handles writes of users ``system:node:NAME`` in the group ``system:nodes``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checks: Mapping[str, Callable[[AdmissionAttributes, str], str]] = {
            "pods": self._pod_violation,
            "nodes": _node_violation,
            "persistentvolumeclaims": _claim_violation,
            "leases.coordination.k8s.io": _lease_violation,
            "csinodes.storage.k8s.io": _csi_node_violation,
        }

    async def mutate(self, attributes: AdmissionAttributes) -> None:
        """ApiError if the node is not allowed to make the write."""
        node = attributes.user.node
        if not node or "system:nodes" not in attributes.user.groups or attributes.operation == "CONNECT":
            return
        check = self._checks.get(attributes.resource.storage)
        if check and (why := check(attributes, node)):
            raise refusal_error(attributes, why)

    def _pod_violation(self, attributes: AdmissionAttributes, node: str) -> str:
        operation, part = attributes.operation, attributes.subresource
        if part not in ("", "status", "eviction"):
            return f"unexpected pod subresource \"{part}\", only 'status' and 'eviction' are allowed"
        if part == "eviction":
            if self._read_existing(attributes)["spec"].get("nodeName", "") != node:
                return f"node {node} can only evict pods with spec.nodeName set to itself"
            return ""
        if part == "status":
            return _pod_status_violation(attributes, node)
        if operation == "CREATE":
            found = self._store.get(StorageKey("nodes", "", node))
            return mirror_pod_violation(attributes.obj or {}, node, found.to_object() if found else None)
        if operation == "DELETE":
            if (attributes.old or {})["spec"].get("nodeName", "") != node:
                return f'node "{node}" can only delete pods with spec.nodeName set to itself'
            return ""
        return f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods'

    def _read_existing(self, attributes: AdmissionAttributes) -> Object:
        stored = self._store.get(StorageKey("pods", attributes.namespace, attributes.name))
        if stored is None:
            raise api_errors.not_found_error("pod", "", attributes.name)  # upstream's informer error
        return stored.to_object()


def _pod_status_violation(attributes: AdmissionAttributes, node: str) -> str:
    new, old = attributes.obj or {}, attributes.old or {}
    if old["spec"].get("nodeName", "") != node:
        return f'node "{node}" can only update pod status for pods with spec.nodeName set to itself'  # noqa: S608 (no SQL)
    if (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {}):
        return f'node "{node}" cannot update labels through pod status'
    now, before = new.get("status") or {}, old.get("status") or {}
    if _claims_in_status(now) != _claims_in_status(before):
        return f'node "{node}" cannot update resource claim statues'
    if now.get("extendedResourceClaimStatus") != before.get("extendedResourceClaimStatus"):
        return f'node "{node}" cannot update extended resource claim status'
    return ""


def _claims_in_status(pod_status: Object) -> list[tuple[str, str]]:
    claims = pod_status.get("resourceClaimStatuses") or ()
    return [(one.get("name", ""), one.get("resourceClaimName", "")) for one in claims]


def _node_violation(attributes: AdmissionAttributes, node: str) -> str:
    if attributes.name != node:
        return f'node "{node}" is not allowed to modify node "{attributes.name}"'
    new, old = attributes.obj, attributes.old
    if not new:
        return ""
    forbidden = [label for label in _changed_labels(new, old) if is_restricted_label(label)]
    if old is None:
        if new["spec"].get("configSource"):
            return f'node "{node}" is not allowed to create pods with a non-nil configSource'
        said = f'node "{node}" is not allowed to set the following labels: '
        return said + ", ".join(forbidden) if forbidden else ""
    if (new["spec"].get("taints") or []) != (old["spec"].get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):
        return f'node "{node}" is not allowed to modify ownerReferences'
    return f"is not allowed to modify labels: {', '.join(forbidden)}" if forbidden else ""


def _changed_labels(new: Object, old: Object | None) -> list[str]:
    now, before = new["metadata"].get("labels") or {}, (old or {"metadata": {}})["metadata"].get("labels") or {}
    return sorted(key for key in {*now, *before} if now.get(key) != before.get(key))


def is_restricted_label(label: str) -> bool:
    """Whether only an administrator may put this label on a node, such as ``node-restriction.kubernetes.io/secure``."""
    prefix = label.partition("/")[0] if "/" in label else ""
    return _is_within(prefix, _KUBERNETES) and label not in _OWN_LABELS and not _is_within(prefix, _OWN_PREFIXES)


def _is_within(prefix: str, domains: tuple[str, ...]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _claim_violation(attributes: AdmissionAttributes, node: str) -> str:
    if attributes.subresource != "status":
        return "may only update PVC status"
    if _immutable_part(attributes.obj or {}) != _immutable_part(attributes.old or {}):
        return f'node "{node}" is not allowed to update fields other than status.quantity and status.conditions'
    return ""


def _immutable_part(claim: Object) -> Object:
    """The part of the object that a node may not change."""
    metadata = {
        name: one for name, one in claim["metadata"].items() if name not in ("managedFields", "resourceVersion")
    }
    status = {name: one for name, one in (claim.get("status") or {}).items() if name not in _CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": status}


def _lease_violation(attributes: AdmissionAttributes, node: str) -> str:
    if attributes.namespace != "kube-node-lease":
        return 'can only access leases in the "kube-node-lease" system namespace'
    same = attributes.name == node
    return "" if same else "can only access node lease with the same name as the requesting node"


def _csi_node_violation(attributes: AdmissionAttributes, node: str) -> str:
    same = attributes.name == node
    return "" if same else "can only access CSINode with the same name as the requesting node"
