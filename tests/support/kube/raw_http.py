"""An HTTP server on a raw socket that answers as a test says, and a client of it."""

import asyncio
import contextlib
import ssl

from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each connection with ``serve(reader, writer)``; ``requests`` are what came, ``connections`` how many."""

    def __init__(self, serve):
        self._serve = serve
        self.requests, self.connections = [], 0
        self._open = {}

    async def handle(self, reader, writer):
        self.connections += 1
        self._open[writer] = asyncio.current_task()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._serve(self, reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
        self._open.pop(writer, None)

    async def end(self):
        tasks = list(self._open.values())
        for writer in self._open:
            writer.transport.abort()
        await asyncio.gather(*tasks)

    async def request(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0)
        self.requests.append((head, await reader.readexactly(length)))
        return head


@contextlib.asynccontextmanager
async def talking(serve, *, credential=None, tls=None, authority="", limits=None, **rest):
    server = Server(serve)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    scheme = "https" if tls else "http"
    url = f"{scheme}://127.0.0.1:{listener.sockets[0].getsockname()[1]}/base"
    client = HttpsTransport(
        ServerEndpoint.from_url(url, authority=authority, **rest),
        credential or StaticCredentials(Credential()),
        limits=limits,
    )
    try:
        yield client, server
    finally:
        client.close()
        listener.close()
        await listener.wait_closed()
        await server.end()


def always(answer):
    async def serve(server, reader, writer):
        while True:
            await server.request(reader)
            writer.write(answer)
            await writer.drain()

    return serve


async def get(client, **rest):
    return await client.request("GET", "/x?a=1", {"accept": "*/*"}, b"", **rest)
