"""As whom the lab's own programs ask the API server: identities of least rights, as in a cluster."""

from lastcall.lab.apiserver.request import Identity
from lastcall.manifests import agent
from lastcall.names import SYSTEM_NAMESPACE

_AUTHENTICATED = "system:authenticated"
_SYSTEM = "kube-system"


def service_account(namespace: str, name: str) -> Identity:
    """The user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
    return Identity(f"system:serviceaccount:{namespace}:{name}", groups)


def kubelet(node: str) -> Identity:
    """The user that the kubelet of a node is."""
    return Identity(f"system:node:{node}", ("system:nodes", _AUTHENTICATED))


def controller(name: str) -> Identity:
    """The user of one of Kubernetes' controllers, such as ``job-controller``, which its own ClusterRole is bound to."""
    return service_account(_SYSTEM, name)


MANAGER = Identity("system:kube-controller-manager", (_AUTHENTICATED,))
SCHEDULER = Identity("system:kube-scheduler", (_AUTHENTICATED,))
PROXY = Identity("system:kube-proxy", (_AUTHENTICATED,))
AGENT = service_account(SYSTEM_NAMESPACE, agent.NAME)
