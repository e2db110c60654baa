"""The rights of those who drain nodes with ``lastcall drain``; nobody has them until they are bound (pure)."""

from lastcall.manifests.namespaces import drains_namespace
from lastcall.manifests.rbac import ANYWHERE, Grant, Object, role_rules
from lastcall.names import DRAINER, DRAINS_NAMESPACE, GROUP

_LIST = ("list",)


def drainer_grants() -> list[Grant]:
    """What a drain and its plan need; of Leases only those that say who has a node to himself."""
    plans = "the plan: what blocks a drain, and how to mend it"
    return [
        Grant(
            "nodes",
            ("get", "list", "watch", "patch"),
            "the cordon, its mark, load balancers, and what becomes of a node meanwhile",
        ),
        Grant("nodes/status", ("patch",), "the conditions DrainInProgress and Drained"),
        Grant("pods", ("list", "watch"), "which pods are there"),
        Grant("pods/eviction", ("create",), "evictions"),
        Grant("pods", ("delete",), "--disable-eviction, and --on-timeout other than stop"),
        Grant("namespaces", ("get", "list"), "whether Leases can be held; whether pods are guarded"),
        Grant("events", ("create",), "what is told about Nodes and pods"),
        Grant("services", _LIST, "the plan: which pods are the cluster's DNS"),
        Grant("persistentvolumes", _LIST, plans),
        Grant("persistentvolumeclaims", _LIST, plans),
        Grant("replicationcontrollers", _LIST, plans),
        *(Grant(one, _LIST, plans, "apps") for one in ("daemonsets", "deployments", "replicasets", "statefulsets")),
        Grant("horizontalpodautoscalers", _LIST, plans, "autoscaling"),
        Grant("poddisruptionbudgets", ("list", "watch"), f"{plans}; when a budget makes room", "policy"),
        Grant("endpointslices", ("list", "watch"), "the plan, and when Services leave a pod out", "discovery.k8s.io"),
        Grant("csinodes", _LIST, plans, "storage.k8s.io"),
        Grant("guardpolicies", _LIST, plans, GROUP),
        Grant("nodemaintenances", _LIST, "whether another program drains the node", "nodemaintenance.medik8s.io"),
        Grant(
            "leases",
            ("get", "create", "update", "delete"),
            "one drain of a node at a time",
            "coordination.k8s.io",
            DRAINS_NAMESPACE,
        ),
    ]


def drainer_objects(labels: dict[str, str]) -> list[Object]:
    """The namespace of the Leases, a ClusterRole, and a Role there."""
    grants = drainer_grants()
    return [
        drains_namespace(),
        _role("ClusterRole", [one for one in grants if one.namespace == ANYWHERE], {"labels": labels}),
        _role(
            "Role",
            [one for one in grants if one.namespace == DRAINS_NAMESPACE],
            {"namespace": DRAINS_NAMESPACE, "labels": labels},
        ),
    ]


def _role(kind: str, grants: list[Grant], metadata: Object) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": DRAINER, **metadata},
        "rules": role_rules(grants),
    }
