"""The ClusterRole of those who look at a cluster with lastcall's commands; nobody has it until it is bound (pure)."""

from lastcall.manifests.rbac import Object
from lastcall.model.viewer_access import VERBS, VIEWED
from lastcall.names import VIEWER


def viewer_role(labels: dict[str, str]) -> Object:
    """The ClusterRole: reads only, of no Secrets and no ConfigMaps."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": VIEWER, "labels": labels},
        "rules": viewer_rules(),
    }


def viewer_rules() -> list[Object]:
    """One rule for each API group."""
    return [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(VERBS)}
        for group, resources in VIEWED.items()
    ]
