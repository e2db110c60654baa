"""What kubelets may ask for at all (the Node authorizer and its rules, ``bootstrappolicy.NodeRules``), pure.

The lab evaluates no RBAC, but a node runtime that does what no kubelet may do would be none. What the real authorizer
finds out from the graph of pods and what they use is not looked at.
"""

from collections.abc import Mapping

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.context import Context

_READ = frozenset({"get", "list", "watch"})
_CHANGE = frozenset({"update", "patch"})
_KEEP = frozenset({"get", "create", "update", "patch", "delete"})
_RULES: Mapping[str, frozenset[str]] = {
    "nodes": _READ | _CHANGE | {"create"},
    "nodes/status": _CHANGE,
    "pods": _READ | {"create", "delete"},
    "pods/status": _CHANGE,
    "pods/eviction": frozenset({"create"}),
    "services": _READ,
    "secrets": _READ,
    "configmaps": _READ,
    "endpoints": frozenset({"get"}),
    "persistentvolumes": frozenset({"get"}),
    "persistentvolumeclaims": frozenset({"get"}),
    "persistentvolumeclaims/status": _CHANGE | {"get"},
    "serviceaccounts": frozenset({"get"}),
    "serviceaccounts/token": frozenset({"create"}),
    "events": _CHANGE | {"create"},
    "events.events.k8s.io": _CHANGE | {"create"},
    "leases.coordination.k8s.io": _KEEP,
    "csinodes.storage.k8s.io": _KEEP,
    "csidrivers.storage.k8s.io": _READ,
    "volumeattachments.storage.k8s.io": frozenset({"get"}),
    "tokenreviews.authentication.k8s.io": frozenset({"create"}),
    "selfsubjectreviews.authentication.k8s.io": frozenset({"create"}),
    "subjectaccessreviews.authorization.k8s.io": frozenset({"create"}),
    "localsubjectaccessreviews.authorization.k8s.io": frozenset({"create"}),
    "selfsubjectaccessreviews.authorization.k8s.io": frozenset({"create"}),
    "selfsubjectrulesreviews.authorization.k8s.io": frozenset({"create"}),
    # Not the Node authorizer's: what lastcall's agent, which is one process with the lab's kubelet, is granted beside it.
    "nodeshutdowns.lastcall.dev": frozenset({"create", "patch"}),
}


def check(context: Context) -> None:
    """ApiError (403) if a kubelet asks for what none may have."""
    user, route = context.user, context.route
    if not user.node or "system:nodes" not in user.groups:
        return
    part = f"/{route.subresource}" if route.subresource else ""
    if route.verb in _RULES.get(f"{route.resource.qualified}{part}", ()):
        return
    where = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
    why = (
        f'User "{user.name}" cannot {route.verb} resource "{route.resource.plural}{part}"'
        f' in API group "{route.resource.group}" {where}'
    )
    raise status.forbidden(route.resource.plural, route.resource.group, route.name, why)
