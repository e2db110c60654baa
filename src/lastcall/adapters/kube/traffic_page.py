"""The agent's page ``/metrics/traffic``: made when it is asked for, since only drains read it."""

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.errors import LastcallError
from lastcall.model.node_traffic import NodeTraffic, PodConnections, render_traffic
from lastcall.model.proxy_sync import ProxySync
from lastcall.ports.node import Clock

TRAFFIC_PATH = "/metrics/traffic"

MOST_ADDRESSES = 110
"""The most addresses of one question: those of the pods of a node. More are not looked up."""

log = logging.getLogger(__name__)


async def _find_none(addresses: Collection[str]) -> None:
    """No rules can be read."""


def ask_for_addresses(addresses: Collection[str]) -> str:
    """The path and query of the page that asks for these addresses too."""
    return f"{TRAFFIC_PATH}?{urlencode([('address', one) for one in addresses])}" if addresses else TRAFFIC_PATH


def _read_addresses(query: str) -> Sequence[str]:
    """The addresses in a query, in their usual form; anything else is left out, and never shown on the page."""
    try:
        said = parse_qsl(query, max_num_fields=MOST_ADDRESSES)
    except ValueError:  # more fields than that
        return ()
    found = set()
    for name, value in said:
        with contextlib.suppress(ValueError):
            if name == "address" and "%" not in value:
                found.add(str(ipaddress.ip_address(value)))
    return sorted(found)


class TrafficPage:
    """What ``proxy`` and ``connections``, which may block, say; a kube-proxy that does not answer is left out.

    ``find_named`` says which addresses the kernel's rules name, None if they cannot be read; it is asked only for a node
    whose kube-proxy does not tell. ``observe`` gets the seconds that kube-proxy took to follow, once for each last change that a reading shows.
    """

    def __init__(
        self,
        proxy: KubeProxyMetrics,
        connections: Callable[[], PodConnections],
        clock: Clock,
        *,
        find_named: Callable[[Collection[str]], Awaitable[Collection[str] | None]] = _find_none,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._proxy = proxy
        self._connections = connections
        self._clock = clock
        self._find_named = find_named
        self._observe = observe
        self._queued: float | None = None

    async def render_text(self, query: str = "") -> bytes:
        """The page, as text/plain; version=0.0.4. ``query`` may ask for addresses (``ask_for_addresses``)."""
        sync, latency = await self._read_proxy()
        if sync:
            self._note_change(sync)
        connections = await asyncio.to_thread(self._connections)
        named = None if sync else await self._look_up(_read_addresses(query))
        return render_traffic(NodeTraffic(sync, latency, connections, named), self._clock.wall())

    async def _look_up(self, addresses: Collection[str]) -> Mapping[str, bool] | None:
        found = await self._find_named(addresses) if addresses else None
        return None if found is None else {one: one in found for one in addresses}

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
