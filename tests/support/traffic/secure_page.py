"""The agents' pages of traffic over TLS: for the nodes of a lab, as their agents serve them, and for a test of one."""

import asyncio
import contextlib
import time

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.host.connections import ConnectionTable
from lastcall.adapters.kube.agent_traffic import AgentTraffic
from lastcall.adapters.kube.credentials import Credential, StaticCredentials
from lastcall.adapters.kube.endpoint import ServerEndpoint
from lastcall.adapters.kube.metrics_readers import MetricsReaders, Verdict
from lastcall.adapters.kube.proxy_metrics import KubeProxyMetrics
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings
from lastcall.adapters.kube.traffic_page import TRAFFIC_PATH, TrafficPage
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import AlreadyExists
from lastcall.manifests.daemon_set import METRICS_PORT
from lastcall.manifests.metrics_access import metrics_access_objects
from lastcall.names import SYSTEM_NAMESPACE
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.control_plane import secret_files
from lastcall_lab.control_plane.create_objects import create_object

TOKEN = "the-drain's"


class TrafficServers:
    """One server for each node, which asks the metrics of the node's feeder; ``reader`` asks the servers."""

    def __init__(self, directory, nodes, feeders, **of_pages):
        """``of_pages`` are options of the ``TrafficPage``s."""
        self._directory = directory / "pki"
        self._nodes, self._feeders, self._of_pages = nodes, feeders, of_pages
        self._group = OrderedTaskGroup()

    async def __aenter__(self):
        self._directory.mkdir()
        authority = write_certificate(self._directory)
        servers = {}
        for node, feeder in zip(self._nodes, self._feeders, strict=True):
            proxy = KubeProxyMetrics(f"http://127.0.0.1:{feeder.metrics_port}")
            page = TrafficPage(proxy, ConnectionTable().count_connections, SystemClock(), **self._of_pages)
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


def write_certificate(directory, *, address="127.0.0.1", authority=None):
    """A kubelet's certificate and key for its address; returns the authority that has signed it."""
    authority = authority or certificates.new_authority("rig", now=time.time())
    pair = certificates.server_certificate("node", [address], authority, now=time.time())
    (directory / "kubelet.crt").write_bytes(pair.certificate)
    (directory / "kubelet.key").write_bytes(pair.key)
    return authority.certificate.decode()


class LabPages:
    """The page of each node of a lab, at its address, with a certificate of the cluster; RBAC decides who reads."""

    def __init__(self, lab, directory, feeders):
        self._lab, self._directory, self._feeders = lab, directory, feeders
        self._group = OrderedTaskGroup()

    async def __aenter__(self):
        """``feeders`` by node."""
        await self._create_reader()
        servers = [await self._serve(node, feeder) for node, feeder in self._feeders.items()]
        async with asyncio.timeout(60):
            while not all(server.port for server in servers):
                await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *_):
        await self._group.cancel()

    async def _create_reader(self):
        with contextlib.suppress(AlreadyExists):
            await self._lab.client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        for obj in metrics_access_objects("lastcall-agent", SYSTEM_NAMESPACE, {}):
            await create_object(self._lab.client, obj)

    async def _serve(self, name, feeder):
        node = await self._lab.node(name)
        [address] = [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]
        pki = self._directory / f"pki-{name}"
        pki.mkdir()
        write_certificate(pki, address=address, authority=await asyncio.to_thread(self._authority))
        proxy = KubeProxyMetrics(f"http://127.0.0.1:{feeder.metrics_port}")
        page = TrafficPage(proxy, ConnectionTable().count_connections, SystemClock())
        readers = MetricsReaders(lambda: self._lab.client, SystemClock())
        settings = SecureMetricsSettings(address=(address, METRICS_PORT), kubelet_pki=pki)
        server = SecureMetrics(settings, lambda: b"", readers.judge, more={TRAFFIC_PATH: page.render_text})
        self._group.start(server.run(), f"the page of {name}")
        return server

    def _authority(self):
        place = self._lab.plane_directory
        return secret_files.read_authority(place / "ca.pem", place / "ca.key", now=time.time())
