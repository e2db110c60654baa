"""API servers for the client's contract: the lab within the process, the lab over TLS, and any cluster by KUBECONFIG.

What lies between client and server can go wrong: ``Wire`` within the process, ``Relay`` on TCP; ``Line`` on both.
"""

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass, replace
from random import Random
from urllib.parse import parse_qs, urlencode

from support.conformance.api_client import unique
from support.lab import https_server

from lastcall import errors
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import CONFIG_MAPS, NAMESPACES
from lastcall.adapters.kube.transport import ApiResponse
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport

TOKEN = "the-token"
OWN = "metadata.name!=kube-root-ca.crt,metadata.name!=openshift-service-ca.crt"
"""A field selector: the config maps of a namespace but for those that controllers put into each."""

TARGETS = ("lab", "lab-https", "kubeconfig")
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410, "message": "old"}


class Relay:
    """A TCP relay to a server, on a port of this machine that stays the same."""

    def __init__(self, host, port):
        self._to, self.port = (host, port), 0
        self._tasks, self._writers = set(), []
        self._flowing = asyncio.Event()

    async def up(self):
        """The server can be reached."""
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self):
        """It cannot, and all connections break: a server that is restarted."""
        self._server.close()
        await self.cut()
        await self._server.wait_closed()

    async def cut(self):
        """All connections break."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers = []
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def stall(self):
        """What is open now hears nothing any more, and is not told so."""
        self._flowing.clear()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        flowing = self._flowing
        try:
            upstream, out = await asyncio.open_connection(*self._to)
            self._writers += [writer, out]
            await asyncio.gather(self._pump(reader, out, flowing), self._pump(upstream, writer, flowing))
        except OSError:
            writer.transport.abort()
        finally:
            self._tasks.discard(asyncio.current_task())

    async def _pump(self, reader, writer, flowing):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not flowing.is_set():
                    continue
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


class Wire:
    """The same towards a server within the process; a transport."""

    def __init__(self, transport):
        self._transport = transport
        self._up = True
        self._streams = []

    async def up(self):
        self._up = True

    async def down(self):
        self._up = False
        await self.cut()

    async def cut(self):
        for stream in self._streams:
            await stream.end(errors.Unavailable("the connection broke"))
        self._streams = []

    def stall(self):
        for stream in self._streams:
            stream.silent = True

    async def request(self, method, target, headers, body, *, stream=False):
        if not self._up:
            raise errors.Unavailable("the API server does not run")
        answer = await self._transport.request(method, target, headers, body, stream=stream)
        if isinstance(answer.body, bytes):
            return answer
        self._streams.append(_Piped(answer.body))
        return replace(answer, body=self._streams[-1])

    def close(self):
        self._transport.close()


class _Piped:
    """A stream whose pieces go through a queue, so that it can break or fall silent while somebody waits for one."""

    def __init__(self, chunks):
        self.silent = False
        self._chunks, self._pieces = chunks, asyncio.Queue()
        self._task = asyncio.create_task(self._pump())

    async def _pump(self):
        async for piece in self._chunks:
            if not self.silent:
                await self._pieces.put(piece)
        await self._pieces.put(StopAsyncIteration())

    async def end(self, error):
        await self._pieces.put(error)
        await self.aclose()

    def __aiter__(self):
        return self

    async def __anext__(self):
        piece = await self._pieces.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def aclose(self):
        if not self._task.done():
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            await self._chunks.aclose()


class Line:
    """A transport that keeps what was asked for, and can give wrong answers to watches."""

    def __init__(self, transport):
        self._transport = transport
        self.asked = []
        self.gone = 0
        """So many watches are answered by 410."""
        self.opened = 0
        """So many watches were answered."""
        self.torn = 0
        """So many pieces of watches are cut in their middle, and the connection breaks there."""
        self.seconds = None
        """How long a watch is asked for, instead of what the client says."""

    async def request(self, method, target, headers, body, *, stream=False):
        path, _, query = target.partition("?")
        said = {name: values[0] for name, values in parse_qs(query).items()}
        self.asked.append((method, path, said))
        if not stream:
            return await self._transport.request(method, target, headers, body)
        if self.gone:
            self.gone -= 1
            return ApiResponse(410, {}, json.dumps(GONE).encode())
        if self.seconds:
            target = f"{path}?{urlencode({**said, 'timeoutSeconds': self.seconds})}"
        answer = await self._transport.request(method, target, headers, body, stream=True)
        self.opened += 1
        return answer if isinstance(answer.body, bytes) else replace(answer, body=_Torn(answer.body, self))

    def close(self):
        self._transport.close()

    @property
    def watches(self):
        """The revisions from which watches were asked for."""
        return [int(said["resourceVersion"]) for _, _, said in self.asked if "watch" in said]


class _Torn:
    def __init__(self, chunks, line):
        self._chunks, self._line, self._broken = chunks, line, False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self._broken:
            raise errors.Unavailable("the connection broke")
        piece = await anext(self._chunks)
        if self._line.torn:
            self._line.torn -= 1
            self._broken = True
            return piece[: len(piece) // 2]
        return piece

    async def aclose(self):
        await self._chunks.aclose()


@dataclass
class Reached:
    """A server by two ways: ``transport`` is the one on which ``trouble`` may come; ``server`` is the lab's own."""

    transport: object
    straight: object
    trouble: object
    server: object = None


class KubeCluster:
    """One server, and a client of it in a namespace of its own.

    ``trouble`` and ``line`` are what may go wrong between the two; ``admin`` is a client who has none of it.
    """

    def __init__(self, reached):
        self.trouble, self.server = reached.trouble, reached.server
        self.line = Line(reached.transport)
        self.client = Client(self.line, manager="test")
        self.admin = Client(reached.straight, manager="test")
        self.other = Client(reached.straight, manager="other")
        self.namespace = unique()

    async def put(self, name, value="1"):
        data = {"metadata": {"name": name}, "data": {"value": value}}
        try:
            return await self.admin.create(CONFIG_MAPS, data, namespace=self.namespace)
        except errors.AlreadyExists:
            return await self.admin.update(CONFIG_MAPS, name, data, namespace=self.namespace)

    async def drop(self, name):
        await self.admin.delete(CONFIG_MAPS, name, namespace=self.namespace)

    async def names(self, **rest):
        rest = {"fields": OWN, **rest}
        found = await self.client.list(CONFIG_MAPS, namespace=self.namespace, **rest)
        return [item["metadata"]["name"] for item in found.items]

    def watching(self, resource=CONFIG_MAPS, **rest):
        rest = {"namespace": self.namespace, "clock": SystemClock(), "random": Random(1), "fields": OWN, **rest}
        return Informer(self.client, resource, **rest)


def lab():
    """A server with somebody who may do everything."""
    server = ApiServer(SystemClock(), Random(1))
    server.identities.add(TOKEN, "kubernetes-admin", ["system:masters"])
    return server


@contextlib.asynccontextmanager
async def relayed(endpoint, credentials, server=None):
    """A server through a relay. Its certificate is checked as ever."""
    relay = Relay(endpoint.host, endpoint.port)
    await relay.up()
    near = replace(endpoint, host="127.0.0.1", port=relay.port, server_name=endpoint.server_name or endpoint.host)
    transport, straight = HttpsTransport(near, credentials), HttpsTransport(endpoint, credentials)
    try:
        yield Reached(transport, straight, relay, server)
    finally:
        transport.close()
        straight.close()
        await relay.down()


@contextlib.asynccontextmanager
async def reached(target, directory):
    """The target."""
    if target == "lab":
        server = lab()
        wire = Wire(InProcessTransport(server))
        yield Reached(wire, InProcessTransport(server), wire, server)
        await wire.cut()
    elif target == "lab-https":
        server = lab()
        async with https_server.serving(server, directory) as (url, authority):
            credentials = StaticCredentials(Credential(token=TOKEN))
            async with relayed(ServerEndpoint.from_url(url, authority=authority), credentials, server) as found:
                yield found
    else:
        access = kubeconfig.find_access(SystemClock(), os.environ)
        async with relayed(access.endpoint, access.credentials) as found:
            yield found


@contextlib.asynccontextmanager
async def kube_cluster(target, directory):
    """A cluster with a namespace for one test, which is removed in the end."""
    async with reached(target, directory) as found:
        cluster = KubeCluster(found)
        await cluster.admin.create(NAMESPACES, {"metadata": {"name": cluster.namespace}})
        try:
            yield cluster
        finally:
            await cluster.admin.delete(NAMESPACES, cluster.namespace)
