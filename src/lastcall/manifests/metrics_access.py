"""What metrics on the nodes' addresses need: agents that ask the API server about readers, and a reader (pure).

A PodMonitor of the Prometheus operator takes a token from a Secret only, so the reader has a Secret of the type
``kubernetes.io/service-account-token``. Other readers need the ClusterRole alone.
"""

from lastcall.manifests.rbac import Object
from lastcall.names import METRICS_READER

READER = METRICS_READER
"""Name of the ClusterRole, its binding, the ServiceAccount and the Secret with its token."""

_RBAC = "rbac.authorization.k8s.io"


def metrics_access_objects(agent: str, namespace: str, labels: dict[str, str]) -> list[Object]:
    """Their objects, in an order in which they can be created; ``agent`` is the agents' ServiceAccount."""
    here: Object = {"name": READER, "namespace": namespace, "labels": labels}
    token = {**here, "annotations": {"kubernetes.io/service-account.name": READER}}
    role: Object = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER, "labels": labels},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    return [
        _cluster_binding(f"{agent}-auth-delegator", "system:auth-delegator", agent, namespace, labels),
        role,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {"apiVersion": "v1", "kind": "Secret", "metadata": token, "type": "kubernetes.io/service-account-token"},
        _cluster_binding(READER, READER, READER, namespace, labels),
    ]


def _cluster_binding(name: str, role: str, account: str, namespace: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": labels},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
