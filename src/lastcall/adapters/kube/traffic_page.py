"""The agent's page ``/metrics/traffic``: made when it is asked for, since only drains read it."""

import asyncio
import logging
from collections.abc import Callable

from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.errors import LastcallError
from lastcall.model.node_traffic import NodeTraffic, PodConnections, render_traffic
from lastcall.model.proxy_sync import ProxySync
from lastcall.ports.node import Clock

TRAFFIC_PATH = "/metrics/traffic"

log = logging.getLogger(__name__)


class TrafficPage:
    """What ``proxy`` and ``connections``, which may block, say; a kube-proxy that does not answer is left out.

    ``observe`` gets the seconds that kube-proxy took to follow, once for each last change that a reading shows.
    """

    def __init__(
        self,
        proxy: KubeProxyMetrics,
        connections: Callable[[], PodConnections],
        clock: Clock,
        *,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._proxy = proxy
        self._connections = connections
        self._clock = clock
        self._observe = observe
        self._queued: float | None = None

    async def render_text(self) -> bytes:
        """The page, as text/plain; version=0.0.4."""
        sync, latency = await self._read_proxy()
        if sync:
            self._note_change(sync)
        connections = await asyncio.to_thread(self._connections)
        return render_traffic(NodeTraffic(sync, latency, connections), self._clock.wall())

    def _note_change(self, sync: ProxySync) -> None:
        """What was there at the first reading may be days old. A later synchronization without a change counts once."""
        first, known = self._queued is None, self._queued == sync.queued
        if sync.pending or sync.finished < sync.queued:
            self._queued = self._queued or 0.0
            return
        self._queued = sync.queued
        if not first and not known:
            self._observe(sync.finished - sync.queued)

    async def _read_proxy(self) -> tuple[ProxySync | None, float | None]:
        try:
            return await self._proxy.read_sync()
        except LastcallError as error:
            log.debug("the page of traffic lacks kube-proxy: %s", error)
            return None, None
