"""The agents' pages of traffic for the nodes of a rig, over TLS, and their reader."""

import asyncio
import time

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.connections import ConnectionTable
from lastcall.adapters.kube.agent_traffic import AgentTraffic
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.metrics_readers import Verdict
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings
from lastcall.adapters.kube.traffic_page import TRAFFIC_PATH, TrafficPage
from lastcall.aio import OrderedTaskGroup
from lastcall_lab.apiserver.authentication import certificates

TOKEN = "the-drain's"


class TrafficServers:
    """One server for each node, which asks the metrics of the node's feeder; ``reader`` asks the servers."""

    def __init__(self, directory, nodes, feeders):
        self._directory = directory / "pki"
        self._nodes, self._feeders = nodes, feeders
        self._group = OrderedTaskGroup()

    async def __aenter__(self):
        self._directory.mkdir()
        authority = write_certificate(self._directory)
        servers = {}
        for node, feeder in zip(self._nodes, self._feeders, strict=True):
            proxy = KubeProxyMetrics(f"http://127.0.0.1:{feeder.metrics_port}")
            page = TrafficPage(proxy, ConnectionTable().count_connections, SystemClock())
            settings = SecureMetricsSettings(address=("127.0.0.1", 0), kubelet_pki=self._directory)
            servers[node] = SecureMetrics(settings, lambda: b"", self._judge, more={TRAFFIC_PATH: page.render_text})
            self._group.start(servers[node].run(), f"the page of {node}")
        async with asyncio.timeout(60):
            while not all(server.port for server in servers.values()):
                await asyncio.sleep(0.01)
        self.locate = lambda node: ServerEndpoint("127.0.0.1", servers[node].port, authority=authority)
        self.reader = AgentTraffic(self.locate, StaticCredentials(Credential(token=TOKEN)), SystemClock())
        return self

    async def __aexit__(self, *_):
        self.reader.close()
        await self._group.cancel()

    async def _judge(self, token):
        return Verdict.ALLOWED if token == TOKEN else Verdict.FORBIDDEN


def write_certificate(directory):
    """A kubelet's certificate and key for 127.0.0.1; returns the authority that has signed it."""
    authority = certificates.new_authority("rig", now=time.time())
    pair = certificates.server_certificate("node", ["127.0.0.1"], authority, now=time.time())
    (directory / "kubelet.crt").write_bytes(pair.certificate)
    (directory / "kubelet.key").write_bytes(pair.key)
    return authority.certificate.decode()
