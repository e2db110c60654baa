"""Connects what the guard and a drain do with EvictionRequests to the cluster."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.eviction_requests import KubeEvictionCluster, KubeEvictionObjects, KubeEvictionRequests
from lastcall.aio import cancel_and_wait
from lastcall.guard.eviction_requests.eviction_request_controller import EvictionRequestController
from lastcall.guard.eviction_requests.eviction_request_loop import EvictionRequestLoop, EvictionRound
from lastcall.guard.eviction_requests.eviction_requester import EvictionRequester
from lastcall.guard.eviction_requests.guard_responder import GuardResponder
from lastcall.guard.eviction_requests.pod_evictor import PodEvictor
from lastcall.guard.eviction_requests.requested_evictions import RequestedEvictions
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.ports.drain import PodEvictions
from lastcall.ports.guard_cluster import GuardFactsReader, GuardPolicies, GuardRecords
from lastcall.ports.node import Clock


def make_eviction_loop(
    mode: EvictionRequestMode,
    client: Client,
    *,
    facts: GuardFactsReader,
    records: GuardRecords,
    policies: GuardPolicies,
    clock: Clock,
    random: Random,
) -> EvictionRequestLoop | None:
    """What the guard that leads runs; None if it is switched off."""
    if mode is EvictionRequestMode.OFF:
        return None
    controls = mode is EvictionRequestMode.CONTROL
    objects = KubeEvictionObjects(client, clock, random, with_requests=controls)
    cluster = KubeEvictionCluster(client)
    responder = GuardResponder(objects, cluster, facts=facts, records=records, policies=policies, clock=clock)
    parts: list[EvictionRound] = [responder]
    if controls:
        controller = EvictionRequestController(objects, cluster, clock)
        parts = [controller, responder, PodEvictor(objects, cluster, clock)]
    return EvictionRequestLoop(objects, cluster, parts, clock)


@contextlib.asynccontextmanager
async def open_requested_evictions(
    client: Client, direct: PodEvictions, clock: Clock, random: Random
) -> AsyncIterator[PodEvictions | None]:
    """Evictions by EvictionRequests, as long as it is open; None where the API server does not serve them.

    ``direct`` asks the Eviction API. Raises the API's error if it is not known whether they are served.
    """
    if not await KubeEvictionCluster(client).is_served():
        yield None
        return
    objects = KubeEvictionObjects(client, clock, random, with_requests=True)
    following = asyncio.create_task(objects.run(), name="follow EvictionRequests")
    try:
        yield RequestedEvictions(EvictionRequester(KubeEvictionRequests(client)), objects, direct, clock)
    finally:
        await cancel_and_wait(following)
