"""Joins the agent's watchdog mode to the real device and to the API server."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from lastcall.adapters.boot import boot_id
from lastcall.adapters.clock import SystemClock
from lastcall.adapters.datagrams import udp
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.members import KubeMembers
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.adapters.metrics import Metrics
from lastcall.adapters.watchdog_device import Kernel, WatchdogFile
from lastcall.aio import cancel
from lastcall.model.watchdog import WatchdogSettings
from lastcall.ports import Clock
from lastcall.watchdog.keeper import Keeper
from lastcall.watchdog.peers import Peers
from lastcall.watchdog.telling import Told

log = logging.getLogger(__name__)

Keeping = Callable[[WatchdogSettings, Callable[[Told], None]], AbstractAsyncContextManager[Keeper]]
"""Keeps a watchdog while the context lasts; the second argument hears of each round."""


class MachinesWatchdog:
    """The agent's side of it: says whether the node goes down, and shows its rounds as metrics. Nothing without settings."""

    def __init__(self, settings: WatchdogSettings | None, keeping: Keeping | None, metrics: Metrics) -> None:
        self._settings = settings
        self._keeping = keeping
        self._metrics = metrics
        self._keeper: Keeper | None = None
        self._rounds: Told | None = None

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """It is kept while the context lasts, if it is configured and there is one who keeps it."""
        if self._settings is None or self._keeping is None:
            yield
            return
        async with self._keeping(self._settings, self._on_round) as self._keeper:
            yield

    def hold(self, *, going_down: bool) -> None:
        """A node that goes down by itself is not to be disturbed by a reset. Told again and again."""
        if self._keeper:
            self._keeper.hold("the node is going down" if going_down else "")

    def reconfigure(self, settings: WatchdogSettings | None) -> None:
        """A watchdog that runs stays as it is: what has changed is told."""
        if settings != self._settings:
            log.warning("configuration: watchdog: is taken over when the agent is started again")

    def _on_round(self, told: Told) -> None:
        before, self._rounds = self._rounds, told
        self._metrics.watchdog(armed=told.armed, bound=told.bound, nodes=told.nodes)
        self._metrics.renewed(
            accepted=told.accepted - (before.accepted if before else 0),
            failed=told.failed - (before.failed if before else 0),
            withheld=told.withheld - (before.withheld if before else 0),
        )


@contextlib.asynccontextmanager
async def kept(
    settings: WatchdogSettings,
    on_round: Callable[[Told], None],
    *,
    node_name: str,
    kubeconfig: str = "",
    kernel: Kernel | None = None,
) -> AsyncIterator[Keeper]:
    """A watchdog that is kept, and given back at the end if that may be. InvalidInput if no API server is named.

    The requests have connections of their own: they wait for nobody else's.
    """
    clock = SystemClock()
    found = access.find(clock, os.environ, kubeconfig=kubeconfig)
    http = Http(found.endpoint, found.credentials)
    client = Client(http.urgent, manager="lastcall-agent")
    boot = boot_id()
    peers = _peers(settings, node_name, boot, Client(http, manager="lastcall-agent"), clock)
    keeper = Keeper(
        settings,
        device=WatchdogFile(settings.device, kernel),
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
        keeper.leave()
        await keeping
    finally:
        await cancel(keeping, *talking)
        http.close()


def _peers(settings: WatchdogSettings, node_name: str, boot: str, client: Client, clock: Clock) -> Peers | None:
    """Who is asked when the API server is lost; None if nobody is."""
    if settings.peers is None:
        return None
    return Peers(
        node_name,
        boot_id=boot,
        port=settings.peers.port,
        members=KubeMembers(client),
        opens=udp,
        clock=clock,
        pet=settings.pet_seconds,
        report=settings.armed().report,
        draw=os.urandom,
    )
