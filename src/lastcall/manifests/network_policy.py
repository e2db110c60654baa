"""The NetworkPolicies of controller and guard (pure).

The agent has none: it uses the host's network, to which a NetworkPolicy does not apply.
"""

from collections.abc import Sequence

from lastcall.manifests.labels import NAME, common_labels, selector_labels
from lastcall.manifests.rbac import Object


def controller_network_policy(namespace: str) -> Object:
    """Nobody reaches more of a controller than its status page. It reaches what it wants: BMCs are anywhere."""
    return network_policy_object(NAME, namespace, common_labels(), selector_labels(), ports=["status"])


def network_policy_object(
    name: str, namespace: str, labels: dict[str, str], selected: dict[str, str], *, ports: Sequence[str]
) -> Object:
    """Everybody reaches these named ports of the selected pods, and no others; they reach what they want."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "podSelector": {"matchLabels": selected},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
        },
    }
