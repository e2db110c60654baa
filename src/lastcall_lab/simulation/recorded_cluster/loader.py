"""Puts a recorded cluster where its programs find it, as after a restart of all of them (KEP-2000: pods run on).

The API server has the objects, the storage what is attached, the machines' runtimes the containers that ran.
"""

from collections.abc import Iterable, Mapping

from lastcall.adapters.kube.resources import Object
from lastcall.model.pods import FINISHED
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.controllers.volumes import volume_matching as match
from lastcall_lab.kubelet.cluster import node_object
from lastcall_lab.kubelet.cluster.node_object import NodeFacts
from lastcall_lab.kubelet.spec.translation import runtime_pod
from lastcall_lab.kubelet.state import pod_status
from lastcall_lab.kubelet.state.container_facts import SCHEME, PodFacts, containers_from_status
from lastcall_lab.kubelet.state.start_plan import all_containers, is_sidecar
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation.environment import SimulatedEnvironment
from lastcall_lab.simulation.recorded_cluster.completion import uid_for
from lastcall_lab.simulation.recorded_cluster.kubectl_items import KINDS
from lastcall_lab.simulation.recorded_cluster.workloads import is_static
from lastcall_lab.volumes import csi_objects as lab_volumes

SETTLE_SECONDS = 30.0
"""In which kubelets and controllers look at everything once, and do what is due."""

_STORAGES = {
    **{kind: resource.storage for kind, resource in KINDS.items()},
    "ControllerRevision": "controllerrevisions.apps",
    "CSIDriver": "csidrivers.storage.k8s.io",
    "CSINode": "csinodes.storage.k8s.io",
}


async def load_cluster(cluster: SimulatedEnvironment, objects: Iterable[Object], away: Iterable[str]) -> None:
    """Returns when everything runs that ran. Workloads that lack something then, as they did, count as whole."""
    off = set(away)
    putting = _ClusterLoader(cluster, off)
    for obj in objects:
        putting.load_object(obj)
    for obj in (lab_volumes.csi_driver(), *putting.csi_nodes()):
        obj["metadata"] |= {"uid": uid_for(obj["kind"], obj["metadata"]["name"])}
        putting.store_object(obj)
    await putting.attach_volumes()
    for name in cluster.machines:
        if name in off:
            cluster.truth.record_power_off(name)
        else:
            await cluster.machines[name].turn(PowerSwitch.ON)
    cluster.plane.start_controllers()
    await cluster.wait_until(
        lambda: cluster.standing.ready_boots(cluster.machines).keys() >= cluster.machines.keys() - off
    )
    await cluster.clock.sleep(SETTLE_SECONDS)
    cluster.standing.excuse_incomplete()


class _ClusterLoader:
    def __init__(self, cluster: SimulatedEnvironment, off: set[str]) -> None:
        self._cluster = cluster
        self._store = cluster.plane.server.store
        self._off = off
        self._nodes: dict[str, str] = {}
        self._attached: list[Object] = []
        self._shared: dict[str, bool] = {}

    def load_object(self, obj: Object) -> None:
        """Nodes before pods."""
        kind, name = obj["kind"], obj["metadata"]["name"]
        if kind == "Node":
            self._nodes[name] = obj["metadata"]["uid"]
            if name not in self._off:
                self._load_node(obj)
        elif kind == "Pod":
            self._load_pod(obj)
        elif kind == "PersistentVolume":
            self._shared[name] = match.is_multi_attach(obj)
        elif kind == "VolumeAttachment":
            self._attached.append(obj)
        self.store_object(obj)

    def store_object(self, obj: Object) -> None:
        """As the API server keeps it; what every cluster has from its beginning is replaced."""
        metadata = obj["metadata"]
        key = StorageKey(_STORAGES[obj["kind"]], metadata.get("namespace", ""), metadata["name"])
        present = self._store.get(key)
        self._store.put(key, obj, expected=present.revision if present else None)

    def csi_nodes(self) -> Iterable[Object]:
        """The driver is on every machine."""
        return [lab_volumes.csi_node(name, uid) for name, uid in self._nodes.items()]

    async def attach_volumes(self) -> None:
        """What the attachments say."""
        for one in self._attached:
            name = one["spec"]["source"]["persistentVolumeName"]
            await self._cluster.storage.attach(name, one["spec"]["nodeName"], self._shared[name])

    def _load_node(self, node: Object) -> None:
        """Its status as the kubelet writes it, so that it has nothing to write at first."""
        host, old = self._cluster.hosts[node["metadata"]["name"]], node.get("status") or {}
        facts = NodeFacts(volumes_in_use=old.get("volumesInUse") or ())
        kept = {name: old[name] for name in ("volumesAttached",) if name in old}
        status = node_object.node_status(host.profile, facts, old, self._cluster.clock.wall())
        own = {one["type"] for one in status["conditions"]}
        others = [one for one in old.get("conditions") or () if one["type"] not in own]
        node["status"] = {**status, **kept, "conditions": [*others, *status["conditions"]]}

    def _load_pod(self, pod: Object) -> None:
        """Its containers that ran run, and its status says so in this lab's words."""
        host = self._cluster.hosts.get(pod["spec"].get("nodeName", ""))
        if host is None:
            return
        if is_static(pod):
            host.static_pods.append(pod)
        status = pod.get("status") or {}
        if host.name in self._off or status.get("phase") in FINISHED:
            return
        running = self._run_containers(pod)
        if not running:
            return
        place = {"address": status.get("podIP", ""), "paths": {}, "mounts": True}
        host.place_running_pod(runtime_pod(pod, **place), only=running)
        now = self._cluster.clock.wall()
        facts = PodFacts(
            containers=containers_from_status(pod, running, now),
            host_ip=host.profile.address,
            address=status.get("podIP", ""),
            started_at=parse_seconds(status["startTime"]) if status.get("startTime") else now,
        )
        if all(one["name"] in running for one in pod["spec"]["containers"]):
            pod["status"] = {**status, **pod_status.pod_status(pod, facts, now)}

    def _run_containers(self, pod: Object) -> Mapping[str, str]:
        """The runs of the containers that last, by name; the status is given their ids."""
        status, uid, found = pod["status"], pod["metadata"]["uid"], {}
        lasting = {one["name"] for one in all_containers(pod) if one in pod["spec"]["containers"] or is_sidecar(one)}
        for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
            if one["name"] in lasting and "running" in (one.get("state") or {}):
                found[one["name"]] = f"{uid}/{one['name']}"
                one["containerID"] = f"{SCHEME}{found[one['name']]}"
                one["started"] = one.get("started") is not False
        return found
