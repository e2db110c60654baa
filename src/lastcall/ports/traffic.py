"""Ports through which a drain sees where the traffic of pods goes."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from lastcall.model.node_traffic import NodeTraffic
from lastcall.model.traffic import EndpointSlice


class NamespaceSlices(Protocol):
    """The EndpointSlices of some namespaces, as last heard of."""

    def start(self, namespaces: Iterable[str]) -> None:
        """Begins to list and watch the slices of these namespaces, and of those of later calls."""
        ...

    def slices_of(self, namespace: str) -> Sequence[EndpointSlice] | None:
        """All of them; None while they are not listed, or may not be."""
        ...

    def next_change(self) -> "asyncio.Future[None]":
        """A future that is done when an answer of ``slices_of`` may have changed since this call."""
        ...

    async def stop(self) -> None:
        """Ends the watches."""
        ...


class TrafficReader(Protocol):
    """What the agents of nodes tell about their traffic."""

    async def read_traffic(self, node: str, addresses: Collection[str]) -> NodeTraffic:
        """One reading; its times are CLOCK_BOOTTIME seconds of the reader. Unavailable if there is no answer in time.

        ``addresses`` are those of pods, of which a node without the times of a kube-proxy tells whether rules name them.
        """
        ...
