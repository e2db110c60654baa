"""Nodes that live beside those that are gone: their Leases are renewed for as long as they are looked at."""

import asyncio
import contextlib
import time

from failover_ground import CLIENTS, NAME, now
from lab_work import rate

from lastcall.adapters.kube.client import STRATEGIC
from lastcall.adapters.kube.resources import LEASES, NODES
from lastcall.aio import cancel_and_wait

LEASE = 400
"""Seconds that their Leases last, ten times a kubelet's default: 5,000 nodes on two cores would use the server for nothing else."""
RENEWED = LEASE / 4
"""Seconds between two renewals, as a kubelet has it."""


class Living:
    """So many nodes through one client."""

    def __init__(self, client, count, *, tell):
        self._client = client
        self._count = count
        self._tell = tell
        self._late = 0.0

    @contextlib.asynccontextmanager
    async def renewed(self):
        """They are there, and are renewed until the end; then they are left."""
        await rate(CLIENTS, self._count, self._make)
        tasks = [asyncio.create_task(self._renew(first)) for first in range(min(CLIENTS, self._count))]
        try:
            yield
        finally:
            ended = [task for task in tasks if task.done()]
            await cancel_and_wait(*tasks)
            assert not ended, ended
            if self._late > RENEWED / 2:
                self._tell(f"  the figures do not count: Leases of living nodes were renewed {self._late:.0f} s late")

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

    async def _renew(self, first):
        """For ever, every node of so many, each in its time: a server that is slow to answer must not make the others late."""
        began, number = time.monotonic(), first
        while True:
            due = began + number * RENEWED / self._count
            await asyncio.sleep(due - time.monotonic())
            renewal = {"spec": {"renewTime": now()}}
            await self._client.patch(LEASES, self._name(number % self._count), renewal, namespace="kube-node-lease")
            self._late = max(self._late, time.monotonic() - due)
            number += CLIENTS

    @staticmethod
    def _name(number):
        return f"{NAME}-alive-{number:05d}"
