"""A proxy in front of an API server, over TLS, that answers some requests with 500 in its place."""

import asyncio
import contextlib
import json
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import yaml

CERTIFICATE = Path(__file__).parents[1] / "self_signed.pem"
SICK = json.dumps({"kind": "Status", "status": "Failure", "message": "etcdserver: no leader", "code": 500}).encode()
FAILURE = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


class FailingProxy:
    """``fails(number, method, target)`` says which requests are not passed on, counted from 1; ``passed`` and ``failed`` count."""

    def __init__(self, server, fails=lambda number, method, target: False):
        parts = urlsplit(server)
        self._upstream = parts.hostname, parts.port
        self.fails = fails
        self.passed, self.failed = 0, 0
        self._tasks = set()

    async def _handle(self, reader, writer):
        self._tasks.add(task := asyncio.current_task())
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        upstream = await asyncio.open_connection(*self._upstream, ssl=context)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                while True:
                    await self._exchange(reader, writer, *upstream)
        finally:
            self._tasks.discard(task)
            for one in (writer, upstream[1]):
                one.transport.abort()

    async def _exchange(self, reader, writer, up_reader, up_writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        body = await reader.readexactly(_length(head) or 0)
        if self.fails(self.passed + self.failed + 1, method, target):
            self.failed += 1
            writer.write(FAILURE % (len(SICK), SICK))
            return await writer.drain()
        self.passed += 1
        up_writer.write(head + body)
        head = await up_reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        if b"transfer-encoding: chunked" in head.lower():
            while (size := await up_reader.readline()) and int(size, 16):
                writer.write(size + await up_reader.readexactly(int(size, 16) + 2))
                await writer.drain()
            writer.write(size + await up_reader.readline())
        else:
            writer.write(await up_reader.readexactly(_length(head) or 0))
        return await writer.drain()

    async def end(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _length(head):
    lines = head.decode().lower().split("\r\n")
    return next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), None)


@contextlib.asynccontextmanager
async def proxied(kubeconfig, directory):
    """The proxy, which fails at nothing yet, and a kubeconfig like the other that leads to it."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster = config["clusters"][0]["cluster"]
    proxy = FailingProxy(cluster["server"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    listener = await asyncio.start_server(proxy._handle, "127.0.0.1", 0, ssl=context)
    port = listener.sockets[0].getsockname()[1]
    config["clusters"][0]["cluster"] = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    path = Path(directory) / "proxied-kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        yield proxy, path
    finally:
        listener.close()
        await proxy.end()
        await listener.wait_closed()
