"""A node's service proxy: forwards TCP connections to a Service's endpoints in turn, as kube-proxy does."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lastcall.aio import OrderedTaskGroup, Signal, cancel_and_wait, timeout
from lastcall.model.traffic import ServiceEndpoint
from lastcall_lab.traffic.endpoint_table import EndpointTable
from lastcall_lab.traffic.listen_addresses import ListenAddress, listen_address

_CHUNK = 64 * 1024
_CONNECT_SECONDS = 3.0

log = logging.getLogger(__name__)


class ServicePort(NamedTuple):
    """One port of one Service."""

    namespace: str
    service: str
    port: str


class ServiceProxy:
    """Listens for every port of every Service that its node knows. Connections stay with their endpoint."""

    def __init__(self, table: EndpointTable, *, node: int, privileged: bool) -> None:
        self._table = table
        self._node = node
        self._privileged = privileged
        self._servers: dict[ListenAddress, asyncio.Server] = {}
        self._targets: dict[ListenAddress, ServicePort] = {}
        self._turn: dict[ServicePort, int] = {}
        self._connections = OrderedTaskGroup()
        self._changed = Signal()

    def request_update(self) -> None:
        """Schedules an update of the listeners, after a change of the table."""
        self._changed.set()

    @property
    def listen_targets(self) -> Mapping[ListenAddress, ServicePort]:
        """The addresses where it listens, and their Services."""
        return dict(self._targets)

    async def run(self) -> None:
        """Runs until cancelled, which closes its connections."""
        try:
            while True:
                heard = self._changed.next()
                await self._adjust_listeners()
                await heard
        finally:
            for server in self._servers.values():
                server.close()
            await self._connections.cancel()

    def next_endpoint(self, target: ServicePort) -> ServiceEndpoint | None:
        """The next endpoint in turn; None if there is none."""
        found = self._table.ready_endpoints(*target)
        if not found:
            return None
        turn = self._turn.get(target, 0)
        self._turn[target] = turn + 1
        return found[turn % len(found)]

    async def _adjust_listeners(self) -> None:
        wanted = dict(self._desired_listeners())
        for place in [place for place in self._servers if place not in wanted]:
            self._servers.pop(place).close()
            del self._targets[place]
        for place, target in wanted.items():
            self._targets[place] = target
            if place not in self._servers:
                await self._start_listening(place)

    def _desired_listeners(self) -> Sequence[tuple[ListenAddress, ServicePort]]:
        return [
            (
                listen_address(service["spec"]["clusterIP"], port["port"], self._node, privileged=self._privileged),
                ServicePort(service["metadata"]["namespace"], service["metadata"]["name"], port.get("name", "")),
            )
            for service in self._table.known_services
            if service["spec"].get("clusterIP", "None") not in ("None", "")
            for port in service["spec"].get("ports") or ()
            if port.get("protocol", "TCP") == "TCP"
        ]

    async def _start_listening(self, place: ListenAddress) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connections.start(self._forward_connection(place, reader, writer), f"connection to {place}")

        try:
            self._servers[place] = await asyncio.start_server(connected, place.address, place.port)
        except OSError as error:
            log.error("no proxy for %s at %s port %s: %s", self._targets[place], place.address, place.port, error)
            del self._targets[place]

    async def _forward_connection(
        self, place: ListenAddress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forwards a connection. A client without an endpoint is reset, as by a node's firewall rules."""
        target = self._targets.get(place)
        endpoint = self.next_endpoint(target) if target else None
        try:
            if endpoint is None:
                raise ConnectionRefusedError
            async with timeout(_CONNECT_SECONDS):
                there = await asyncio.open_connection(endpoint.address, endpoint.port)
        except (OSError, TimeoutError):
            writer.transport.abort()
            return
        try:
            await self._copy_both_ways((reader, writer), there)
        finally:
            for end in (writer, there[1]):
                end.close()

    async def _copy_both_ways(
        self,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Copies until the endpoint closes its side; a close of the client's side is only passed on."""
        up = asyncio.create_task(_copy_stream(here[0], there[1]), name="to the endpoint")
        try:
            await _copy_stream(there[0], here[1])
        finally:
            await cancel_and_wait(up)


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()
