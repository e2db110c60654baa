"""The controller's NetworkPolicy (pure).

The agent has none: it uses the host's network, to which a NetworkPolicy does not apply.
"""

from lastcall.manifests.labels import NAME, common_labels, selector_labels
from lastcall.manifests.rbac import Object


def controller_network_policy(namespace: str) -> Object:
    """Nobody reaches more of a controller than its status page. It reaches what it wants: BMCs are anywhere."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": namespace, "labels": common_labels()},
        "spec": {
            "podSelector": {"matchLabels": selector_labels()},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": "status", "protocol": "TCP"}]}],
        },
    }
