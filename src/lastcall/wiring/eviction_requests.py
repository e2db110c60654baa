"""Connects what the guard does with EvictionRequests to the cluster."""

from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.eviction_requests import KubeEvictionCluster, KubeEvictionObjects
from lastcall.guard.eviction_requests.eviction_request_controller import EvictionRequestController
from lastcall.guard.eviction_requests.eviction_request_loop import EvictionRequestLoop, EvictionRound
from lastcall.guard.eviction_requests.guard_responder import GuardResponder
from lastcall.guard.eviction_requests.pod_evictor import PodEvictor
from lastcall.model.eviction_request_mode import EvictionRequestMode
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
