"""Commands in containers: at the lab's API server over TLS, and at servers that misbehave."""

import asyncio
import contextlib
import json
from random import Random

import pytest
from support.lab import https_server

from lastcall.adapters.guard.pod_exec import OUTPUT_BYTES, PodExec
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.aio import cancel_and_wait
from lastcall.errors import ApiNotPermitted, InvalidInput, LastcallError, NotFound, RequestRefused, Unavailable
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.subresources.kubelet_api import STDERR, STDOUT
from lastcall_lab.apiserver.values.request import ADMIN, Request

POD = Pod(metadata=ObjectMetadata(name="db-0", namespace="default", uid="u"))


class Session:
    """An execution of what a test says: parts of output, then the exit code, or nothing for ever."""

    def __init__(self, parts, code):
        self.parts, self.code, self.killed = parts, code, asyncio.Event()

    async def write(self, data):
        raise AssertionError(data)

    def end_input(self):
        pass

    def resize(self, width, height):
        pass

    async def output(self):
        for part in self.parts:
            yield part
        if self.code is None:
            await self.killed.wait()

    async def wait(self):
        return self.code

    def kill(self):
        self.killed.set()


class Node:
    def __init__(self):
        self.session = Session([], 0)
        self.started = []

    async def execute(self, pod, container, command, *, stdin, tty):
        if isinstance(self.session, Exception):
            raise self.session
        self.started.append((container, command, stdin, tty))
        return self.session


@pytest.fixture
async def node(tmp_path):
    """A kubelet behind the lab's API server; ``node.run`` runs a command by it."""
    server, made = ApiServer(SystemClock(), Random(1)), Node()
    server.identities.add("t", "kubernetes-admin", ["system:masters"])
    server.streams.kubelets = lambda name: made
    for path, body in (
        ("serviceaccounts", {"metadata": {"name": "default"}}),
        (
            "pods",
            {"metadata": {"name": "db-0"}, "spec": {"nodeName": "n1", "containers": [{"name": "db", "image": "i"}]}},
        ),
    ):
        kind = {"content-type": "application/json"}
        request = Request.of(
            "POST", f"/api/v1/namespaces/default/{path}", headers=kind, body=json.dumps(body).encode(), user=ADMIN
        )
        assert (await server.handle(request)).status == 201
    node_body = json.dumps({"metadata": {"name": "n1"}}).encode()
    await server.handle(Request.of("POST", "/api/v1/nodes", headers=kind, body=node_body, user=ADMIN))
    async with https_server.serving(server, tmp_path, server.streams.serve_upgrade) as (url, authority):

        def run(*command, pod=POD, token="t", container=""):
            endpoint = ServerEndpoint.from_url(url, authority=authority)
            return PodExec(endpoint, StaticCredentials(Credential(token=token))).execute(pod, container, command)

        made.run = run
        yield made


async def test_outputs_and_exit_code(node):
    node.session = Session([(STDOUT, b"one\n"), (STDERR, b"two\xff\n"), (STDOUT, b"three")], 75)
    found = await node.run("sh", "-c", "a b; c & d=ü", container="db")
    assert (found.code, found.stdout, found.stderr) == (75, "one\nthree", "two\N{REPLACEMENT CHARACTER}\n")
    assert node.started == [("db", ["sh", "-c", "a b; c & d=ü"], False, False)]
    node.session = Session([], 0)
    assert (await node.run("true")).code == 0


async def test_outputs_are_cut(node):
    node.session = Session([(STDOUT, b"x" * 30_000)] * 50 + [(STDERR, b"y" * 70_000)], 0)
    found = await node.run("yes")
    assert (len(found.stdout), len(found.stderr)) == (OUTPUT_BYTES, OUTPUT_BYTES)


async def test_who_gives_up_ends_the_connection(node):
    node.session = Session([(STDOUT, b"x")], None)
    running = asyncio.ensure_future(node.run("sleep"))
    while not node.started:
        await asyncio.sleep(0.01)
    await cancel_and_wait(running)
    async with asyncio.timeout(60):
        await node.session.killed.wait()


async def test_what_the_api_server_refuses(node):
    with pytest.raises(ApiNotPermitted, match="^pod default/db-0: Unauthorized"):
        await node.run("true", token="wrong")
    gone = Pod(metadata=ObjectMetadata(name="gone", namespace="default"))
    with pytest.raises(NotFound, match="pod default/gone"):
        await node.run("true", pod=gone)
    with pytest.raises(RequestRefused, match="container no is not valid"):
        await node.run("true", container="no")
    assert node.started == []


async def test_what_the_kubelet_refuses(node):
    node.session = InvalidInput("x", ["no such program"])
    with pytest.raises(LastcallError, match="no such program") as caught:
        await node.run("nothing")
    assert not isinstance(caught.value, Unavailable)
    node.session = Unavailable("no connection")
    with pytest.raises(Unavailable, match="no connection"):
        await node.run("true")


# -- servers that misbehave --------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def raw_server(answer):
    """Answers the request for a WebSocket by ``answer(key, writer)``; yields the endpoint and what it was asked."""
    asked, over = [], asyncio.Event()

    async def serve(reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            asked.append(head)
            await answer(head, writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield ServerEndpoint.from_url(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), asked
    finally:
        over.set()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)


def run_at(endpoint):
    return PodExec(endpoint, StaticCredentials(Credential(token="s3cret"))).execute(POD, "", ("true",))


async def refuse(_, writer):
    writer.write(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


async def test_a_redirect_is_not_followed():
    async with raw_server(refuse) as (elsewhere, asked_there):

        async def redirect(_, writer):
            writer.write(f"HTTP/1.1 307 x\r\nLocation: ws://{elsewhere.netloc}/\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()

        async with raw_server(redirect) as (endpoint, asked):
            with pytest.raises(LastcallError, match="307"):
                await run_at(endpoint)
        assert len(asked) == 1
        assert asked_there == []


def accept(*frames):
    """A WebSocket that sends these frames and then ends."""

    async def answer(head, writer):
        from websockets.utils import accept_key

        key = next(
            line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")
        )
        lines = [
            "HTTP/1.1 101 x",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accept_key(key)}",
        ]
        writer.write("\r\n".join([*lines, "Sec-WebSocket-Protocol: v5.channel.k8s.io", "", ""]).encode())
        for frame in frames:
            writer.write(
                b"\x82" + (bytes([len(frame)]) if len(frame) < 126 else b"\x7e" + len(frame).to_bytes(2)) + frame
            )
        await writer.drain()

    return answer


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], "failed|without an exit status"),
        ([b"\x01out"], "failed|without an exit status"),
        ([b"\x03{"], "cannot be read"),
        ([b"\x03" + b"[" * 60_000], "cannot be read"),
        ([b"\x03{}"], "without a reason"),
        ([b'\x03{"status":"Failure","message":"who\x1b knows"}'], "cannot be read"),
        ([b'\x03{"status":"Failure","message":"container not found"}'], "container not found"),
        ([b'\x03{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}'], "without a reason"),
    ],
)
async def test_no_exit_status(frames, words):
    async with raw_server(accept(*frames)) as (endpoint, asked):
        with pytest.raises(Unavailable, match=words):
            await run_at(endpoint)
    assert "Bearer s3cret" in asked[0]


async def test_nobody_there():
    async with raw_server(refuse) as (endpoint, _):
        pass
    with pytest.raises(Unavailable, match="failed"):
        await run_at(endpoint)
