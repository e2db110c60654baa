"""``lastcall controller`` as a process, over TLS, with a fence agent that is a program."""

import asyncio
import itertools
import re

import pytest
from support.failover.controller_process import ControllerProcess, install_agent
from support.lab.up_client import client_of, install_controller
from support.lab.up_process import LabProcess

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.client import STRATEGIC
from lastcall.aio import cancel_and_wait
from lastcall.errors import AlreadyExists, NotFound
from lastcall.model.watchdog_peer_reports import PeerReport, to_annotations
from lastcall.names import NODES_NAMESPACE

pytestmark = pytest.mark.timeout(270)

NAMES = ("n1", "n2", "n3")
READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
POD = {
    "metadata": {"name": "p"},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i"}],
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
    },
}
PLUGS = {"plug": {"n1": "n1"}}
FENCER = {"name": "f", "agent": {"program": "fence_test", "parametersByNode": PLUGS}, "targetCheck": "Disabled"}
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "FencePolicy",
    "metadata": {"name": "p"},
    "spec": {
        "mode": "Enforce",
        "suspectAfter": "10s",
        "limits": {"minHealthy": 0, "settle": "1s"},
        "fencers": [FENCER],
    },
}


@pytest.fixture
def lab(tmp_path):
    process = LabProcess(tmp_path / "lab")
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def client(lab):
    with client_of(lab) as client:
        yield client


async def install(client):
    """All that the manifests hold but what runs in pods, a node, a pod on it, and the policy."""
    await install_controller(client, POLICY)
    for name in NAMES:
        await client.create(resources.NODES, {"metadata": {"name": name}})
        info = {"bootID": f"b{name[1:]}", "systemUUID": f"11111111-2222-4333-8444-55555555550{name[1:]}"}
        status = {"nodeInfo": info, "conditions": [READY]}
        await client.patch(resources.NODES, name, {"status": status}, subresource="status", kind=STRATEGIC)
    await client.create(resources.PODS, POD, namespace="default")


async def beat(client):
    """All but n1 renew their Leases."""
    for number in itertools.count():
        for name in NAMES[1:]:
            lease = {
                "metadata": {"name": name},
                "spec": {"renewTime": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000Z"},
            }
            try:
                await client.create(resources.LEASES, lease, namespace="kube-node-lease")
            except AlreadyExists:
                await client.patch(resources.LEASES, name, lease, namespace="kube-node-lease")
        await asyncio.sleep(0.5)


async def another_hears_it(client):
    """n2's agent has a Lease, which says nothing of n1 yet."""
    await client.create(resources.LEASES, {"metadata": {"name": "n2"}}, namespace=NODES_NAMESPACE)


async def still_heard(client, controller):
    """The page that tells it, while n2 says again and again that it hears n1."""
    page, numbers = "", itertools.count(1)
    async with asyncio.timeout(90):
        while "heard it" not in page:
            number = next(numbers)
            said = to_annotations({"n1": PeerReport(boot_id="b1", asked=number, ago=0.5)}, {})
            renewed = f"2026-01-01T01:{number // 60:02}:{number % 60:02}.000000Z"
            lease = {"metadata": {"annotations": said}, "spec": {"renewTime": renewed}}
            await client.patch(resources.LEASES, "n2", lease, namespace=NODES_NAMESPACE)
            await asyncio.sleep(0.2)
            _, page = await asyncio.to_thread(controller.page, "/failover")
    return page


async def test_a_node_is_fenced_and_its_pod_removed_and_the_lease_released(lab, client, tmp_path):
    agents = install_agent(tmp_path / "agents")
    await install(client)
    hearts = asyncio.create_task(beat(client))
    controller = ControllerProcess(tmp_path, lab.kubeconfig, f"--fence-agents={agents}", "--attach-detach=own")
    try:
        off = await asyncio.to_thread(controller.until, lambda: controller.audit("off")[1:])
        assert (off[0]["outcome"], off[0]["fencer"], off[0]["bootID"]) == ("done", "f", "b1")
        assert (agents / "off-n1").exists()
        gone = await asyncio.to_thread(controller.until, lambda: controller.audit("force-delete"))
        assert "f said OFF twice" in gone[0]["evidence"][0]
        with pytest.raises(NotFound):
            await client.get(resources.PODS, "p", namespace="default")
        node = await client.get(resources.NODES, "n1")
        assert "node.kubernetes.io/out-of-service" in [one["key"] for one in node["spec"]["taints"]]
        status, metrics = await asyncio.to_thread(controller.page, "/metrics")
        assert status == 200
        assert 'pod_gc_collector_force_delete_pods_total{namespace="default",reason="out-of-service"} 1.0' in metrics
        assert "lastcall_failover_leads 1.0" in metrics
        assert 'lastcall_failover_evidence_total{kind="FenceOff"} 1.0' in metrics
        assert 'lastcall_failover_orders_total{order="off",outcome="Accepted"} 1.0' in metrics
        assert 'lastcall_failover_nodes{state="Marked"} 1.0' in metrics
        assert 'lastcall_failover_step_duration_seconds_count{step="Prove"} 1.0' in metrics
        assert await asyncio.to_thread(controller.page, "/readyz") == (200, "it leads\n")
        assert "n1: Wait: node n1 is failed over" in (await asyncio.to_thread(controller.page, "/failover"))[1]
        await another_hears_it(client)
        page = await still_heard(client, controller)
        assert re.search(r"^n1: .*; node n2 heard it \S+ ago$", page, re.MULTILINE)
        assert await asyncio.to_thread(controller.stop) == 0
        lease = await client.get(resources.LEASES, "lastcall-controller", namespace="lastcall-system")
        assert lease["spec"]["holderIdentity"] == ""
    finally:
        controller.kill()
        await cancel_and_wait(hearts)


def test_no_cluster_is_told_as_it_is(tmp_path):
    controller = ControllerProcess(tmp_path, tmp_path / "nowhere")
    try:
        assert controller.process.wait(60) == 2
        assert "nowhere" in controller.said[-1]["message"]
    finally:
        controller.kill()
