"""A cluster that runs already: what its controllers and kubelets would have come to is there when they start.

Of the thousands of pods of a large cluster each costs more to create, schedule and start than an hour in which nothing
happens to it. So the controllers' own decisions are asked which objects they want, without a request for each, and
the kubelets find their pods running, as after a restart. What that leaves open (status of workloads, endpoints, pods
with volumes of their own) they do as ever, when they start.
"""

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, Any

import msgspec

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.resources import NODES, Object
from lastcall.lab.apiserver import meta
from lastcall.lab.apiserver.store import Key
from lastcall.lab.controllers import daemon_pods
from lastcall.lab.controllers.actions import Create
from lastcall.lab.controllers.controller import Controller
from lastcall.lab.controllers.daemonsets import DaemonSets
from lastcall.lab.controllers.deployments import Deployments
from lastcall.lab.controllers.replicasets import ReplicaSets
from lastcall.lab.controllers.statefulsets import StatefulSets
from lastcall.lab.controllers.view import Ref, View
from lastcall.lab.kubelet import node_object, pod_status
from lastcall.lab.kubelet.containers import every_container
from lastcall.lab.kubelet.facts import ContainerFacts, PodFacts, Running
from lastcall.lab.kubelet.node_object import NodeFacts
from lastcall.lab.kubelet.translation import runtime_pod
from lastcall.lab.simulation.seeds import random_of

if TYPE_CHECKING:
    from lastcall.lab.simulation.cluster import Cluster

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


async def settle(cluster: "Cluster") -> None:
    """To be called when all workloads are there, no controller runs, and no kubelet has started yet.

    The nodes are ready, and their pods run in the machines' runtimes. A pod with a volume of its own is
    left to the controllers.
    """
    for host in cluster.hosts.values():
        node = node_object.node(host.profile, NodeFacts(), cluster.clock.wall())
        await cluster.plane.admin.create(NODES, node)
        await cluster.plane.admin.patch(NODES, host.name, _WELCOMING)
    await _Settling(cluster).run()


class _Settling:
    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._store = cluster.plane.server.store
        self._random = random_of(cluster.seed, "settling")
        self._machines: Iterator[str] = cycle(cluster.hosts)
        self._addresses = {name: host.profile.address for name, host in cluster.hosts.items()}
        self._models: dict[str, bytes] = {}
        self._view = View()
        for resource in _WATCHED:
            for stored in self._store.objects(resource):
                self._view.apply(resource, stored.object(), None)
            self._view.complete(resource)

    async def run(self) -> None:
        """One kind of controller after the other: what one makes is the next one's."""
        for controller, resource in (
            (Deployments(), "deployments.apps"),
            (ReplicaSets(), "replicasets.apps"),
            (StatefulSets(), "statefulsets.apps"),
            (DaemonSets(), "daemonsets.apps"),
        ):
            for workload in list(self._view.all(resource)):
                metadata = workload["metadata"]
                if not (workload["spec"].get("volumeClaimTemplates")):
                    await self._follow(controller, Ref(resource, metadata["namespace"], metadata["name"]))

    async def _follow(self, controller: Controller, key: Ref) -> None:
        """Does what it decides until it wants nothing new."""
        while True:
            decision = controller.decide(key, self._view, self._cluster.clock.wall())
            wanted = [action for action in decision.actions if isinstance(action, Create)]
            for action in wanted:
                await self._make(action)
            if not wanted:
                return

    async def _make(self, action: Create) -> None:
        if action.resource != "pods":
            self._view.apply(action.resource, await self._create(action), None)
            return
        pod = await self._pod(action)
        self._run(pod)
        self._view.apply("pods", pod, None)

    async def _create(self, action: Create, *, dry_run: bool = False) -> Object:
        plural, _, group = action.resource.partition(".")
        kind = resources.resource(group, "v1", plural)
        made: Object = await self._cluster.plane.admin.create(
            kind, action.obj, namespace=action.namespace, dry_run=dry_run
        )
        return made

    async def _pod(self, action: Create) -> Object:
        """What the server would make of the first one of an owner, with all that it adds; the others are like it."""
        wanted = action.obj["metadata"]
        owner = wanted["ownerReferences"][0]["uid"]
        if owner not in self._models:
            self._models[owner] = msgspec.json.encode(await self._create(action, dry_run=True))
        pod: Object = msgspec.json.decode(self._models[owner])
        name = wanted.get("name") or meta.generated_name(wanted["generateName"], self._random)
        own = {part: wanted[part] for part in ("labels", "annotations") if part in wanted}
        pod["metadata"] |= {**own, "name": name, "uid": meta.new_uid(self._random)}
        pod["spec"] |= {part: action.obj["spec"][part] for part in _OF_EACH if part in action.obj["spec"]}
        return pod

    def _run(self, pod: Object) -> None:
        metadata = pod["metadata"]
        host = self._cluster.hosts[daemon_pods.target(pod) or next(self._machines)]
        pod["spec"]["nodeName"] = host.name
        address = host.run_already(runtime_pod(pod, paths={}, address="", mounts=True))
        pod["status"] |= _status(
            pod, host_ip=self._addresses[host.name], address=address, now=self._cluster.clock.wall()
        )
        self._store.put(Key("pods", metadata["namespace"], metadata["name"]), pod, expected=None)
        pod["metadata"].pop("managedFields", None)


def _status(pod: Object, *, host_ip: str, address: str, now: float) -> Mapping[str, Any]:
    """As its kubelet would write it."""
    uid = pod["metadata"]["uid"]
    known = {
        one["name"]: ContainerFacts(run=Running(f"{uid}/{one['name']}", now), started=True, ready=True)
        for one in every_container(pod)
    }
    facts = PodFacts(containers=known, host_ip=host_ip, address=address, started_at=now)
    return pod_status.status(pod, facts, now)
