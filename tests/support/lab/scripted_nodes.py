"""What a kubelet says to the API server, said by a test: a node, its lease, its heartbeats, and the end of its pods."""

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall_lab.apiserver.values.object_meta import micro_timestamp, timestamp

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


class Beats:
    """Nodes that say that they are ready, and renew their leases, until one is silenced."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.silent = set()
        self.ahead = 0.0
        """By so many seconds the clocks of all nodes are, as their leases say."""
        self._group = OrderedTaskGroup()

    async def start(self, *names, labels=None, room=None):
        """New nodes; each is ready and renews its lease every ten seconds from now on."""
        for name in names:
            named = {"kubernetes.io/hostname": name, **(labels or {}).get(name, {})}
            node = {"metadata": {"name": name, "labels": named}, "status": {"capacity": room or ROOM}}
            await self.cluster.create(NODES, node, namespace="")
            await self.say(name)
            self._group.start(self._renew(name), f"heart of {name}")

    async def stop(self):
        """The end of all."""
        await self._group.cancel()

    async def back(self, name):
        """It speaks again."""
        self.silent.discard(name)
        await self.say(name)

    async def say(self, name, status="True", **more):
        """One status, as a kubelet patches it."""
        now = timestamp(self.cluster.clock.wall())
        before = self.cluster.get(NODES, name)
        old = {one["type"]: one for one in (before.get("status") or {}).get("conditions") or ()}
        conditions = []
        for kind, said in {"Ready": status, "MemoryPressure": "False", "DiskPressure": "False", **more}.items():
            since = old[kind]["lastTransitionTime"] if kind in old and old[kind]["status"] == said else now
            times = {"lastHeartbeatTime": now, "lastTransitionTime": since}
            conditions.append({"type": kind, "status": said, "reason": "Kubelet", "message": "m", **times})
        await self._patch(name, {"conditions": conditions})

    async def using(self, name, *volumes):
        """The volumes that the node says it uses."""
        await self._patch(name, {"volumesInUse": list(volumes)})

    async def run(self, pod, node="", *, ready=True):
        """The pod runs (it is bound first if a node is said)."""
        if node:
            await self.cluster.bind(pod, node)
        await self.cluster.ready(pod, ready)

    async def confirm(self, pod):
        """The last word of a kubelet on a pod that is being deleted."""
        found = self.cluster.get(PODS, pod)
        try:
            await self.cluster.delete(PODS, pod, grace=0, uid=found["metadata"]["uid"])
        except (NotFound, Conflict):
            pass

    async def _patch(self, name, status):
        client = self.cluster.client
        await client.patch(NODES, name, {"status": status}, subresource="status", kind=STRATEGIC)

    async def _renew(self, name):
        while True:
            if name not in self.silent:
                lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
                renewed = {"spec": {"renewTime": micro_timestamp(self.cluster.clock.wall() + self.ahead)}}
                lease["spec"].update(renewed["spec"])
                try:
                    await self.cluster.create(LEASES, lease, namespace="kube-node-lease")
                except AlreadyExists:
                    await self.cluster.patch(LEASES, name, renewed, namespace="kube-node-lease")
            await self.cluster.clock.sleep(10)
