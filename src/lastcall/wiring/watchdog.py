"""Connects the agent's watchdog mode to the device and the API server."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.datagrams import bind_udp
from lastcall.adapters.host.watchdog_device import WatchdogCalls, WatchdogDeviceFile
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.aio import cancel_and_wait
from lastcall.model.watchdog import WatchdogSettings
from lastcall.ports.node import Clock
from lastcall.watchdog.keeper import WatchdogKeeper
from lastcall.watchdog.keeper_status import KeeperStatus
from lastcall.watchdog.peers import WatchdogPeers

log = logging.getLogger(__name__)

Keeping = Callable[[WatchdogSettings, Callable[[KeeperStatus], None]], AbstractAsyncContextManager[WatchdogKeeper]]
"""Keeps a watchdog while the context lasts; the second argument receives the status of each round."""


class AgentWatchdog:
    """The agent's side: suspends the watchdog in a shutdown, exports its metrics. Does nothing without settings."""

    def __init__(self, settings: WatchdogSettings | None, keeping: Keeping | None, metrics: AgentMetrics) -> None:
        self._settings = settings
        self._open_keeper = keeping
        self._metrics = metrics
        self._keeper: WatchdogKeeper | None = None
        self._rounds: KeeperStatus | None = None

    @contextlib.asynccontextmanager
    async def keep(self) -> AsyncIterator[None]:
        """Keeps the watchdog while the context lasts, if it is configured."""
        if self._settings is None or self._open_keeper is None:
            yield
            return
        async with self._open_keeper(self._settings, self._on_round) as self._keeper:
            yield

    def set_going_down(self, *, going_down: bool) -> None:
        """Suspends the watchdog while the node shuts down, so that no reset disturbs it. May be called repeatedly."""
        if self._keeper:
            self._keeper.suspend("the node is shutting down" if going_down else "")

    def reconfigure(self, settings: WatchdogSettings | None) -> None:
        """Keeps a running watchdog as it is, and warns if its settings changed."""
        if settings != self._settings:
            log.warning("configuration: watchdog: a change takes effect when the agent restarts")

    def _on_round(self, status: KeeperStatus) -> None:
        before, self._rounds = self._rounds, status
        self._metrics.set_watchdog(armed=status.armed, bound=status.bound, nodes=status.nodes)
        self._metrics.count_renewals(
            accepted=status.accepted - (before.accepted if before else 0),
            failed=status.failed - (before.failed if before else 0),
            withheld=status.withheld - (before.withheld if before else 0),
        )


@contextlib.asynccontextmanager
async def watchdog_keeper(
    settings: WatchdogSettings,
    on_round: Callable[[KeeperStatus], None],
    *,
    node_name: str,
    kubeconfig: str = "",
    kernel: WatchdogCalls | None = None,
) -> AsyncIterator[WatchdogKeeper]:
    """A running keeper, which withdraws its promise at the end if it can. InvalidInput if no API server is configured.

    Its requests have connections of their own, so that they do not wait for other requests.
    """
    clock = SystemClock()
    found = access.find_access(clock, os.environ, kubeconfig=kubeconfig)
    http = HttpsTransport(found.endpoint, found.credentials)
    client = Client(http.urgent, manager="lastcall-agent")
    boot = boot_id()
    peers = _make_peers(settings, node_name, boot, Client(http, manager="lastcall-agent"), clock)
    keeper = WatchdogKeeper(
        settings,
        device=WatchdogDeviceFile(settings.device, kernel),
        lease=KubeWatchdogLease(client, node_name, clock),
        clock=clock,
        boot_id=boot,
        peers=peers,
        on_round=on_round,
    )
    asking = [asyncio.create_task(peers.run(), name="the watchdog's peers")] if peers else []
    keeping = asyncio.create_task(keeper.run(), name="the machine's watchdog")
    try:
        yield keeper
        keeper.request_stop()
        await keeping
    finally:
        await cancel_and_wait(keeping, *asking)
        http.close()


def _make_peers(
    settings: WatchdogSettings, node_name: str, boot: str, client: Client, clock: Clock
) -> WatchdogPeers | None:
    """The peers to ask when the API server is lost; None if not configured."""
    if settings.peers is None:
        return None
    return WatchdogPeers(
        node_name,
        boot_id=boot,
        port=settings.peers.port,
        members=KubeMembers(client),
        opens=bind_udp,
        clock=clock,
        pet=settings.pet_seconds,
        report=settings.timing_with().report_after,
        draw=os.urandom,
    )
