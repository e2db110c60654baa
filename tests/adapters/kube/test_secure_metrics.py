"""Metrics over TLS, for readers whom an API server permits: the lab's, with RBAC."""

import asyncio
import ssl
import time
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import secure_metrics
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.metrics_readers import MetricsReaders, Verdict
from lastcall.adapters.kube.resources import dict_resource
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings, serve_secure_metrics
from lastcall.aio import cancel_and_wait
from lastcall.errors import Unavailable
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN, UserInfo

RBAC = "rbac.authorization.k8s.io"
AGENT = "system:serviceaccount:lastcall-system:lastcall-agent"
READER, NOBODY = "the-reader's", "nobody's"


def bound(name, role, user):
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


class World:
    """An API server with a user who may read metrics, one who may not, and the agent as a delegate."""

    def __init__(self):
        self.server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
        self.server.identities.add(READER, "prometheus", ("system:authenticated",))
        self.server.identities.add(NOBODY, "nobody", ("system:authenticated",))
        self.admin = Client(InProcessTransport(self.server, ADMIN), manager="test")
        self.asked = 0
        self.agent = Client(InProcessTransport(self.server, UserInfo(AGENT, ("system:authenticated",))))
        self.clock = SystemClock()
        self.readers = MetricsReaders(self._client, self.clock)

    def _client(self):
        self.asked += 1
        return self.agent

    async def begin(self, *, delegate=True):
        roles, bindings = (dict_resource(RBAC, "v1", name) for name in ("clusterroles", "clusterrolebindings"))
        rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        await self.admin.create(roles, {"metadata": {"name": "reader"}, "rules": rules})
        await self.admin.create(bindings, bound("reader", "reader", "prometheus"))
        if delegate:
            await self.admin.create(bindings, bound("agent", "system:auth-delegator", AGENT))
        return self


def write_certificate(directory, name="server"):
    authority = certificates.new_authority(name, now=time.time())
    pair = certificates.server_certificate("n1", ["127.0.0.1"], authority, now=time.time())
    (directory / "kubelet.crt").write_bytes(pair.certificate)
    (directory / "kubelet.key").write_bytes(pair.key)
    return authority.certificate.decode()


async def get(port, authority, token=None, path="/metrics", method="GET"):
    context = ssl.create_default_context(cadata=authority)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    head = f"Authorization: Bearer {token}\r\n" if token else ""
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: n1\r\n{head}\r\n".encode())
    said, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(said.split()[1]), body


async def listening(server):
    async with asyncio.timeout(60):
        while not server.port:
            await asyncio.sleep(0.01)
    return server.port


def secure(directory, judge):
    settings = SecureMetricsSettings(address=("127.0.0.1", 0), kubelet_pki=directory)
    return SecureMetrics(settings, lambda: b"lastcall_agent_armed 1\n", judge)


async def test_readers_are_those_whom_the_api_server_permits(tmp_path):
    world, authority = await World().begin(), write_certificate(tmp_path)
    server = secure(tmp_path, world.readers.judge)
    async with serve_secure_metrics(server):
        port = await listening(server)
        assert await get(port, authority, READER) == (200, "lastcall_agent_armed 1\n")
        assert (await get(port, authority, NOBODY))[0] == 403
        assert (await get(port, authority, "forged"))[0] == 401
        assert (await get(port, authority))[0] == 401
        assert (await get(port, authority, READER, "/readyz"))[0] == 404
        assert (await get(port, authority, READER, method="POST"))[0] == 400


async def test_an_answer_is_reused_for_a_while(tmp_path):
    world = await World().begin()
    for _ in range(3):
        assert await world.readers.judge(READER) is Verdict.ALLOWED
        assert await world.readers.judge(NOBODY) is Verdict.FORBIDDEN
    assert world.asked == 2


async def test_without_the_right_to_ask_nobody_reads(tmp_path):
    world, authority = await World().begin(delegate=False), write_certificate(tmp_path)
    server = secure(tmp_path, world.readers.judge)
    async with serve_secure_metrics(server):
        code, body = await get(await listening(server), authority, READER)
    assert (code, "cannot create resource" in body) == (503, True), body


async def test_without_an_api_server_nobody_reads():
    with pytest.raises(Unavailable):
        await MetricsReaders(lambda: None, SystemClock()).judge(READER)


async def allow(token):
    return Verdict.ALLOWED


async def test_a_certificate_that_comes_later_and_is_replaced(tmp_path, monkeypatch, caplog):
    """The kubelet writes it when it starts, and renews it."""
    monkeypatch.setattr(secure_metrics, "RELOAD_SECONDS", 0.05)
    server = secure(tmp_path, allow)
    running = asyncio.create_task(server.run())
    await asyncio.sleep(0.3)
    assert caplog.text.count("there is no kubelet-server-current.pem or kubelet.crt") == 1
    first = write_certificate(tmp_path)
    port = await listening(server)
    assert (await get(port, first))[0] == 200
    second = write_certificate(tmp_path, "another")
    async with asyncio.timeout(60):
        while True:
            try:
                assert (await get(port, second))[0] == 200
                break
            except ssl.SSLError:
                await asyncio.sleep(0.02)
    await cancel_and_wait(running)


async def test_a_client_without_tls_gets_nothing(tmp_path):
    write_certificate(tmp_path)
    server = secure(tmp_path, allow)
    async with serve_secure_metrics(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", await listening(server))
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert b"lastcall" not in await reader.read()
        writer.close()
