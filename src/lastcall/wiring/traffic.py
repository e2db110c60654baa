"""Connects the watch of departing pods' traffic to a cluster: its EndpointSlices and the pages of its agents."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from random import Random
from typing import NamedTuple

from lastcall.adapters.kube.agent_traffic import AgentTraffic
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.kube.reader_token import ReaderToken
from lastcall.drain.traffic.traffic_watch import TrafficWatch
from lastcall.manifests.daemon_set import METRICS_PORT
from lastcall.ports.node import Clock


class AgentAddress(NamedTuple):
    """Where a node's agent serves its metrics over TLS: the Node's InternalIP."""

    node: str
    address: str


@contextlib.asynccontextmanager
async def open_traffic_watch(
    client: Client,
    clock: Clock,
    random: Random,
    agents: Iterable[AgentAddress],
    *,
    authority: str,
    port: int = METRICS_PORT,
    settle: float | None = None,
    observe: Callable[[float], None] = lambda _: None,
) -> AsyncIterator[TrafficWatch]:
    """A watch, closed at the end. ``client`` lists and watches EndpointSlices, and creates a token of the reader.

    ``authority`` (PEM) has signed the agents' certificates: the cluster's own where kubelets let it sign theirs. A node whose
    certificate it has not signed is never sent a token, and counts as one that does not tell.
    """
    addresses = {one.node: one.address for one in agents}

    def locate(node: str) -> ServerEndpoint | None:
        address = addresses.get(node)
        return ServerEndpoint(address, port, authority=authority) if address else None

    reader = AgentTraffic(locate, ReaderToken(client, clock), clock)
    slices = KubePodEndpoints(lambda: client, clock, random)
    watch = TrafficWatch(slices, reader, clock=clock, random=random, settle=settle, observe=observe)
    try:
        yield watch
    finally:
        await watch.close()
        reader.close()
