"""Joins the agent's watchdog mode to the real device and to the API server."""

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
"""Keeps a watchdog while the context lasts; the second argument hears of each round."""


class AgentWatchdog:
    """The agent's side of it: says whether the node goes down, and shows its rounds as metrics. Nothing without settings."""

    def __init__(self, settings: WatchdogSettings | None, keeping: Keeping | None, metrics: AgentMetrics) -> None:
        self._settings = settings
        self._keeping = keeping
        self._metrics = metrics
        self._keeper: WatchdogKeeper | None = None
        self._rounds: KeeperStatus | None = None

    @contextlib.asynccontextmanager
    async def keep(self) -> AsyncIterator[None]:
        """It is kept while the context lasts, if it is configured and there is one who keeps it."""
        if self._settings is None or self._keeping is None:
            yield
            return
        async with self._keeping(self._settings, self._on_round) as self._keeper:
            yield

    def set_going_down(self, *, going_down: bool) -> None:
        """A node that goes down by itself is not to be disturbed by a reset. Told again and again."""
        if self._keeper:
            self._keeper.suspend("the node is going down" if going_down else "")

    def reconfigure(self, settings: WatchdogSettings | None) -> None:
        """A watchdog that runs stays as it is: what has changed is told."""
        if settings != self._settings:
            log.warning("configuration: watchdog: is taken over when the agent is started again")

    def _on_round(self, told: KeeperStatus) -> None:
        before, self._rounds = self._rounds, told
        self._metrics.set_watchdog(armed=told.armed, bound=told.bound, nodes=told.nodes)
        self._metrics.count_renewals(
            accepted=told.accepted - (before.accepted if before else 0),
            failed=told.failed - (before.failed if before else 0),
            withheld=told.withheld - (before.withheld if before else 0),
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
    """A watchdog that is kept, and given back at the end if that may be. InvalidInput if no API server is named.

    The requests have connections of their own: they wait for nobody else's.
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
    talking = [asyncio.create_task(peers.run(), name="the watchdog's peers")] if peers else []
    keeping = asyncio.create_task(keeper.run(), name="the machine's watchdog")
    try:
        yield keeper
        keeper.request_stop()
        await keeping
    finally:
        await cancel_and_wait(keeping, *talking)
        http.close()


def _make_peers(
    settings: WatchdogSettings, node_name: str, boot: str, client: Client, clock: Clock
) -> WatchdogPeers | None:
    """Who is asked when the API server is lost; None if nobody is."""
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
