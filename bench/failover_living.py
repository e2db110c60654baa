"""Nodes that live beside those that are gone: their Leases are renewed for as long as they are looked at."""

import asyncio
import contextlib
import time

from failover_ground import CLIENTS, NAME, now
from lab_work import rate

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import LEASES, NODES
from lastcall.aio import cancel

LEASE = 400
"""Seconds that their Leases last, ten times a kubelet's default: 5,000 nodes on two cores would use the server for nothing else."""
RENEWED = LEASE / 4
"""Seconds between two renewals, as a kubelet has it."""


class Living:
    """So many nodes through one client."""

    def __init__(self, client, count):
        self._client = client
        self._count = count

    @contextlib.asynccontextmanager
    async def renewed(self):
        """They are there, and are renewed until the end; then they are left."""
        await rate(CLIENTS, self._count, self._make)
        task = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            assert not task.done(), task
            await cancel(task)

    async def _make(self, number):
        name = self._name(number)
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        await self._client.create(NODES, {"metadata": {"name": name, "labels": labels}})
        info = {"bootID": f"boot-{name}", "systemUUID": f"machine-{name}"}
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now()[:19] + "Z"}
        status = {"status": {"nodeInfo": info, "conditions": [ready]}}
        await self._client.patch(NODES, name, status, subresource="status", kind=STRATEGIC)
        lease = {"holderIdentity": name, "leaseDurationSeconds": LEASE, "renewTime": now()}
        await self._client.create(LEASES, {"metadata": {"name": name}, "spec": lease}, namespace="kube-node-lease")

    async def _renew(self):
        """For ever, one after the other, each in its time."""
        began, number = time.monotonic(), 0
        while True:
            await asyncio.sleep(began + number * RENEWED / self._count - time.monotonic())
            renewal = {"spec": {"renewTime": now()}}
            await self._client.patch(LEASES, self._name(number % self._count), renewal, namespace="kube-node-lease")
            number += 1

    @staticmethod
    def _name(number):
        return f"{NAME}-alive-{number:05d}"
