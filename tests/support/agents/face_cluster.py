"""The face of an agent beside a kubelet, at the lab's API server in virtual time, as the kubelet's identity."""

import functools
from random import Random

from support.agents.virtual_parts import RecordingNode
from support.kube.api_servers import Wire

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_objects import KubeNodeObjects
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.kube.pod_owners import KubePodOwners
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, LEASES, NODES, PODS, dict_resource
from lastcall.errors import Unavailable
from lastcall.graceful.cluster.cluster_node_face import SIGTERMS_FIRST_SECONDS, ClusterNodeFace
from lastcall.model.pods import Pod
from lastcall.model.traffic import TrafficSettings
from lastcall.ports.node import RunningPod
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.control_plane.identities import kubelet_identity
from lastcall_lab.fakes.node_volumes import FakeNodeVolumes

SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
TYPED_PODS = PODS.with_shape(Pod)


class FakeProxies:
    """``ports.cluster.ProxyLatency``: answers with ``latency``, or raises it if it is an error; counts how often."""

    latency = None
    asked = 0

    async def read_latency(self):
        self.asked += 1
        if isinstance(self.latency, Exception):
            raise self.latency
        return self.latency


class FaceCluster:
    """A server, the Node n1 with its Lease, and the face of n1's agent.

    ``slow`` delays each answer to it; while ``down`` the server is not reached. ``refuse`` is the answer to its DELETEs.
    """

    def __init__(self, clock):
        self.clock = clock
        self.server = ApiServer(clock, Random(1), authorization=AuthorizationMode.RBAC)
        self.admin = Client(InProcessTransport(self.server))
        self.kubelet = RecordingNode(clock)
        self.slow, self.down, self.asked = 0.0, False, []
        self.refuse = None
        self.reader = self.admin
        self.settle, self.withdrawals, self.proxies = 0.1, [], FakeProxies()
        self.client = Client(Wire(self))
        objects = KubeNodeObjects(lambda: self.client, "n1", clock)
        self._objects = objects
        self.endpoints = KubePodEndpoints(lambda: self.reader, clock, Random(1))
        self.volumes, self.known_pods = FakeNodeVolumes(clock), {}
        self.face = self.new_face()

    def new_face(self, boot_id="b1"):
        """The face of another run of the agent."""
        return ClusterNodeFace(
            self.kubelet,
            self._objects,
            self.endpoints,
            self.proxies,
            KubePodOwners(lambda: self.reader),
            volumes=self.volumes,
            find_pod=self.known_pods.get,
            boot_id=boot_id,
            traffic=TrafficSettings(settle_seconds=self.settle),
            clock=self.clock,
            observe_withdrawal=self.withdrawals.append,
        )

    async def request(self, method, target, headers, body, **options):
        if self.down:
            raise Unavailable("connection refused")
        if method == "DELETE" and self.refuse:
            raise self.refuse
        self.asked.append((self.clock.boottime(), method, target.partition("?")[0]))
        await self.clock.sleep(self.slow)
        user = kubelet_identity("n1")
        return await InProcessTransport(self.server, user).request(method, target, headers, body, **options)

    async def set_up(self):
        await self.admin.create(NODES, {"metadata": {"name": "n1"}})
        await self.admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await self.admin.create(LEASES, {"metadata": {"name": "n1"}}, namespace="kube-node-lease")

    async def begin_shutdown(self):
        """The face's, until the Node is announced if the server answers at once."""
        await self.face.begin_shutdown(100)
        await self.clock.sleep(2 * SIGTERMS_FIRST_SECONDS)

    async def make_pod(self, name, owner="ReplicaSet", *, uid="u", labels=None, **spec):
        version = "apps/v1" if owner == "StatefulSet" else "v1"
        reference = {"apiVersion": version, "kind": owner, "name": "it", "uid": uid, "controller": True}
        made = await self.admin.create(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "labels": labels or {},
                    **({"ownerReferences": [reference]} if owner else {}),
                },
                "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}], **spec},
            },
            namespace="default",
        )
        status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await self.admin.patch(PODS, name, status, namespace="default", subresource="status")
        live = await self.admin.get(TYPED_PODS, name, namespace="default")
        assert live.metadata.uid == made["metadata"]["uid"]
        return RunningPod(pod=live, containers={"main": "id"})

    async def exists(self, name):
        pods = (await self.admin.list(PODS, namespace="default")).items
        return any(pod["metadata"]["name"] == name for pod in pods)

    async def pod(self, name):
        return await self.admin.get(PODS, name, namespace="default")

    async def node(self):
        return await self.admin.get(NODES, "n1")

    async def conditions(self):
        said = (await self.node())["status"].get("conditions", ())
        return {one["type"]: (one["status"], one["reason"]) for one in said}

    async def make_slice(self, *lives):
        endpoints = [
            {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": metadata.name, "uid": metadata.uid}}
            for metadata in (live.pod.metadata for live in lives)
        ]
        body = {"metadata": {"name": "web-1"}, "addressType": "IPv4", "endpoints": endpoints, "ports": []}
        await self.admin.create(ENDPOINT_SLICES, body, namespace="default")

    async def withdraw(self, after):
        await self.clock.sleep(after)
        body = {"endpoints": []}
        await self.admin.patch(ENDPOINT_SLICES, "web-1", body, namespace="default")


def in_cluster(test):
    """Runs ``test(cluster)``."""

    async def scene():
        cluster = FaceCluster(virtual.VirtualClock())
        await cluster.set_up()
        try:
            await test(cluster)
        finally:
            await cluster.face.close()

    @functools.wraps(test)
    def run():
        virtual.run(scene())

    del run.__wrapped__
    return run
