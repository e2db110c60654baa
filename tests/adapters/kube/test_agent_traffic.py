"""A drain reads the page of a node's agent, over TLS."""

import asyncio

import pytest
from support.traffic.secure_page import TrafficServers

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.agent_traffic import AgentTraffic
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.telemetry.status_server import TEXT, StatusServer
from lastcall.errors import Unavailable

PAGE = b"""\
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds 1
kubeproxy_sync_proxy_rules_last_timestamp_seconds 3
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="2"} 7
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 7
"""


class Proxy:
    """In place of a kube-proxy: its metrics."""

    def __init__(self, page):
        self._server = StatusServer({"/metrics": lambda: (200, TEXT, page)})

    async def __aenter__(self):
        self.metrics_port = await self._server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        self._server.close()


async def test_what_kube_proxy_tells_reaches_the_reader(tmp_path):
    async with Proxy(PAGE) as proxy, TrafficServers(tmp_path, ["n1"], [proxy]) as servers:
        found = await servers.reader.read_traffic("n1")
        clock = SystemClock()
        assert found.latency == 2.0
        assert found.sync.finished - found.sync.queued == pytest.approx(2)
        assert found.sync.queued == pytest.approx(1 - clock.wall() + clock.boottime(), abs=60)
        assert found.connections is not None


@pytest.mark.parametrize("page", [b"", b"nonsense"])
async def test_without_kube_proxy_the_connections_are_told(tmp_path, page):
    async with Proxy(page) as proxy, TrafficServers(tmp_path, ["n1"], [proxy]) as servers:
        found = await servers.reader.read_traffic("n1")
    assert (found.sync, found.latency) == (None, None)
    assert found.connections is not None


async def test_who_may_not_read_has_no_reading(tmp_path):
    async with Proxy(PAGE) as proxy, TrafficServers(tmp_path, ["n1"], [proxy]) as servers:
        other = AgentTraffic(servers.locate, StaticCredentials(Credential(token="forged")), SystemClock())
        try:
            with pytest.raises(Unavailable, match="answers 403"):
                await other.read_traffic("n1")
        finally:
            other.close()


@pytest.mark.parametrize("said", [b"{", b"lastcall_proxy_latency_seconds 3\n", b""])
async def test_another_page_is_no_reading(said):
    server = StatusServer({"/metrics/traffic": lambda: (200, TEXT, said)})
    port = await server.start("127.0.0.1", 0)
    reader = AgentTraffic(
        lambda node: ServerEndpoint("127.0.0.1", port, secure=False), StaticCredentials(Credential()), SystemClock()
    )
    try:
        with pytest.raises(Unavailable):
            await reader.read_traffic("n1")
    finally:
        reader.close()
        server.close()
        await asyncio.sleep(0)


async def test_a_node_without_an_address():
    reader = AgentTraffic(lambda node: None, StaticCredentials(Credential()), SystemClock())
    with pytest.raises(Unavailable, match="n1 has no address"):
        await reader.read_traffic("n1")
