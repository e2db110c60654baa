"""A cluster in virtual time with the failover controller: five nodes with BMCs, and programs with a volume."""

import contextlib
import functools
from random import Random

from support.common.metrics_page import samples
from support.lab.controller_cluster import on_cluster
from support.lab.custom_definitions import DEFINITIONS
from support.lab.volume_kubelets import Kubelets, claim, storage_class

from lastcall.adapters.kube.failover_cluster import POLICIES, KubeCluster
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.kube.resources import (
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODE_SHUTDOWNS,
    NODES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from lastcall.aio import wait_first
from lastcall.errors import AlreadyExists, Unavailable
from lastcall.failover.controller.event_writer import EventWriter
from lastcall.failover.controller.failover_controller import ControllerPorts, FailoverController
from lastcall.failover.decisions.case_facts import ControllerTerms
from lastcall.failover.reporting.controller_events import ReconcilerFailed
from lastcall.model.power import PowerState
from lastcall.model.watchdog_lease import to_annotations
from lastcall.names import NODES_NAMESPACE
from lastcall.ports.fences import FenceAnswer, FenceTarget
from lastcall.wiring.controller import FailoverMetrics
from lastcall_lab import virtual
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.object_meta import micro_timestamp, timestamp
from lastcall_lab.controllers.nodes.node_lifecycle import NodeLifecycleController
from lastcall_lab.controllers.nodes.pod_gc import PodGarbageCollector
from lastcall_lab.controllers.nodes.taint_eviction import TaintEvictionController
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.controllers.scheduling.scheduler import Scheduler
from lastcall_lab.controllers.volumes.attach_detach import AttachDetachController
from lastcall_lab.controllers.volumes.volume_binder import VolumeBinderController
from lastcall_lab.controllers.volumes.volume_protection import ClaimProtectionController, VolumeProtectionController
from lastcall_lab.controllers.workloads.deployments import DeploymentController
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController
from lastcall_lab.controllers.workloads.stateful_sets import StatefulSetController
from lastcall_lab.simulation.clocks import NodeClock
from lastcall_lab.simulation.network_faults import FaultInjector, FaultyTransport
from lastcall_lab.virtual import VirtualProcess
from lastcall_lab.volumes.attacher import Attacher
from lastcall_lab.volumes.provisioner import Provisioner
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import InMemoryVolumes

NAMES = ("n1", "n2", "n3", "n4", "n5")
ELECTION = ObjectKey("lastcall-system", "lastcall-controller")
POLICY = {
    "suspectAfter": "15s",
    "mode": "Enforce",
    "limits": {"minHealthy": 1, "settle": "5s"},
    "fencers": [{"name": "bmc", "attempts": 2, "timeoutSeconds": 10, "manual": {}}],
}


def uuid(name):
    return f"0000{name[1:]:0>4}-1111-4222-8333-444455556666"


class Bmc:
    """The fence of one machine. ``lies``: what it says although it is not so; ``away``: it does not answer."""

    def __init__(self, nodes, node):
        self.nodes, self.node, self.name = nodes, node, "bmc"
        self.asked, self.lies, self.away, self.wrong = [], None, False, ""
        self.delay = 0.2

    async def _answer(self, what):
        self.asked.append((what, self.nodes.cluster.clock.boottime()))
        await self.nodes.cluster.clock.sleep(self.delay)
        if self.away:
            raise Unavailable("no answer")

    async def read_target(self):
        await self._answer("target")
        return FenceTarget(system_uuid=self.wrong or uuid(self.node))

    async def read_power(self):
        try:
            await self._answer("status")
        except Unavailable as error:
            return FenceAnswer(power=PowerState.UNKNOWN, why=str(error))
        return FenceAnswer(power=self.lies or (PowerState.OFF if self.node in self.nodes.off else PowerState.ON))

    async def switch_off(self, within):
        await self._answer("off")
        assert within > 0
        if self.lies is None:
            self.nodes.pull(self.node)

    async def switch_on(self, within):
        await self._answer("on")
        await self.nodes.boot(self.node)


class Fences:
    """Of all nodes."""

    def __init__(self, nodes):
        self.bmcs = {name: Bmc(nodes, name) for name in NAMES}

    async def make_fences(self, node, policy):
        return [self.bmcs[node.name] for _ in policy.spec.fencers]

    def __getitem__(self, name):
        return self.bmcs[name]


class Machines(Kubelets):
    """Kubelets in little whose machines can boot again."""

    def __init__(self, cluster, storage):
        super().__init__(cluster, storage)
        self.boots = dict.fromkeys(NAMES, 1)

    async def show(self, name):
        """The kubelet tells of its machine."""
        info = {"bootID": f"boot-{name}-{self.boots[name]}", "systemUUID": uuid(name)}
        await self._patch(name, {"nodeInfo": info})

    async def boot(self, name):
        """The machine starts anew."""
        self.boots[name] += 1
        self._mounted = {key: found for key, found in self._mounted.items() if key[0] != name}
        self.off.discard(name)
        await self.show(name)
        await self.back(name)


class Candidate:
    """One life of the controller."""

    def __init__(self, world, name="c", life=0, *, fuse=None, **terms):
        cluster = world.cluster
        self.name = f"{name}_{life}"
        self.process = VirtualProcess(self.name, fuse=fuse)
        self.happened = []
        transport = FaultyTransport(InProcessTransport(cluster.server), world.weather, name)
        random = Random(f"{name}/{life}")
        self.clock = NodeClock(cluster.clock)
        kube = KubeCluster(transport, self.clock, random, instance=self.name)
        self.election = LeaderElector(
            kube.health_tracking_client(transport), ELECTION, self.name, clock=self.clock, random=random
        )
        outside = ControllerPorts(clock=self.clock, cluster=kube, leadership=self.election, fences=world.fences)
        self.telling = EventWriter(outside.cluster, self.clock, lambda: self.controller.is_removing)
        self.counting = FailoverMetrics(self.clock)
        listeners = [lambda one: self._hear(world, one), self.telling.handle_event, self.counting.record]
        self.controller = FailoverController(outside, ControllerTerms(me=self.name, **terms), listeners=listeners)
        self.task = self.process.start(self._run(), "controller")

    async def _run(self):
        await wait_first(self.controller.observe(), self.election.lead(self.controller.act), self.telling.run())

    @property
    def counted(self):
        """Its metrics as they are now."""
        return samples(self.counting.render_metrics(self.controller.status))

    def _hear(self, world, happening):
        self.happened.append(happening)
        world.happened.append(happening)
        if isinstance(happening, ReconcilerFailed):
            world.broken.append(happening)


class World:
    """``happened``: what all controllers have told, in order."""

    def __init__(self, nodes):
        self.nodes, self.cluster = nodes, nodes.cluster
        self.fences = Fences(nodes)
        self.weather = FaultInjector(self.cluster.clock, "1", lambda *_: None)
        self.happened = []
        self.broken = []
        """Mistakes of the controllers, of which a test fails unless it takes them away."""
        self.candidates = []

    @property
    def now(self):
        return self.cluster.clock.boottime()

    def start(self, *rest, **more):
        self.candidates.append(Candidate(self, *rest, **more))
        return self.candidates[-1]

    def node(self, name):
        return self.cluster.get(NODES, name)

    def mark(self, name):
        return self.node(name)["metadata"].get("annotations", {}).get("lastcall.dev/failover")

    def out_of_service(self, name):
        return [one for one in self.node(name)["spec"].get("taints", ()) if "out-of-service" in one["key"]]

    def place(self, app="db"):
        """Where it runs and is Ready."""
        found = [
            one
            for one in self.cluster.all(PODS)
            if one["metadata"].get("labels", {}).get("app") == app
            and one["status"].get("phase") == "Running"
            and condition_of(one, "Ready").get("status") == "True"
        ]
        return found[0]["spec"]["nodeName"] if found else None

    async def until(self, condition, seconds=60):
        begun = self.now
        await self.cluster.until(condition, seconds)
        return self.now - begun

    async def says(self, node, *, seconds, gone=(), outcome="Running"):
        """The node's agent writes that the machine goes down."""
        wall = self.cluster.clock.wall()
        pods = [
            {"namespace": "default", "name": "p", "uid": uid, "unmountedTime": timestamp(wall), "outcome": "Graceful"}
            for uid in gone
        ]
        status = {"outcome": outcome, "startTime": timestamp(wall), "deadlineTime": timestamp(wall + seconds)}
        obj = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "NodeShutdown",
            "metadata": {"name": node},
            "spec": {"nodeName": node, "bootID": f"boot-{node}-{self.nodes.boots[node]}"},
        }
        await self.cluster.create(NODE_SHUTDOWNS, obj, namespace="")
        said = {"status": {**status, "pods": pods}}
        await self.cluster.patch(NODE_SHUTDOWNS, node, said, subresource="status", namespace="")

    async def promises(self, node, promise):
        """The node's agent renews the Lease that says that its watchdog is armed."""
        now = micro_timestamp(self.cluster.clock.wall())
        obj = {"metadata": {"name": node, "annotations": to_annotations(promise)}, "spec": {"renewTime": now}}
        try:
            await self.cluster.create(LEASES, obj, namespace=NODES_NAMESPACE)
        except AlreadyExists:
            await self.cluster.patch(LEASES, node, obj, namespace=NODES_NAMESPACE)

    def verbs(self, verb=None):
        """What was done that cannot be undone."""
        found = [one for one in self.happened if getattr(one, "ended", None) is not None and hasattr(one, "verb")]
        return [one.verb for one in found] if verb is None else [one for one in found if one.verb == verb]


def definition(plural="fencepolicies", kind="FencePolicy"):
    """Of a kind of lastcall's, without its rules."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.lastcall.dev"},
        "spec": {
            "group": "lastcall.dev",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": "v1alpha1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
            ],
        },
    }


def workload(name, **spec):
    labels = {"app": name}
    mounts = [{"name": "data", "mountPath": "/data"}] if "volumeClaimTemplates" in spec else []
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


def failing_over(test=None, *, policy=None, without=(), settle=30):
    """Runs ``test(world)``: five nodes, a Deployment ``web``, a StatefulSet ``db`` with a volume, and one policy."""
    if test is None:
        return functools.partial(failing_over, policy=policy, without=without, settle=settle)
    storage = Storage(InMemoryVolumes(), virtual.VirtualClock())
    every = [
        *(
            Scheduler(),
            NodeLifecycleController(),
            TaintEvictionController(),
            PodGarbageCollector(),
            DeploymentController(),
            ReplicaSetController(),
            StatefulSetController(),
        ),
        *(VolumeBinderController(), ClaimProtectionController(), VolumeProtectionController()),
        *(AttachDetachController(), Provisioner(storage), Attacher(storage)),
    ]

    @functools.wraps(test)
    async def run(cluster):
        nodes = Machines(cluster, storage)
        world = World(nodes)
        async with _prepared(world, policy or {}, volumes="attachdetach" not in without):
            await cluster.settle(settle)
            await test(world)

    return on_cluster(*(one for one in every if one.name not in without))(run)


@contextlib.asynccontextmanager
async def _prepared(world, policy, *, volumes):
    cluster, nodes = world.cluster, world.nodes
    await nodes.begin(*NAMES)
    for name in NAMES:
        await nodes.show(name)
    await cluster.create(DEFINITIONS, definition(), namespace="")
    await cluster.create(DEFINITIONS, definition("nodeshutdowns", "NodeShutdown"), namespace="")
    for name in (ELECTION.namespace, NODES_NAMESPACE):
        await cluster.create(NAMESPACES, {"metadata": {"name": name}}, namespace="")
    await cluster.create(LEASES, {"metadata": {"name": ELECTION.name}}, namespace=ELECTION.namespace)
    spec = {**POLICY, **policy}
    obj = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": "p"}, "spec": spec}
    await cluster.create(POLICIES, obj, namespace="")
    await cluster.create(STORAGE_CLASSES, storage_class(), namespace="")
    await cluster.create(DEPLOYMENTS, workload("web", replicas=1))
    if volumes:
        templates = [claim("data")]
        await cluster.create(
            STATEFUL_SETS, workload("db", replicas=1, serviceName="db", volumeClaimTemplates=templates)
        )
    await cluster.until(lambda: world.place("web") and (world.place("db") or not volumes), 60)
    try:
        yield
        assert world.broken == []
    finally:
        for one in world.candidates:
            one.process.kill()
        await nodes.end()
