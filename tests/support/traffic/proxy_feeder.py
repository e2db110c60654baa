"""Feeds a proxy from the EndpointSlices of a lab, some seconds late, and counts what it does as kube-proxy does."""

import asyncio
import time
from random import Random

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import ENDPOINT_SLICES
from lastcall.adapters.telemetry.status_server import TEXT, StatusServer
from lastcall.aio import wait_first
from lastcall.model.traffic import select_endpoints

BOUNDS = [0.25, 0.5, *range(1, 16)]
FAMILY = '{ip_family="IPv4"}'


class ProxyFeeder:
    """Each change of the Service ``shop`` is applied ``delay`` seconds after it was heard of, in order."""

    def __init__(self, client, proxy, delay):
        self.proxy, self.delay = proxy, delay
        self.known = []
        self._client = client
        self._waiting = asyncio.Queue()
        self._pending = 0
        self._queued = self._finished = 0.0
        self._latencies, self._durations = [], []
        self._server = StatusServer({"/metrics": self._page})
        self.metrics_port = 0

    async def run(self):
        self.metrics_port = await self._server.start("127.0.0.1", 0)
        try:
            await wait_first(self._hear(), self._apply())
        finally:
            self._server.close()

    async def _hear(self):
        informer = Informer(self._client, ENDPOINT_SLICES, clock=SystemClock(), random=Random(1), namespace="default")
        last, synced = None, False
        async for change in informer.changes():
            synced = synced or change.kind is ChangeKind.SYNCED
            named = [one for one in informer.objects.values() if one["metadata"]["labels"].get(_LABEL) == "shop"]
            wanted = select_endpoints(named, "http")
            if synced and wanted != last:
                last, self._queued, self._pending = wanted, time.time(), self._pending + 1
                self._waiting.put_nowait((self._queued, wanted))

    async def _apply(self):
        while True:
            heard, wanted = await self._waiting.get()
            await asyncio.sleep(heard + self.delay - time.time())
            begun = time.time()
            self._pending -= 1
            await self.proxy.apply(wanted)
            self.known = wanted
            self._finished = time.time()
            self._durations.append(self._finished - begun)
            self._latencies.append(self._finished - heard)

    def _page(self):
        lines = [
            f"kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{FAMILY} {self._queued!r}",
            f"kubeproxy_sync_proxy_rules_last_timestamp_seconds{FAMILY} {self._finished!r}",
            f"kubeproxy_sync_proxy_rules_endpoint_changes_pending{FAMILY} {self._pending}",
            *_histogram("kubeproxy_sync_proxy_rules_duration_seconds", self._durations),
            *_histogram("kubeproxy_network_programming_duration_seconds", self._latencies),
        ]
        return 200, TEXT, "".join(f"{line}\n" for line in lines).encode()


_LABEL = "kubernetes.io/service-name"


def _histogram(name, values):
    bounds = [*map(float, BOUNDS), float("inf")]
    counts = [(bound, sum(value <= bound for value in values)) for bound in bounds]
    return [
        f'{name}_bucket{{ip_family="IPv4",le="{"+Inf" if bound == float("inf") else bound}"}} {count}'
        for bound, count in counts
    ]
