"""A file of kubectl's as the cluster that a scenario begins with (pure)."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lastcall.model.base import Facts
from lastcall.model.pods import FINISHED
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.controllers.framework.view import controller_of
from lastcall_lab.simulation.recorded_cluster import completion, kubectl_items, volumes
from lastcall_lab.simulation.recorded_cluster.container_behaviour import container_faults
from lastcall_lab.simulation.recorded_cluster.pod_specs import simplify_spec
from lastcall_lab.simulation.recorded_cluster.workloads import RecordedWorkloads, is_static, service_backends
from lastcall_lab.simulation.scenario import CAPACITY, NodeGroup, RecordedCluster, ScenarioWorkload

_SHOWN = 3
_MANAGED = "endpointslice.kubernetes.io/managed-by"
_ORDER = ("Namespace", "Node", "PriorityClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim")


class RecordedState(Facts, frozen=True):
    """``service_backends`` tells by NAMESPACE/NAME of which workloads (by their keys) a Service's pods are."""

    recorded: RecordedCluster
    nodes: tuple[NodeGroup, ...]
    workloads: tuple[ScenarioWorkload, ...]
    services: dict[str, tuple[str, ...]]
    warnings: tuple[str, ...] = ()


def read_state(data: bytes, source: str) -> RecordedState:
    """InvalidInput tells of every item that is wrong. ``warnings`` are about what is not simulated as it is."""
    found, others = kubectl_items.read_items(data, source)
    return _StateReader(found, others, source).to_state()


class _StateReader:
    def __init__(self, objects: list[Object], others: Counter[str], source: str) -> None:
        self._objects = objects
        self._others = others
        self._source = source
        self._remarks: Counter[str] = Counter()
        self._told: list[str] = []

    def to_state(self) -> RecordedState:
        at = completion.snapshot_time(self._objects)
        for obj in self._objects:
            completion.complete_metadata(obj, at)
            if spec := completion.find_pod_spec(obj):
                simplify_spec(spec, self._remarks)
            kubectl_items.KINDS[obj["kind"]].behaviour.default(obj)
        self._leave_out()
        former = {one["metadata"]["uid"]: _owner_name(one) for one in self._objects if one["kind"] == "Pod"}
        self._add_warning(
            "pods whose owners are not in the file, so that nobody replaces them", self._runnable_objects()
        )
        self._own_static_pods()
        objects = volumes.translate_storage(self._objects, at, self._remarks)
        objects += completion.classes_of(objects, at)
        objects += completion.revisions_of(objects, at)
        objects += completion.namespaces_of(objects, at)
        objects.sort(key=lambda one: _ORDER.index(one["kind"]) if one["kind"] in _ORDER else len(_ORDER))
        workloads = RecordedWorkloads(objects, former)
        nodes = [one for one in objects if one["kind"] == "Node"]
        away = [one["metadata"]["name"] for one in nodes if not _is_ready(one)]
        self._warn_of_failures(objects, away)
        pairs: dict[str, tuple[str, ...]] = {}
        for service, key in service_backends(objects, workloads):
            pairs[service] = (*pairs.get(service, ()), key)
        return RecordedState(
            recorded=RecordedCluster(objects=tuple(objects), at=at, away=tuple(away), members=workloads.members),
            nodes=tuple(map(_node_group, nodes)),
            workloads=tuple(workloads.found.values()),
            services=pairs,
            warnings=tuple(self._warnings()),
        )

    # -- what is left out ----------------------------------------------------------------------------------------------

    def _leave_out(self) -> None:
        """What would be made anew, and what could only do harm without the rest of it."""
        nodes = {one["metadata"]["name"] for one in self._objects if one["kind"] == "Node"}
        with_sets = {_owner_uid(one) for one in self._objects if one["kind"] == "ReplicaSet"}
        kept, lost, without = [], [], []
        for obj in self._objects:
            metadata, kind = obj["metadata"], obj["kind"]
            if kind == "EndpointSlice" and _MANAGED in (metadata.get("labels") or {}):
                continue
            if kind == "Pod" and obj["spec"].get("nodeName", "") not in ("", *nodes):
                lost.append(obj)
            elif kind == "Deployment" and obj["spec"].get("replicas", 1) and metadata["uid"] not in with_sets:
                without.append(obj)
            else:
                kept.append(obj)
        self._add_warning("passed over, since their nodes are not in the file: pods", lost)
        self._add_warning("passed over, since their ReplicaSets are not in the file: Deployments", without)
        self._objects = kept

    def _runnable_objects(self) -> list[Object]:
        return [one for one in completion.drop_dangling_owners(self._objects) if not _is_finished(one)]

    def _own_static_pods(self) -> None:
        """Each belongs to its node, as mirrors made by newer kubelets say themselves."""
        nodes = {one["metadata"]["name"]: one["metadata"]["uid"] for one in self._objects if one["kind"] == "Node"}
        for pod in self._objects:
            if pod["kind"] == "Pod" and is_static(pod) and pod["spec"].get("nodeName") in nodes:
                name = pod["spec"]["nodeName"]
                owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": nodes[name], "controller": True}
                pod["metadata"]["ownerReferences"] = [owner]

    # -- what people should know ---------------------------------------------------------------------------------------

    def _warn_of_failures(self, objects: Sequence[Object], away: Sequence[str]) -> None:
        if away:
            self._told.append(
                f"nodes that are not ready, whose machines count as off: {len(away)} ({_join_names(away)})"
            )
        failing = [
            pod
            for pod in objects
            if pod["kind"] == "Pod"
            and pod["spec"].get("nodeName", "") not in ("", *away)
            and not _is_finished(pod)
            and container_faults(pod)
        ]
        self._add_warning("pods with containers that fail or are not ready, and stay so", failing)

    def _add_warning(self, what: str, objects: Sequence[Object]) -> None:
        if objects:
            names = [f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}" for one in objects]
            self._told.append(f"{what}: {len(objects)} ({_join_names(names)})")

    def _warnings(self) -> Iterator[str]:
        if self._others:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self._others.items()))
            yield f"{self._source}: {kinds} passed over: such objects are not simulated"
        yield from (f"{self._source}: {one}" for one in self._told)
        for what, count in sorted(self._remarks.items()):
            yield f"{self._source}: not simulated: {what}: {count}"


def _owner_name(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("name") or obj["metadata"]["name"])


def _owner_uid(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("uid", ""))


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node_group(node: Object) -> NodeGroup:
    status = node.get("status") or {}
    addresses = {one["type"]: one["address"] for one in status.get("addresses") or ()}
    room = status.get("allocatable") or status.get("capacity") or CAPACITY
    return NodeGroup(
        name=node["metadata"]["name"],
        count=1,
        numbered=False,
        labels=node["metadata"].get("labels") or {},
        capacity={name: str(amount) for name, amount in room.items()},
        address=addresses.get("InternalIP", ""),
        architecture=(status.get("nodeInfo") or {}).get("architecture") or "amd64",
    )
