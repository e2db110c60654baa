"""What is read of kube-proxy's metrics, from a server on the loopback interface."""

import asyncio

import pytest

from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.errors import Unavailable

PAGE = b"""# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 61
# HELP kubeproxy_network_programming_duration_seconds [ALPHA] In Cluster Network Programming Latency in seconds
# TYPE kubeproxy_network_programming_duration_seconds histogram
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.25"} 10
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.5"} 30
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="1"} 200
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="2"} 200
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 200
kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv4"} 101.5
kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"} 200
kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4",le="0.001"} 7
"""


def answer(body, status=b"200 OK"):
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


async def read_from(said):
    """What is read from a server that answers each request with these bytes, and then ends the connection."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        return await KubeProxyMetrics(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}").read_latency()
    finally:
        server.close()
        await server.wait_closed()


async def test_the_bound_that_covers_the_observed_changes():
    assert await read_from(answer(PAGE)) == 1.0


@pytest.mark.parametrize("page", [b"", b"go_goroutines 61\n", PAGE.replace(b"} 200", b"} 0").replace(b"} 10", b"} 0")])
async def test_nothing_observed(page):
    assert await read_from(answer(page.replace(b"} 30", b"} 0"))) is None


@pytest.mark.parametrize(
    "said",
    [
        answer(b"not found", b"404 Not Found"),
        answer(b"", b"500 Internal Server Error"),
        answer(b'kubeproxy_network_programming_duration_seconds_bucket{le="0.25} ten\n'),
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
        answer(b"x" * 9_000_000),
    ],
)
async def test_other_answers_are_no_latency(said):
    with pytest.raises(Unavailable):
        await read_from(said)


async def test_nobody_listens():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(Unavailable):
        await KubeProxyMetrics(f"http://127.0.0.1:{port}").read_latency()
