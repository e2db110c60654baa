"""Nodes that are gone, with pods and volumes, on any API server: made, said to be dead by an administrator, and removed.

All that it makes is in the namespace ``bench-failover`` or has a name that begins with that. A pod is that of ``lab_work``;
one in ten has a volume that is attached to its node.
"""

import asyncio
import contextlib
import datetime as dt
import re
import time

from lab_work import pod, rate

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import ATTACHMENTS, LEASES, NAMESPACES, NODES, PODS, VOLUMES, resource
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.manifests.controller import Choices, objects

NAME = "bench-failover"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
EACH = 10
"""Of so many pods one has a volume."""
CLIENTS = 32
LEASE = 40
"""Seconds that a kubelet's Lease lasts by default. Half of them after the last sign of life a person is believed."""

REVISION = re.compile(rb'"resourceVersion":"([0-9]+)"')
"""Of an object in a line of a watch: its first one is the object's own."""

_INSTALLED = ("Namespace", "CustomResourceDefinition", "Lease")


class Ground:
    """On one API server; ``turn`` tells the nodes and pods of one measurement from those of others."""

    def __init__(self, client, *, nodes):
        self._client = client
        self._count = nodes
        self._turn = ""

    async def install(self):
        """What the controller's manifests hold but what runs in pods; a policy without a fencer; what pods need."""
        for obj in objects(Choices()):
            if obj["kind"] in _INSTALLED:
                group, _, version = obj["apiVersion"].rpartition("/")
                await self._there(resource(group, version, f"{obj['kind'].lower()}s"), obj)
        await self._there(NAMESPACES, {"metadata": {"name": NAME}})
        await self._there(resource("", "v1", "serviceaccounts"), {"metadata": {"name": "default", "namespace": NAME}})
        policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": NAME}}
        spec = {"mode": "Enforce", "nodeSelector": {"matchLabels": {NAME: "gone"}}, "fencers": []}
        await _eventually(lambda: self._there(POLICIES, policy | {"spec": spec}))

    async def make(self, turn, pods):
        """Nodes that have been silent for long, and what is on them."""
        self._turn = turn
        await rate(CLIENTS, self._count, self._make_node)
        await rate(CLIENTS, pods // EACH, self._make_volume)
        await rate(CLIENTS, pods, lambda i: self._make_pod(i, mounts=i < pods // EACH))

    async def say(self):
        """What an administrator does whose machines are off: the taint, on all nodes."""
        await rate(CLIENTS, self._count, self.say_of)

    async def say_of(self, number):
        """The same, on one of them."""
        await self._client.patch(NODES, self._node(number), {"spec": {"taints": [TAINT]}})

    async def remove(self, pods):
        """What is left of a turn."""
        await rate(CLIENTS, pods // EACH, lambda i: self._gone(VOLUMES, f"{self._node(i)}-{i}"))
        await rate(CLIENTS, self._count, lambda i: self._gone(NODES, self._node(i)))
        await rate(CLIENTS, self._count, lambda i: self._gone(LEASES, self._node(i), "kube-node-lease"))

    @contextlib.asynccontextmanager
    async def until_gone(self, pods):
        """A call that waits until so many pods and their attachments have gone since; it says when the last went."""
        async with contextlib.AsyncExitStack() as stack:
            crowds = [
                (await stack.enter_async_context(self._deletions(PODS, NAME)), pods),
                (await stack.enter_async_context(self._deletions(ATTACHMENTS, "")), pods // EACH),
            ]

            async def wait():
                await asyncio.gather(*(crowd.heard_of(count) for crowd, count in crowds))
                return time.perf_counter()

            yield wait

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

    async def _make_node(self, number):
        name = self._node(number)
        await self._client.create(NODES, {"metadata": {"name": name, "labels": {NAME: "gone"}}})
        info = {"bootID": f"boot-{name}", "systemUUID": f"machine-{name}"}
        ready = {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        status = {"nodeInfo": info, "conditions": [ready]}
        await self._client.patch(NODES, name, {"status": status}, subresource="status", kind=STRATEGIC)
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE, "renewTime": _now()}
        await self._client.create(LEASES, {"metadata": {"name": name}, "spec": spec}, namespace="kube-node-lease")

    async def _make_volume(self, number):
        name, node = f"{self._node(number)}-{number}", self._node(number)
        csi = {"driver": "bench.example.com", "volumeHandle": name}
        claim = {"namespace": NAME, "name": f"claim-{self._turn}-{number}"}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi, "claimRef": claim}
        await self._client.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
        attached = {"attacher": "bench.example.com", "nodeName": node, "source": {"persistentVolumeName": name}}
        await self._client.create(ATTACHMENTS, {"metadata": {"name": f"{NAME}-{name}"}, "spec": attached})

    async def _make_pod(self, number, *, mounts):
        made = pod(number, f"p-{self._turn}")
        made["spec"]["nodeName"] = self._node(number)
        made["spec"]["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
        if mounts:
            claim = {"claimName": f"claim-{self._turn}-{number}"}
            made["spec"]["volumes"].append({"name": "disk", "persistentVolumeClaim": claim})
        await self._client.create(PODS, made, namespace=NAME)

    async def _there(self, kind, obj):
        with contextlib.suppress(AlreadyExists):
            await self._client.create(kind, obj, namespace=obj["metadata"].get("namespace", ""))

    async def _gone(self, kind, name, namespace=""):
        with contextlib.suppress(NotFound):
            await self._client.delete(kind, name, namespace=namespace)


class Deletions:
    """Reads a watch, and counts what is deleted. A server ends the watch of a reader who is too slow: then another begins."""

    def __init__(self, watch, revision):
        self._count = 0
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._follow(watch, revision))

    async def heard_of(self, count):
        """Until so many have been."""
        while self._count < count:
            assert not self._task.done(), f"the watch ended after {self._count} of {count}"
            self._changed.clear()
            await self._changed.wait()

    async def close(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self, watch, revision):
        try:
            while True:
                revision = await self._read(await watch(revision), revision)
        finally:
            self._changed.set()

    async def _read(self, stream, revision):
        """Until the stream ends; the last revision that it has told of."""
        rest = b""
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                *lines, rest = (rest + chunk).split(b"\n")
                self._count += sum(line.startswith(b'{"type":"DELETED"') for line in lines)
                if lines:
                    revision = REVISION.search(lines[-1])[1].decode()
                self._changed.set()
        return revision


def _now():
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _eventually(call):
    """Again until the kind is served."""
    for _ in range(100):
        with contextlib.suppress(NotFound, Conflict):
            return await call()
        await asyncio.sleep(0.1)
    return await call()
