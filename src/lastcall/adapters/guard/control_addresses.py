"""The addresses of nodes and of the API server, which no provider may connect to."""

import asyncio
import socket
from collections.abc import Iterator, Sequence

from lastcall.adapters.guard.address_rules import Address, parse_address
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.recent_reads import RecentReads
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, NODES
from lastcall.errors import Unavailable
from lastcall.model.base import Facts
from lastcall.ports.node import Clock

REMEMBERED_SECONDS = 60.0
"""A new node's address is no address of a pod; a list of 5,000 nodes is not read for each connection."""

_API_SERVER = "kubernetes.io/service-name=kubernetes"


class _NodeAddress(Facts, frozen=True):
    address: str = ""


class _AddressStatus(Facts, frozen=True):
    addresses: tuple[_NodeAddress, ...] | None = None


class _AddressedNode(Facts, frozen=True):
    status: _AddressStatus = _AddressStatus()


class _SliceEndpoint(Facts, frozen=True):
    addresses: tuple[str, ...] = ()


class _AddressSlice(Facts, frozen=True):
    endpoints: tuple[_SliceEndpoint, ...] | None = None


class ControlAddresses:
    """Needs ``list`` of nodes, and of endpointslices in the namespace ``default``.

    ``hosts``: how this process reaches the API server, names or addresses.
    """

    def __init__(self, client: Client, clock: Clock, *, hosts: Sequence[str]) -> None:
        self._client = client
        self._hosts = hosts
        self._reads = RecentReads(clock)

    async def read(self) -> frozenset[Address]:
        """All of them, a minute old at most. Errors are those of the API client; Unavailable if a name is unknown."""
        return await self._reads.read("control", self._read_all, seconds=REMEMBERED_SECONDS)

    async def _read_all(self) -> frozenset[Address]:
        nodes = await self._client.list(NODES.with_shape(_AddressedNode))
        slices = await self._client.list(
            ENDPOINT_SLICES.with_shape(_AddressSlice), namespace="default", labels=_API_SERVER
        )
        texts = [one.address for node in nodes.items for one in node.status.addresses or ()]
        texts += [text for found in slices.items for one in found.endpoints or () for text in one.addresses]
        return frozenset([*_parse_all(texts), *_parse_all(await self._resolve_hosts())])

    async def _resolve_hosts(self) -> Sequence[str]:
        loop, found = asyncio.get_running_loop(), []
        for host in self._hosts:
            try:
                answers = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                raise Unavailable(f"the API server's address {host}: {error.strerror or error}") from error
            found += [str(where[0]) for *_, where in answers]
        return found


def _parse_all(texts: Sequence[str]) -> Iterator[Address]:
    for text in texts:
        if (address := parse_address(text)) is not None:
            yield address
