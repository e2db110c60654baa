"""What stands beside the lab's figures: HTTPS without us, the disk, SQLite's commits, and etcd where there is one.

As a program it serves HTTPS as barely as asyncio can: every request gets the same pod, as the lab answers a create, and
``/stream`` gets it as lines, as many as the next ``/send/NUMBER`` says. Arguments: certificate and key, PEM. It prints
its port.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

import httptools
import msgspec
from lab_work import rate, sent

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.https_transport import HttpsTransport, ServerEndpoint, TransportLimits
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.values.request import Request

BODY = sent()


class Bare(asyncio.Protocol):
    """HTTP/1.1 with kept connections; one request after the other."""

    def __init__(self, answer, streams):
        self._answer = answer
        self._streams = streams

    def connection_made(self, transport):
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""

    def data_received(self, data):
        self._parser.feed_data(data)

    def on_url(self, url):
        self._target = url

    def on_message_complete(self):
        if self._target == b"/stream":
            self._transport.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            self._streams.append(self._transport)
            return
        if self._target.startswith(b"/send/"):
            self._sending = asyncio.create_task(self._send(int(self._target[6:])))
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(self._answer), self._answer))

    async def _send(self, count):
        """Eight lines at a time, as the lab does at most, and no more before most of them are on their way."""
        line = self._answer.rstrip() + b"\n"
        part = b"%x\r\n%s\r\n" % (len(line), line)
        self._streams[:] = streams = [stream for stream in self._streams if not stream.is_closing()]
        for begun in range(0, count, 8):
            for stream in streams:
                stream.write(part * min(8, count - begun))
            while any(stream.get_write_buffer_size() > 65536 for stream in streams):
                await asyncio.sleep(0.001)


async def serve(certificate, key):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    answer, streams = await _answer(), []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Bare(answer, streams), "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _answer():
    """The pod as the lab has it."""
    server = ApiServer(SystemClock(), Random(1))
    headers = {"content-type": "application/json"}
    account = b'{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}'
    await server.handle(Request.of("POST", "/api/v1/namespaces/default/serviceaccounts", headers=headers, body=account))
    response = await server.handle(Request.of("POST", "/api/v1/namespaces/default/pods", headers=headers, body=BODY))
    assert response.status == 201, response.body
    return response.body


# -- from the bench ----------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def bare_https(directory):
    """A client's transport to that program."""
    authority = certificates.new_authority("bench-authority", now=time.time())
    pair = certificates.server_certificate("bench", ["127.0.0.1"], authority, now=time.time())
    certificate, key = directory / "bare.pem", directory / "bare.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    command = [sys.executable, __file__, str(certificate), str(key)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        port = int(await process.stdout.readline())
        endpoint = ServerEndpoint("127.0.0.1", port, authority=authority.certificate.decode())
        with contextlib.closing(
            HttpsTransport(endpoint, StaticCredentials(Credential(token="t")), limits=TransportLimits(connections=64))
        ) as http:
            yield http
    finally:
        process.terminate()
        await process.wait()


async def posts(http, clients, count):
    """Pods sent a second, each answered by a pod."""

    async def post(_):
        await http.request("POST", "/", {"content-type": "application/json"}, BODY)

    return await rate(clients, count, post)


async def lines(http, crowd, watchers, count):
    """The same lines to many readers: lines a second until the last has read all. ``crowd`` makes readers of streams."""
    answers = [await http.request("GET", "/stream", {}, b"", stream=True) for _ in range(watchers)]
    readers = crowd([answer.body for answer in answers])
    try:
        heard = readers.expect(count)
        began = time.perf_counter()
        await http.request("GET", f"/send/{count}", {}, b"")
        await heard
        return watchers * count / (time.perf_counter() - began)
    finally:
        await readers.close()


def syncs(directory, count):
    """Writes of 4 KB a second, each on the disk before the next (fdatasync)."""
    with (directory / "syncs").open("wb", buffering=0) as file:
        began = time.perf_counter()
        for _ in range(count):
            file.write(b"\0" * 4096)
            os.fdatasync(file.fileno())
        return count / (time.perf_counter() - began)


def commits(directory, group, count):
    """Rows of 3 KB a second, so many in each commit of SQLite (WAL, synchronous=FULL)."""
    with contextlib.closing(sqlite3.connect(directory / f"commits-{group}.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS objects (name TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID")
        began = time.perf_counter()
        for start in range(0, count, group):
            connection.execute("BEGIN IMMEDIATE")
            rows = [(f"pod-{number:05d}", BODY) for number in range(start, start + group)]
            connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        return count / (time.perf_counter() - began)


@contextlib.asynccontextmanager
async def etcd(directory):
    """A client's transport to an etcd of one member on the same disk, by its JSON gateway, without TLS."""
    urls = [f"http://127.0.0.1:{_free_port()}" for _ in range(2)]
    data = tempfile.mkdtemp(prefix="etcd-", dir=directory)
    command = ["etcd", f"--data-dir={data}", "--name=bench", f"--initial-cluster=bench={urls[1]}"]
    command += [f"--{name}-urls={urls[0]}" for name in ("listen-client", "advertise-client")]
    command += [f"--{name}-urls={urls[1]}" for name in ("listen-peer", "initial-advertise-peer")]
    nowhere = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
    process = await asyncio.create_subprocess_exec(*command, **nowhere)
    http = HttpsTransport(
        ServerEndpoint.from_url(urls[0]), StaticCredentials(Credential()), limits=TransportLimits(connections=64)
    )
    try:
        await _until_up(http)
        yield http
    finally:
        http.close()
        process.terminate()
        await process.wait()
        shutil.rmtree(data)


async def _until_up(http):
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(Exception):
                if (await put(http, 0)).status == 200:
                    return
            await asyncio.sleep(0.05)


async def put(http, number):
    """One key of 3 KB."""
    key = base64.b64encode(f"/registry/pods/default/pod-{number:05d}".encode()).decode()
    body = msgspec.json.encode({"key": key, "value": base64.b64encode(BODY).decode()})
    return await http.request("POST", "/v3/kv/put", {"content-type": "application/json"}, body)


def etcd_version():
    """Empty if there is none."""
    if not shutil.which("etcd"):
        return ""
    said = subprocess.run(["etcd", "--version"], capture_output=True, text=True, check=False).stdout
    return said.partition("\n")[0].rpartition(" ")[2]


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    asyncio.run(serve(*map(Path, sys.argv[1:])))
