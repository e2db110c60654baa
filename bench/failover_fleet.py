"""A large cluster in which nothing happens but heartbeats, behind the lab's HTTPS: nodes, their Leases, and pods.

Arguments: the kubeconfig that it writes, how many nodes, how many pods on each. Every ten seconds each Lease is renewed, and
every five minutes each node's status, as kubelets do. ``GET /bench`` says how many bytes it has sent for lists, lists
of pods and watches, and in how many events. Prints ``ready``; SIGTERM ends it.
"""

import asyncio
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
from failover_ground import NAME, Ground, now
from lab_work import pod

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.aio import wait_first
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values.request import Response
from lastcall_lab.control_plane.control_plane import ControlPlane, ControlPlaneLocation
from lastcall_lab.control_plane.controller_set import make_controllers

RENEWED, REPORTED = 10, 300
"""Seconds: a quarter of what a Lease lasts, and ``nodeStatusReportFrequency``, by their defaults."""


class Counting:
    """Answers as the API server does, and counts what that sends."""

    def __init__(self, server):
        self._server = server
        self._sent = Counter(list=0, pods=0, watch=0, events=0)

    async def handle(self, request):
        if request.path == "/bench":
            return Response(200, {"content-type": "application/json"}, msgspec.json.encode(self._sent))
        response = await self._server.handle(request)
        pods = request.path.endswith("/pods")
        if isinstance(response.body, Iterator):
            response.body = self._counted_list(response.body, pods=pods)
        elif not isinstance(response.body, bytes):
            response.body = self._counted(response.body)
        elif request.method == "GET" and b'List"' in response.body[:200]:
            self._count_list(response.body, pods=pods)
        return response

    def _counted_list(self, pieces, *, pods):
        """A long list, which is made as it is sent."""
        for piece in pieces:
            self._count_list(piece, pods=pods)
            yield piece

    def _count_list(self, piece, *, pods):
        self._sent["list"] += len(piece)
        self._sent["pods"] += len(piece) if pods else 0

    async def _counted(self, chunks):
        try:
            async for chunk in chunks:
                self._sent["watch"] += len(chunk)
                self._sent["events"] += chunk.count(b"\n")
                yield chunk
        finally:
            await chunks.aclose()


class Fleet:
    """Writes straight into the store what kubelets would send."""

    def __init__(self, store, nodes):
        self._store = store
        self._nodes = nodes

    def load(self, each):
        """What is there at the beginning; a pod is some 3 KB, which nobody is to read."""
        found = []
        for number in range(self._nodes):
            found += [
                (self._node(number), self._node_object(number)),
                (self._lease(number), self._lease_object(number)),
                *(self._pod(number, one) for one in range(each)),
            ]
        stored = [
            (key, index + 1, msgspec.json.encode(_whole(key, obj, index + 1))) for index, (key, obj) in enumerate(found)
        ]
        self._store.load(len(stored), stored)

    async def beat(self):
        """For ever; each node in its turn."""
        turns = 0
        while True:
            number = turns % self._nodes
            self._put(self._lease(number), self._lease_object(number))
            if turns // self._nodes % (REPORTED // RENEWED) == number % (REPORTED // RENEWED):
                self._put(self._node(number), self._node_object(number))
            turns += 1
            if turns % max(1, self._nodes // 500) == 0:
                await asyncio.sleep(RENEWED / self._nodes * max(1, self._nodes // 500))

    def _put(self, key, obj):
        self._store.put(key, _whole(key, obj, 0), expected=self._store.get(key).revision)

    def _node(self, number):
        return StorageKey("nodes", "", f"{NAME}-{number:05d}")

    def _lease(self, number):
        return StorageKey("leases.coordination.k8s.io", "kube-node-lease", f"{NAME}-{number:05d}")

    def _pod(self, number, one):
        made = pod(one, f"p-{number:05d}")
        made["spec"]["nodeName"] = f"{NAME}-{number:05d}"
        made["metadata"] = {"labels": made["metadata"]["labels"]}
        made["status"] = {"phase": "Running"}
        return StorageKey("pods", "default", f"p-{number:05d}-{one:02d}"), made

    def _lease_object(self, number):
        spec = {"holderIdentity": f"{NAME}-{number:05d}", "leaseDurationSeconds": 40, "renewTime": now()}
        return {"metadata": {}, "spec": spec}

    def _node_object(self, number):
        """As large as a real one is: labels, addresses, capacity, five conditions, fifty images."""
        name = f"{NAME}-{number:05d}"
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        labels |= {"topology.kubernetes.io/zone": f"zone-{number % 3}", "topology.kubernetes.io/region": "region"}
        kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Ready")
        conditions = [
            {"type": kind, "status": str(kind == "Ready"), "lastHeartbeatTime": now()[:19] + "Z", "reason": "Kubelet"}
            for kind in kinds
        ]
        size = {"cpu": "64", "memory": "263856852Ki", "pods": "110", "ephemeral-storage": "1007934Mi"}
        images = [{"names": [f"registry.example.com/shop/image-{one}:1.27.3"], "sizeBytes": 10**8} for one in range(50)]
        info = {
            "bootID": f"00000000-1111-4222-8333-{number:012d}",
            "systemUUID": f"00000000-4444-4555-8666-{number:012d}",
        }
        status = {"nodeInfo": info, "conditions": conditions, "capacity": size, "allocatable": size, "images": images}
        return {"metadata": {"labels": labels}, "spec": {"podCIDR": "10.0.0.0/24"}, "status": status}


def _whole(key, obj, revision):
    unique = f"{key.resource[:4]}-{key.name}"
    about = {
        "name": key.name,
        "uid": unique,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": str(revision),
    }
    about |= {"namespace": key.namespace} if key.namespace else {}
    return obj | {"metadata": about | obj["metadata"]}


async def main(access, nodes, each):
    store = Store()
    fleet = Fleet(store, int(nodes))
    fleet.load(int(each))
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    with tempfile.TemporaryDirectory(prefix="lc-bench-") as directory:
        place, nobody = ControlPlaneLocation(Path(directory), Path(access)), [one.name for one in make_controllers("")]
        plane = ControlPlane(place, SystemClock(), Random(1), store=store, without=nobody)
        await plane.prepare()
        plane.pages = Counting(plane.server)
        await wait_first(plane.run(), fleet.beat(), _ready(plane), stopped.wait())


async def _ready(plane):
    await plane.up.wait()
    await Ground(Client(InProcessTransport(plane.server))).install()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
