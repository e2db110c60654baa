"""What the ClusterRole ``lastcall-viewer`` permits: all that lastcall's commands read of a cluster (pure).

No Secrets and no ConfigMaps. ``plan --node`` without ``--config`` also reads the agents' ConfigMap, for which Kubernetes'
own ClusterRole ``view``, bound in its namespace, suffices.
"""

VERBS = ("get", "list")

VIEWED: dict[str, tuple[str, ...]] = {
    "": (
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "replicationcontrollers",
        "services",
    ),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("jobs",),
    "coordination.k8s.io": ("leases",),
    "discovery.k8s.io": ("endpointslices",),
    "lastcall.dev": ("fencepolicies", "guardpolicies", "nodeshutdowns"),
    "policy": ("poddisruptionbudgets",),
    "scheduling.k8s.io": ("priorityclasses",),
    "storage.k8s.io": ("csinodes", "storageclasses", "volumeattachments"),
}
"""The resources by their API group."""
