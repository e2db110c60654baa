"""``lastcall controller`` as a process with a hundred pods on five nodes that are gone: all go, and nobody is asked too often."""

import asyncio
import json

import pytest
from support.failover.controller_process import ControllerProcess
from support.lab.up_client import client_of, install_controller
from support.lab.up_process import LabProcess

from lastcall.adapters.kube import resources
from lastcall.adapters.kube.client import STRATEGIC

pytestmark = pytest.mark.timeout(360)

NODES, PODS, ATTACHMENTS = 5, 100, 10
POLICY = {
    "apiVersion": "lastcall.dev/v1alpha1",
    "kind": "FencePolicy",
    "metadata": {"name": "p"},
    "spec": {"mode": "Enforce", "suspectAfter": "10s", "fencers": []},
}
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
STATUS = {"conditions": [{"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}]}


@pytest.fixture
def lab(tmp_path):
    """Nobody but the controller takes pods and attachments away."""
    others = ("podgc", "taint-eviction-controller", "nodelifecycle", "attachdetach")
    known = [f"--without={name}" for name in others]
    process = LabProcess(tmp_path / "lab", *known, f"--audit-log={tmp_path / 'audit'}")
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def client(lab):
    with client_of(lab) as client:
        yield client


async def make(client):
    """Nodes that are silent, whose Leases last so briefly that this counts soon."""
    for number in range(NODES):
        name = f"n{number}"
        await client.create(resources.NODES, {"metadata": {"name": name}})
        info = {"nodeInfo": {"bootID": f"b-{name}", "systemUUID": f"m-{name}"}}
        await client.patch(resources.NODES, name, {"status": STATUS | info}, subresource="status", kind=STRATEGIC)
        spec = {"leaseDurationSeconds": 4, "renewTime": "2026-01-01T00:00:00.000000Z"}
        lease = {"metadata": {"name": name}, "spec": spec}
        await client.create(resources.LEASES, lease, namespace="kube-node-lease")
    for number in range(PODS):
        spec = {"nodeName": f"n{number % NODES}", "containers": [{"name": "c", "image": "i"}]}
        spec["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
        await client.create(resources.PODS, {"metadata": {"name": f"p{number}"}, "spec": spec}, namespace="default")
    for number in range(ATTACHMENTS):
        spec = {"attacher": "d", "nodeName": f"n{number % NODES}", "source": {"persistentVolumeName": f"v{number}"}}
        await client.create(resources.ATTACHMENTS, {"metadata": {"name": f"a{number}"}, "spec": spec})


def waiting(controller):
    """The nodes of which it says that it waits: what is said of them by hand now is new."""
    return {one["message"].partition(": Wait: ")[0] for one in controller.said if ": Wait: " in one["message"]}


async def test_a_hundred_pods_of_five_nodes_go_without_a_429(lab, client, tmp_path):
    await install_controller(client, POLICY)
    await make(client)
    controller = ControllerProcess(tmp_path, lab.kubeconfig, "--attach-detach=own")
    try:
        await asyncio.to_thread(controller.until, lambda: len(waiting(controller)) == NODES)
        for number in range(NODES):
            await client.patch(resources.NODES, f"n{number}", {"spec": {"taints": [TAINT]}})
        while (await client.list_raw(resources.PODS))[0] or (await client.list_raw(resources.ATTACHMENTS))[0]:
            assert controller.process.poll() is None
            await asyncio.sleep(0.2)
        assert len(controller.audit("force-delete")) == PODS
        assert len(controller.audit("detach")) == ATTACHMENTS
        assert await asyncio.to_thread(controller.stop) == 0
    finally:
        controller.kill()
    lines = (tmp_path / "audit").read_text().splitlines()
    codes = {json.loads(line)["code"] for line in lines}
    assert 429 not in codes
    assert 200 in codes
