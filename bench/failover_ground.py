"""Nodes that are gone, with pods and volumes, on any API server: made, said to be dead by an administrator, and removed.

All that it makes is in the namespace ``bench-failover``, has a name that begins with that, or is a VolumeAttachment to such a
node. A pod is that of ``lab_work``; one in ten has a volume that is attached to its node. Claims, volumes and attachments are
as the controllers for volumes leave them, so that kube-controller-manager finds nothing to do but what is measured.
"""

import asyncio
import contextlib
import datetime as dt
import hashlib
import time

from deletions import Deletions, Gone
from lab_work import pod, rate

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import (
    ATTACHMENTS,
    CLAIMS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    dict_resource,
)
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.manifests.controller import ControllerChoices, controller_objects
from lastcall.model.observed import WatchedAttachment, WatchedNode

NAME = "bench-failover"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
UNREACHABLE = "node.kubernetes.io/unreachable"
"""The taint that kube-controller-manager sets on a node that is silent."""
DRIVER = "bench.example.com"
EACH = 10
"""Of so many pods one has a volume."""
CLIENTS = 32
LEASE = 40
"""Seconds that a kubelet's Lease lasts by default."""

_BY_HAND = ("Deployment", "NetworkPolicy", "PodDisruptionBudget")
"""Of the manifests these are left out: the controller is no pod here."""


class Ground:
    """On one API server; ``turn`` tells the nodes and pods of one measurement from those of others.

    ``lease``: seconds that the Leases of the nodes last. Half of them after the last sign of life a person is believed.
    """

    def __init__(self, client, *, lease=LEASE):
        self._client = client
        self._count = 0
        self._turn = ""
        self._taints = {}
        self.lease = lease
        self.silent_since = 0.0

    async def install(self):
        """What the controller's manifests hold but what runs in pods; a policy without a fencer; what pods need."""
        for obj in controller_objects(ControllerChoices(attach_detach="own")):
            if obj["kind"] not in _BY_HAND:
                group, _, version = obj["apiVersion"].rpartition("/")
                await self._there(dict_resource(group, version, f"{obj['kind'].lower()}s"), obj)
        await self._there(NAMESPACES, {"metadata": {"name": NAME}})
        await self._there(
            dict_resource("", "v1", "serviceaccounts"), {"metadata": {"name": "default", "namespace": NAME}}
        )
        policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": NAME}}
        spec = {"mode": "Enforce", "nodeSelector": {"matchLabels": {NAME: "gone"}}, "fencers": []}
        await self._there(POLICIES, policy | {"spec": spec})

    async def make(self, turn, case):
        """Nodes that have been silent for long, and what is on them."""
        self._turn, self._count, self._taints = turn, case.nodes, {}
        await rate(CLIENTS, case.nodes, lambda i: self._make_node(i, case.attachments))
        self.silent_since = time.monotonic()
        await rate(CLIENTS, case.attachments, self._make_volume)
        await rate(CLIENTS, case.pods, lambda i: self._make_pod(i, mounts=i < case.attachments))
        if case.terminating:
            await rate(CLIENTS, case.pods, self._terminate)

    async def say(self):
        """What an administrator does whose machines are off: the taint, on all nodes. When the first of them had it."""
        said = []

        async def one(number):
            await self.say_of(number)
            said.append(time.perf_counter())

        await rate(CLIENTS, self._count, one)
        return min(said)

    async def say_of(self, number):
        """The same, on one of them; the other taints stay."""
        name = self._node(number)
        await self._client.patch(NODES, name, {"spec": {"taints": [*self._taints.get(name, ()), TAINT]}})

    async def all_unreachable(self):
        """Until kube-controller-manager has tainted all nodes as those that are silent."""
        while len(self._taints) < self._count:
            await asyncio.sleep(0.5)
            for node in (await self._client.list(NODES, labels=f"{NAME}=gone")).items:
                taints = node["spec"].get("taints", ())
                if any(taint["key"] == UNREACHABLE for taint in taints):
                    self._taints[node["metadata"]["name"]] = taints

    async def remove(self):
        """All that is left of a turn."""
        gone = {"labels": f"{NAME}=gone"}
        nodes = [one.metadata.name for one in (await self._client.list(NODES.with_shape(WatchedNode), **gone)).items]
        attached = (await self._client.list(ATTACHMENTS.with_shape(WatchedAttachment))).items
        left = [one.metadata.name for one in attached if one.spec.node_name in nodes]
        await self._all_gone(PODS, await self._names(PODS, NAME), NAME, grace=0)
        await self._all_gone(ATTACHMENTS, left)
        await self._all_gone(CLAIMS, await self._names(CLAIMS, NAME), NAME)
        await self._all_gone(VOLUMES, [name for name in await self._names(VOLUMES) if name.startswith(NAME)])
        await self._all_gone(NODES, nodes)
        await self._all_gone(LEASES, nodes, "kube-node-lease")

    @contextlib.asynccontextmanager
    async def deletions(self):
        """``Gone`` of the pods and the attachments that are deleted from now on."""
        async with self._deletions(PODS, NAME) as pods, self._deletions(ATTACHMENTS, "") as attachments:
            yield Gone(pods, attachments)

    @contextlib.asynccontextmanager
    async def _deletions(self, kind, namespace):
        revision = (await self._client.list_raw(kind, namespace=namespace, fields="metadata.name=nobody"))[1]
        crowd = Deletions(lambda since: self._client.watch(kind, since, namespace=namespace, seconds=3600), revision)
        try:
            yield crowd
        finally:
            await crowd.close()

    # -- objects -------------------------------------------------------------------------------------------------------

    def _node(self, number):
        return f"{NAME}-{self._turn}-{number % self._count:02d}"

    def _volume(self, number):
        return f"{self._node(number)}-{number}"

    def _claim(self, number):
        return f"claim-{self._turn}-{number}"

    def _pod(self, number):
        return f"p-{self._turn}-{number:05d}"

    async def _make_node(self, number, attachments):
        name = self._node(number)
        managed = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        about = {"name": name, "labels": {NAME: "gone"}, "annotations": managed}
        await self._client.create(NODES, {"metadata": about})
        info = {"bootID": f"boot-{name}", "systemUUID": f"machine-{name}"}
        ready = {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        used = [f"kubernetes.io/csi/{DRIVER}^{self._volume(i)}" for i in range(number, attachments, self._count)]
        status = {"nodeInfo": info, "conditions": [ready], "volumesInUse": used}
        status["volumesAttached"] = [{"name": one, "devicePath": ""} for one in used]
        await self._client.patch(NODES, name, {"status": status}, subresource="status", kind=STRATEGIC)
        spec = {"holderIdentity": name, "leaseDurationSeconds": self.lease, "renewTime": now()}
        await self._client.create(LEASES, {"metadata": {"name": name}, "spec": spec}, namespace="kube-node-lease")

    async def _make_volume(self, number):
        """A claim and its volume that are bound to each other, and that the volume is attached."""
        name, claim, node = self._volume(number), self._claim(number), self._node(number)
        shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        spec = shared | {"volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
        about = {"name": claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        made = await self._client.create(CLAIMS, {"metadata": about, "spec": spec}, namespace=NAME)
        of = {"kind": "PersistentVolumeClaim", "namespace": NAME, "name": claim, "uid": made["metadata"]["uid"]}
        spec = shared | {"capacity": {"storage": "1Gi"}, "csi": {"driver": DRIVER, "volumeHandle": name}}
        await self._client.create(VOLUMES, {"metadata": {"name": name}, "spec": spec | {"claimRef": of}})
        bound = {"status": {"phase": "Bound"}}
        await self._client.patch(VOLUMES, name, bound, subresource="status")
        await self._client.patch(CLAIMS, claim, bound, namespace=NAME, subresource="status")
        attached = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": name}}
        name = attachment_name(name, node)
        await self._client.create(ATTACHMENTS, {"metadata": {"name": name}, "spec": attached})
        await self._client.patch(ATTACHMENTS, name, {"status": {"attached": True}}, subresource="status")

    async def _make_pod(self, number, *, mounts):
        made = pod(number, f"p-{self._turn}")
        made["spec"]["nodeName"] = self._node(number)
        made["spec"]["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
        if mounts:
            claim = {"claimName": self._claim(number)}
            made["spec"]["volumes"].append({"name": "disk", "persistentVolumeClaim": claim})
        await self._client.create(PODS, made, namespace=NAME)
        status = {
            "status": {"phase": "Running", "containerStatuses": [_running(one) for one in made["spec"]["containers"]]}
        }
        await self._client.patch(PODS, self._pod(number), status, namespace=NAME, subresource="status")

    async def _terminate(self, number):
        """It stays until its kubelet says that it has ended, which nobody does."""
        left = await self._client.delete(PODS, self._pod(number), namespace=NAME)
        assert left["metadata"]["deletionTimestamp"]

    async def _there(self, kind, obj):
        """Again until its kind and its namespace are served."""
        namespace = obj["metadata"].get("namespace", "")
        for _ in range(100):
            with contextlib.suppress(AlreadyExists):
                try:
                    await self._client.create(kind, obj, namespace=namespace)
                except (NotFound, Conflict):
                    await asyncio.sleep(0.1)
                    continue
            return
        raise RuntimeError(f"{kind.plural}: not served")

    async def _names(self, kind, namespace=""):
        return [one["metadata"]["name"] for one in (await self._client.list(kind, namespace=namespace)).items]

    async def _all_gone(self, kind, names, namespace="", grace=None):
        """Their finalizers are removed, as nobody is there who would do it."""

        async def one(number):
            name = names[number]
            with contextlib.suppress(NotFound):
                left = await self._client.delete(kind, name, namespace=namespace, grace=grace)
                if left.get("metadata", {}).get("finalizers"):
                    await self._client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=namespace)

        await rate(CLIENTS, len(names), one)


def _running(container):
    """Its status. Volumes of a terminating pod are detached at once where no container is said to run."""
    about = {"name": container["name"], "image": container["image"], "imageID": container["image"]}
    return about | {"ready": True, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


def attachment_name(volume, node):
    """As kube-controller-manager names the VolumeAttachments that it makes (``getAttachmentName`` of its CSI plugin)."""
    return f"csi-{hashlib.sha256(f'{volume}{DRIVER}{node}'.encode()).hexdigest()}"


def now():
    """As a Lease has it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
