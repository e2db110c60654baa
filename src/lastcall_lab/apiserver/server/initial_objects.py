"""The objects that every cluster has from the start."""

from collections.abc import Iterator, Sequence
from random import Random

from lastcall_lab.apiserver.admission.service_addresses import NETWORK
from lastcall_lab.apiserver.kinds import namespaces
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)


def create_initial_objects(store: Store, *, wall: float, random: Random, optional: Sequence[str] = ()) -> None:
    """Creates the missing ones; ``optional`` are the API versions that are served on request."""
    services = (_api_service(one, wall, random) for one in optional)
    for key, obj in (*_objects(wall, random), *services):
        if store.get(key) is None:
            store.put(key, obj, expected=None)


def _service(wall: float, random: Random) -> Object:
    """The Service of the API server itself."""
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
    address = str(NETWORK[1])
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "uid": object_meta.new_uid(random),
            "creationTimestamp": object_meta.timestamp(wall),
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": ports,
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _api_service(served: str, wall: float, random: Random) -> tuple[StorageKey, Object]:
    """The APIService of a version that the API server itself serves (``kube-aggregator autoregister``)."""
    group, _, version = served.partition("/")
    metadata = {
        "name": f"{version}.{group}",
        "uid": object_meta.new_uid(random),
        "creationTimestamp": object_meta.timestamp(wall),
        "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
    }
    spec = {"group": group, "version": version, "groupPriorityMinimum": 9700, "versionPriority": 1}
    return StorageKey("apiservices.apiregistration.k8s.io", "", f"{version}.{group}"), {
        "metadata": metadata,
        "spec": spec,
        "status": {},
    }


def _objects(wall: float, random: Random) -> Iterator[tuple[StorageKey, Object]]:
    for name in namespaces.INITIAL:
        namespace = namespaces.initial_namespace(name, uid=object_meta.new_uid(random), wall=wall)
        yield StorageKey("namespaces", "", name), namespace
    for name, value, description in _CLASSES:
        priority: Object = {
            "metadata": {
                "name": name,
                "uid": object_meta.new_uid(random),
                "generation": 1,
                "creationTimestamp": object_meta.timestamp(wall),
            },
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        yield StorageKey("priorityclasses.scheduling.k8s.io", "", name), priority
    yield StorageKey("services", "default", "kubernetes"), _service(wall, random)
