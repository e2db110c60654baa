"""Creates a cluster in its steady state: what controllers and kubelets would have made exists when they start.

Of the thousands of pods of a large cluster each costs more to create, schedule and start than an hour in which nothing
happens to it. So the controllers' own decisions are asked which objects they want, without a request for each, and
the kubelets find their pods running, as after a restart. What that leaves open (status of workloads, endpoints, pods
with volumes of their own) they do as ever, when they start.
"""

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

import msgspec

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.resources import NODES, Object
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.controllers.framework.actions import CreateObject
from lastcall_lab.controllers.framework.controller import Controller
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.workloads import daemon_pods
from lastcall_lab.controllers.workloads.daemon_sets import DaemonSetController
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController
from lastcall_lab.kubelet.cluster import node_object
from lastcall_lab.kubelet.cluster.node_object import NodeFacts
from lastcall_lab.kubelet.spec.translation import runtime_pod
from lastcall_lab.kubelet.state import pod_status
from lastcall_lab.kubelet.state.container_facts import ContainerFacts, PodFacts, RunningState
from lastcall_lab.kubelet.state.start_plan import all_containers
from lastcall_lab.simulation.environment import SimulatedEnvironment
from lastcall_lab.simulation.seeds import random_of

_WATCHED = (
    "nodes",
    "pods",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "controllerrevisions.apps",
)
_OF_EACH = ("hostname", "subdomain", "affinity")
"""What the specs of two pods of one workload may differ in."""

_WELCOMING: Object = {"spec": {"taints": None}}
"""A node that is ready loses the taint with which the server makes it, so that it gets the pods of DaemonSets."""


async def create_steady_state(cluster: SimulatedEnvironment) -> None:
    """To be called when all workloads are there, no controller runs, and no kubelet has started yet.

    The nodes are ready, and their pods run in the machines' runtimes. A pod with a volume of its own is
    left to the controllers.
    """
    for host in cluster.hosts.values():
        node = node_object.new_node(host.profile, NodeFacts(), cluster.clock.wall())
        await cluster.plane.admin.create(NODES, node)
        await cluster.plane.admin.patch(NODES, host.name, _WELCOMING)
    await _SteadyState(cluster).run()


class _SteadyState:
    def __init__(self, cluster: SimulatedEnvironment) -> None:
        self._cluster = cluster
        self._store = cluster.plane.server.store
        self._random = random_of(cluster.seed, "settling")
        self._machines: Iterator[str] = cycle(cluster.hosts)
        self._addresses = {name: host.profile.address for name, host in cluster.hosts.items()}
        self._models: dict[str, bytes] = {}
        self._view = View()
        for resource in _WATCHED:
            for stored in self._store.objects(resource):
                self._view.apply(resource, stored.to_object(), None)
            self._view.mark_listed(resource)

    async def run(self) -> None:
        """One kind of controller after the other: what one makes is the next one's."""
        for controller, resource in (
            (DeploymentController(), "deployments.apps"),
            (ReplicaSetController(), "replicasets.apps"),
            (StatefulSetController(), "statefulsets.apps"),
            (DaemonSetController(), "daemonsets.apps"),
        ):
            for workload in list(self._view.all(resource)):
                metadata = workload["metadata"]
                if not (workload["spec"].get("volumeClaimTemplates")):
                    await self._follow_controller(
                        controller, ObjectRef(resource, metadata["namespace"], metadata["name"])
                    )

    async def _follow_controller(self, controller: Controller, key: ObjectRef) -> None:
        """Does what it decides until it wants nothing new."""
        while True:
            decision = controller.decide(key, self._view, self._cluster.clock.wall())
            wanted = [action for action in decision.actions if isinstance(action, CreateObject)]
            for action in wanted:
                await self._apply_create(action)
            if not wanted:
                return

    async def _apply_create(self, action: CreateObject) -> None:
        if action.resource != "pods":
            self._view.apply(action.resource, await self._create_object(action), None)
            return
        pod = await self._pod_from_template(action)
        self._run_pod(pod)
        self._view.apply("pods", pod, None)

    async def _create_object(self, action: CreateObject, *, dry_run: bool = False) -> Object:
        plural, _, group = action.resource.partition(".")
        kind = resources.dict_resource(group, "v1", plural)
        made: Object = await self._cluster.plane.admin.create(
            kind, action.obj, namespace=action.namespace, dry_run=dry_run
        )
        return made

    async def _pod_from_template(self, action: CreateObject) -> Object:
        """What the server would make of the first one of an owner, with all that it adds; the others are like it."""
        wanted = action.obj["metadata"]
        owner = wanted["ownerReferences"][0]["uid"]
        if owner not in self._models:
            self._models[owner] = msgspec.json.encode(await self._create_object(action, dry_run=True))
        pod: Object = msgspec.json.decode(self._models[owner])
        name = wanted.get("name") or object_meta.generate_name(wanted["generateName"], self._random)
        own = {part: wanted[part] for part in ("labels", "annotations") if part in wanted}
        pod["metadata"] |= {**own, "name": name, "uid": object_meta.new_uid(self._random)}
        pod["spec"] |= {part: action.obj["spec"][part] for part in _OF_EACH if part in action.obj["spec"]}
        return pod

    def _run_pod(self, pod: Object) -> None:
        metadata = pod["metadata"]
        host = self._cluster.hosts[daemon_pods.target_node(pod) or next(self._machines)]
        pod["spec"]["nodeName"] = host.name
        address = host.place_running_pod(runtime_pod(pod, paths={}, address="", mounts=True))
        pod["status"] |= _running_status(
            pod, host_ip=self._addresses[host.name], address=address, now=self._cluster.clock.wall()
        )
        self._store.put(StorageKey("pods", metadata["namespace"], metadata["name"]), pod, expected=None)
        pod["metadata"].pop("managedFields", None)


def _running_status(pod: Object, *, host_ip: str, address: str, now: float) -> Mapping[str, Any]:
    """As its kubelet would write it."""
    uid = pod["metadata"]["uid"]
    known = {
        one["name"]: ContainerFacts(run=RunningState(f"{uid}/{one['name']}", now), started=True, ready=True)
        for one in all_containers(pod)
    }
    facts = PodFacts(containers=known, host_ip=host_ip, address=address, started_at=now)
    return pod_status.pod_status(pod, facts, now)
