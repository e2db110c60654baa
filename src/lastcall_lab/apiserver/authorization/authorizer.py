"""The API server's authorizer: ``system:masters``, then the Node authorizer, then RBAC, or always allow.

``authorize`` is a pure question about the current store: it neither writes nor waits.
"""

from enum import Enum

from lastcall_lab.apiserver.authorization.attributes import ALLOWED, MASTERS, AccessAttributes, AccessDecision
from lastcall_lab.apiserver.authorization.node_authorizer import NodeAuthorizer, is_node
from lastcall_lab.apiserver.authorization.rbac_authorizer import RbacAuthorizer
from lastcall_lab.apiserver.storage.store import Store

ANONYMOUS = "system:anonymous"
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
"""The paths that the role ``system:public-info-viewer`` allows everyone to read."""


class AuthorizationMode(Enum):
    """The authorization mode of the API server."""

    RBAC = "RBAC"
    """RBAC, and the Node authorizer for kubelets."""
    ALWAYS_ALLOW = "AlwaysAllow"
    """Authenticated users are allowed everything; kubelets what the Node authorizer allows."""


class Authorizer:
    """Decides by ``mode`` and by the objects in the store."""

    def __init__(self, store: Store, mode: AuthorizationMode) -> None:
        self.mode = mode
        self.rbac = RbacAuthorizer(store)
        self._node = NodeAuthorizer(store)

    def authorize(self, asked: AccessAttributes) -> AccessDecision:
        """Whether this access is allowed, and why."""
        user = asked.user
        if MASTERS in user.groups:
            return ALLOWED
        node = self._node.authorize(asked)
        if node.allowed:
            return node
        if self.mode is AuthorizationMode.ALWAYS_ALLOW:
            return node if is_node(user) else _always(asked)
        by_role = self.rbac.authorize(asked)
        if by_role.allowed or not node.reason:
            return by_role
        reasons = [one for one in (node.reason, by_role.reason) if one]
        return AccessDecision(False, "\n".join(reasons))


def _always(asked: AccessAttributes) -> AccessDecision:
    """Allows everything to authenticated users, and the health checks to everyone."""
    path = asked.path
    public = asked.verb == "get" and any(path == one or path.startswith(f"{one}/") for one in _PUBLIC)
    return AccessDecision(public or asked.user.name != ANONYMOUS)
