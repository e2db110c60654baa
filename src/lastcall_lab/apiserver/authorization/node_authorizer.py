"""The Node authorizer: the rights of a kubelet (``plugin/pkg/auth/authorizer/node``).

Upstream keeps a graph of pods and their references. Here each request checks the pods of the node.
"""

from collections.abc import Callable, Mapping

from lastcall_lab.apiserver.authorization.attributes import ALLOWED, NO_OPINION, AccessAttributes, AccessDecision
from lastcall_lab.apiserver.authorization.bootstrap import node_rules
from lastcall_lab.apiserver.authorization.pod_references import PodReference, pod_references, volume_secrets
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredObject
from lastcall_lab.apiserver.values.request import Object, UserInfo

NODES = "system:nodes"
"""Members of this group, named ``system:node:NAME``, are kubelets."""
NODE_LEASES = "kube-node-lease"

_READ = frozenset({"get", "list", "watch"})
_CHANGE = frozenset({"update", "patch"})
_KEEP = frozenset({"get", "create", "update", "patch", "delete"})
_REMEMBERED = 20_000
"""The number of pods whose references are cached."""

Check = Callable[[str, AccessAttributes], AccessDecision]


def is_node(user: UserInfo) -> bool:
    """Whether the Node authorizer is responsible for this user."""
    return user.name.startswith("system:node:") and NODES in user.groups


class NodeAuthorizer:
    """Allows a kubelet to read what the pods on its node refer to. Has no opinion about other users."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._references: dict[tuple[StorageKey, int], frozenset[PodReference]] = {}
        self._checks: Mapping[str, Check] = {
            "secrets": self._read_namespaced,
            "configmaps": self._read_namespaced,
            "persistentvolumeclaims": self._claim,
            "persistentvolumes": self._get,
            "volumeattachments.storage.k8s.io": self._get,
            "serviceaccounts": self._service_account,
            "leases.coordination.k8s.io": _lease,
            "csinodes.storage.k8s.io": _csi_node,
            "nodes": _node,
            "pods": self._pod,
        }

    def authorize(self, asked: AccessAttributes) -> AccessDecision:
        """Whether the kubelet has access; no opinion about other users."""
        if not is_node(asked.user):
            return NO_OPINION
        node = asked.user.node
        if not node:
            return AccessDecision(False, f'unknown node for user "{asked.user.name}"')
        if not asked.path:
            check = self._checks.get(f"{asked.resource}.{asked.group}" if asked.group else asked.resource)
            if check:
                return check(node, asked)
        return ALLOWED if any(rule.allows(asked) for rule in node_rules()) else NO_OPINION

    # -- by resource ---------------------------------------------------------------------------------------------------

    def _read_namespaced(self, node: str, asked: AccessAttributes) -> AccessDecision:
        if asked.verb not in _READ:
            return _deny("can only read resources of this type")
        if asked.subresource:
            return _deny("cannot read subresource")
        if not asked.namespace:
            return _deny("can only read namespaced object of this type")
        return self._authorize_related(node, asked)

    def _get(self, node: str, asked: AccessAttributes) -> AccessDecision:
        if asked.verb != "get":
            return _deny("can only get individual resources of this type")
        if asked.subresource:
            return _deny("cannot get subresource")
        return self._authorize_related(node, asked)

    def _claim(self, node: str, asked: AccessAttributes) -> AccessDecision:
        if asked.subresource != "status":
            return self._get(node, asked)
        if asked.verb not in _CHANGE:
            return _deny("can only get/update/patch this type")
        return self._authorize_related(node, asked)

    def _service_account(self, node: str, asked: AccessAttributes) -> AccessDecision:
        if asked.verb == "get" and not asked.subresource:
            return self._read_namespaced(node, asked)
        if asked.verb != "create" or not asked.name:
            return _deny("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _deny("can only create token subresource of serviceaccount")
        return self._authorize_related(node, asked)

    def _pod(self, node: str, asked: AccessAttributes) -> AccessDecision:
        match asked.subresource, asked.verb:
            case "", "get":
                return self._get(node, asked)
            case "", ("list" | "watch"):
                if any(one.field == "spec.nodeName" and one.equal and one.value == node for one in asked.terms):
                    return ALLOWED
                if asked.name:
                    return self._authorize_related(node, asked)
                return _deny("can only list/watch pods with spec.nodeName field selector")
            case ("", ("create" | "delete")) | ("status", ("update" | "patch")) | ("eviction", "create"):
                return ALLOWED  # NodeRestriction checks which ones
        return NO_OPINION

    # -- relations to the node -----------------------------------------------------------------------------------------

    def _authorize_related(self, node: str, asked: AccessAttributes) -> AccessDecision:
        if not asked.name:
            return _deny("No Object name found")
        if self._has_path(node, asked.resource, asked.namespace, asked.name):
            return ALLOWED
        return _deny(f"no relationship found between node '{node}' and this object")

    def _has_path(self, node: str, resource: str, namespace: str, name: str) -> bool:
        if resource == "pods":
            pod = self._store.get(StorageKey("pods", namespace, name))
            return pod is not None and pod.fields.get("spec.nodeName", "") == node
        if resource == "volumeattachments":
            attachment = self._object("volumeattachments.storage.k8s.io", "", name)
            return (attachment.get("spec") or {}).get("nodeName") == node
        if resource == "persistentvolumes":
            return self._uses_volume(node, self._object(resource, "", name))
        if self._refers(node, namespace, PodReference(resource, name)):
            return True
        return resource == "secrets" and self._volumes_refer(node, namespace, name)

    def _refers(self, node: str, namespace: str, reference: PodReference) -> bool:
        """Whether a pod on the node refers to an object of its namespace."""
        return any(reference in self._of(pod) for pod in self._pods(node, namespace))

    def _uses_volume(self, node: str, volume: Object) -> bool:
        claim = (volume.get("spec") or {}).get("claimRef") or {}
        reference = PodReference("persistentvolumeclaims", claim.get("name", ""))
        return bool(claim) and self._refers(node, claim.get("namespace", ""), reference)

    def _volumes_refer(self, node: str, namespace: str, secret: str) -> bool:
        """Whether a volume of a pod on the node refers to the Secret, possibly in another namespace."""
        for pod in self._pods(node, ""):
            for reference in self._of(pod):
                if reference.resource == "persistentvolumeclaims":
                    claim = self._object("persistentvolumeclaims", pod.key.namespace, reference.name)
                    volume = self._object("persistentvolumes", "", (claim.get("spec") or {}).get("volumeName") or "")
                    if (namespace, secret) in volume_secrets(volume) and self._uses_volume(node, volume):
                        return True
        return False

    def _pods(self, node: str, namespace: str) -> list[StoredObject]:
        pods = self._store.objects("pods", namespace, interest=("spec.nodeName", node))
        return [pod for pod in pods if pod.fields.get("spec.nodeName") == node]

    def _of(self, pod: StoredObject) -> frozenset[PodReference]:
        key = (pod.key, pod.revision)
        found = self._references.get(key)
        if found is None:
            if len(self._references) >= _REMEMBERED:
                self._references.clear()
            found = self._references[key] = pod_references(pod.to_object())
        return found

    def _object(self, resource: str, namespace: str, name: str) -> Object:
        """Empty if it does not exist."""
        stored = self._store.get(StorageKey(resource, namespace, name))
        return stored.to_object() if stored else {}


def _node(node: str, asked: AccessAttributes) -> AccessDecision:
    match asked.subresource, asked.verb:
        case ("", ("create" | "update" | "patch")) | ("status", ("update" | "patch")):
            return ALLOWED  # NodeRestriction checks which one
        case "", ("get" | "list" | "watch"):
            if asked.name == node:
                return ALLOWED
            whose = f"'{asked.name}'" if asked.name else "all nodes"
            return _deny(f"node '{node}' cannot read {whose}, only its own Node object")
    return NO_OPINION


def _lease(node: str, asked: AccessAttributes) -> AccessDecision:
    if asked.verb not in _KEEP:
        return _deny("can only get, create, update, patch, or delete a node lease")
    if asked.namespace != NODE_LEASES:
        return _deny(f'can only access leases in the "{NODE_LEASES}" system namespace')
    if asked.verb != "create" and asked.name != node:
        return _deny("can only access node lease with the same name as the requesting node")
    return ALLOWED


def _csi_node(node: str, asked: AccessAttributes) -> AccessDecision:
    if asked.verb not in _KEEP:
        return _deny("can only get, create, update, patch, or delete a CSINode")
    if asked.subresource:
        return _deny("cannot authorize CSINode subresources")
    if asked.verb != "create" and asked.name != node:
        return _deny("can only access CSINode with the same name as the requesting node")
    return ALLOWED


def _deny(reason: str) -> AccessDecision:
    return AccessDecision(False, reason)
