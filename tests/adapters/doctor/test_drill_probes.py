"""What a drill asks: a real CSI driver, and EndpointSlices of the lab's API server with the rights of an agent."""

import os
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from support.csi.volume_worlds import RealVolumeWorld

from lastcall.adapters.doctor import drill_probes
from lastcall.adapters.doctor.drill_probes import gather_traffic, gather_volumes
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, NAMESPACES
from lastcall.doctor.drill_facts import DrillVolume, TrafficFacts
from lastcall.doctor.facts import UnknownFact
from lastcall.errors import Unavailable
from lastcall.model.pods import Pod
from lastcall.model.traffic import TrafficSettings
from lastcall.names import CONFIG_SOURCE
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane.identities import kubelet_identity

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting file systems needs root")


def pod(uid, *claims):
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    metadata = {"name": f"pod-{uid}", "namespace": "shop", "uid": uid}
    return msgspec.convert({"metadata": metadata, "spec": {"volumes": volumes}}, Pod)


@needs_root
async def test_volumes_of_a_driver_that_answers_hangs_and_is_gone(monkeypatch):
    world = RealVolumeWorld()
    root, pods = str(world.root), [pod("a", "data"), pod("b"), pod("c", "lost")]
    try:
        await world.mount("a", "data", "h1")
        (world.root / "pods/b/volumes/kubernetes.io~nfs/share").mkdir(parents=True)
        nfs = DrillVolume(
            pod="shop/pod-b",
            title="share (kubernetes.io/nfs)",
            problem="the agent cannot unmount volumes of kubernetes.io/nfs",
        )
        data, share, lost = await gather_volumes(root, pods)
        assert (data.pod, data.problem, share) == ("shop/pod-a", "", nfs)
        assert (lost.pod, lost.title) == ("shop/pod-c", "its volumes")
        assert f"{root}/pods/c is not a directory" in lost.problem
        assert world.calls == [], "nothing is unmounted"
        world.behave("NodeGetCapabilities", "hang")
        monkeypatch.setattr("lastcall.adapters.doctor.probes.LIMIT_SECONDS", 0.2)
        assert (await gather_volumes(root, pods))[0].problem == "no answer within 0.2 s"
        world.stop_driver()
        assert "csi.sock: Connection refused" in (await gather_volumes(root, pods))[0].problem
    finally:
        world.close()


class Proxy:
    """The kube-proxy of the node."""

    learnt = None

    async def read_latency(self):
        if self.learnt is None:
            raise Unavailable("there is none")
        return self.learnt


@pytest.fixture
async def server(monkeypatch):
    monkeypatch.setattr(Proxy, "learnt", None)
    monkeypatch.setattr(drill_probes, "KubeProxyMetrics", Proxy)
    server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC)
    admin = Client(InProcessTransport(server, ADMIN), manager="test")
    await admin.create(NAMESPACES, {"metadata": {"name": "shop"}})
    ready = [({"ready": True}, "a"), ({"ready": False}, "b"), ({"ready": True, "terminating": True}, "c")]
    endpoints = [
        {"addresses": [f"10.0.0.{n}"], "conditions": said, "targetRef": {"kind": "Pod", "uid": uid}}
        for n, (said, uid) in enumerate(ready, 1)
    ]
    made = {"metadata": {"name": "web"}, "addressType": "IPv4", "endpoints": endpoints}
    await admin.create(ENDPOINT_SLICES, made, namespace="shop")
    return server


async def ask(server, user=ADMIN, settings=TrafficSettings()):  # noqa: B008 - frozen
    client = Client(InProcessTransport(server, user), manager="test")
    return await gather_traffic(client, [pod("a"), pod("b")], settings, 0.5)


async def test_pods_that_services_send_traffic_to(server, monkeypatch):
    expected = TrafficFacts(serving=frozenset("a"), settle_seconds=0.5, source="the default", limit_seconds=2.0)
    assert await ask(server) == expected
    monkeypatch.setattr(Proxy, "learnt", 0.128)
    assert (await ask(server)).source == "measured by kube-proxy"
    configured = await ask(server, settings=TrafficSettings(settle_seconds=0.0, limit_seconds=5.0))
    assert (configured.settle_seconds, configured.source, configured.limit_seconds) == (
        0.0,
        "traffic.settleSeconds",
        5.0,
    )


async def test_a_static_pod_is_known_by_its_name(server):
    """The slices have the uid of its mirror pod, the runtime that of its manifest."""
    client = Client(InProcessTransport(server, ADMIN), manager="test")
    target = {"kind": "Pod", "name": "pod-hash", "uid": "mirror"}
    made = {"metadata": {"name": "dns"}, "addressType": "IPv4"}
    await client.create(
        ENDPOINT_SLICES, {**made, "endpoints": [{"addresses": ["10.0.0.9"], "targetRef": target}]}, namespace="shop"
    )
    static = pod("hash")
    static = replace(static, metadata=replace(static.metadata, annotations={CONFIG_SOURCE: "file"}))
    found = await gather_traffic(client, [pod("a"), pod("b"), static], TrafficSettings(), 0.5)
    assert found.serving == {"a", "hash"}


async def test_without_the_right_it_is_not_known(server):
    refused = await ask(server, kubelet_identity("n1"))
    assert isinstance(refused, UnknownFact)
    assert 'cannot list resource "endpointslices"' in refused.reason
