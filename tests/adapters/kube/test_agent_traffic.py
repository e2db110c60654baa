"""A drain reads the page of a node's agent, over TLS."""

import asyncio

import pytest
from support.traffic.secure_page import TrafficServers

from lastcall import names
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.connections import ConnectionTable
from lastcall.adapters.kube.agent_traffic import AgentTraffic
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.kube.traffic_page import MOST_ADDRESSES, TrafficPage
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
        found = await servers.reader.read_traffic("n1", ())
        clock = SystemClock()
        assert found.latency == 2.0
        assert found.sync.finished - found.sync.queued == pytest.approx(2)
        assert found.sync.queued == pytest.approx(1 - clock.wall() + clock.boottime(), abs=60)
        assert found.connections is not None


@pytest.mark.parametrize("page", [b"", b"nonsense"])
async def test_without_kube_proxy_the_connections_are_told(tmp_path, page):
    async with Proxy(page) as proxy, TrafficServers(tmp_path, ["n1"], [proxy]) as servers:
        found = await servers.reader.read_traffic("n1", ())
    assert (found.sync, found.latency) == (None, None)
    assert found.connections is not None


async def test_without_kube_proxy_the_rules_are_looked_up_for_the_addresses_of_the_question(tmp_path):
    asked = []

    async def find_named(addresses):
        asked.append(addresses)
        return {"10.0.0.1", "10.9.9.9"}

    how = {"find_named": find_named}
    async with Proxy(b"") as proxy, TrafficServers(tmp_path, ["n1"], [proxy], **how) as servers:
        assert (await servers.reader.read_traffic("n1", ())).named is None
        found = await servers.reader.read_traffic("n1", ["fd00::2", "10.0.0.1", "x&y=%\n"])
        many = await servers.reader.read_traffic("n1", [f"10.1.{one}.1" for one in range(256)])
    assert asked[0] == ["10.0.0.1", "fd00::2"]
    assert found.named == {"10.0.0.1": True, "fd00::2": False}
    assert [found.names(one) for one in ("10.0.0.1", "fd00::2", "10.9.9.9")] == [True, False, None]
    assert len(many.named) == MOST_ADDRESSES


async def test_with_kube_proxy_nothing_is_looked_up(tmp_path):
    async def find_named(addresses):
        raise AssertionError

    async with Proxy(PAGE) as proxy, TrafficServers(tmp_path, ["n1"], [proxy], find_named=find_named) as servers:
        assert (await servers.reader.read_traffic("n1", ["10.0.0.1"])).named is None


@pytest.mark.parametrize(
    ("query", "addresses"),
    [
        ("address=10.0.0.1", ["10.0.0.1"]),
        ("address=10.0.0.1&address=%3A%3A1", ["10.0.0.1", "::1"]),
        ("address=&other=10.0.0.1", []),
        ("address=fe80::1%25e%22%7D", []),
        ("&".join(["address=10.0.0.1"] * (MOST_ADDRESSES + 1)), []),
    ],
)
async def test_what_is_no_address_is_not_shown(query, addresses):
    asked = []

    async def find_named(addresses):
        asked.extend(addresses)

    page = TrafficPage(
        KubeProxyMetrics("http://127.0.0.1:9"),
        ConnectionTable().count_connections,
        SystemClock(),
        find_named=find_named,
    )
    assert names.M_RULES_NAME.encode() not in await page.render_text(query)
    assert asked == addresses


async def test_who_may_not_read_has_no_reading(tmp_path):
    async with Proxy(PAGE) as proxy, TrafficServers(tmp_path, ["n1"], [proxy]) as servers:
        other = AgentTraffic(servers.locate, StaticCredentials(Credential(token="forged")), SystemClock())
        try:
            with pytest.raises(Unavailable, match="answers 403"):
                await other.read_traffic("n1", ())
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
            await reader.read_traffic("n1", ())
    finally:
        reader.close()
        server.close()
        await asyncio.sleep(0)


async def test_a_node_without_an_address():
    reader = AgentTraffic(lambda node: None, StaticCredentials(Credential()), SystemClock())
    with pytest.raises(Unavailable, match="n1 has no address"):
        await reader.read_traffic("n1", ())
