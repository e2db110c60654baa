"""A drain's client reads an agent's page with a short token of the reader, whom RBAC permits; nodes of others get none."""

from random import Random

import pytest
from support.traffic.secure_page import write_certificate

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.metrics_readers import MetricsReaders
from lastcall.adapters.kube.resources import NAMESPACES
from lastcall.adapters.kube.secure_metrics import SecureMetrics, SecureMetricsSettings, serve_secure_metrics
from lastcall.adapters.kube.traffic_page import TRAFFIC_PATH
from lastcall.drain.traffic.departing_pods import ProxyNode
from lastcall.drain.traffic.settle_estimate import DEFAULT_SECONDS, SettleEstimate
from lastcall.manifests.metrics_access import metrics_access_objects
from lastcall.model.node_traffic import NodeTraffic, render_traffic
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.wiring.traffic import AgentAddress, open_traffic_watch
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN, UserInfo
from lastcall_lab.control_plane.create_objects import create_object

AGENT = "lastcall-agent"


@pytest.fixture
async def server():
    """With the rights that ``lastcall manifests agent --node-metrics`` brings."""
    server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
    admin = Client(InProcessTransport(server, ADMIN))
    await admin.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    for obj in metrics_access_objects(AGENT, SYSTEM_NAMESPACE, {}):
        await create_object(admin, obj)
    return server


async def learn(server, directory, authority):
    """The settle time that is learnt from one node, whose agent has the certificate in ``directory``."""
    asked = []

    async def page(query):
        asked.append(True)
        return render_traffic(NodeTraffic(latency=7.0), SystemClock().wall())

    user = UserInfo(f"system:serviceaccount:{SYSTEM_NAMESPACE}:{AGENT}", ("system:authenticated",))
    agent = Client(InProcessTransport(server, user))
    readers = MetricsReaders(lambda: agent, SystemClock())
    settings = SecureMetricsSettings(address=("127.0.0.1", 0), kubelet_pki=directory)
    secure = SecureMetrics(settings, lambda: b"", readers.judge, more={TRAFFIC_PATH: page})
    async with serve_secure_metrics(secure):
        while not secure.port:
            await SystemClock().sleep(0.01)
        admin = Client(InProcessTransport(server, ADMIN))
        where = [AgentAddress("n1", "127.0.0.1")]
        async with open_traffic_watch(
            admin, SystemClock(), Random(1), where, authority=authority, port=secure.port
        ) as watch:
            await watch.begin([], [ProxyNode("n1", True), ProxyNode("without-address", True)])
            return watch.settle_time, len(asked)


async def test_the_reader_may_read(server, tmp_path):
    authority = write_certificate(tmp_path)
    assert await learn(server, tmp_path, authority) == (SettleEstimate(7.0, "the kube-proxies of 1 nodes"), 1)


async def test_a_node_whose_certificate_is_not_the_clusters_tells_nothing(server, tmp_path):
    write_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    other = write_certificate(tmp_path / "other")
    assert await learn(server, tmp_path, other) == (
        SettleEstimate(DEFAULT_SECONDS, "nothing was seen yet", is_learnt=False),
        0,
    )
