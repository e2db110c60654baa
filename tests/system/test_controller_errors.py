"""``lastcall controller`` behind a proxy that answers some of its requests with 500, and what people are told then."""

import asyncio
import json
import subprocess
import sys

import pytest
from support.failover.controller_process import ControllerProcess, install_agent
from support.kube.failing_proxy import proxied
from support.lab.up_client import client_of
from support.lab.up_process import LabProcess
from system.test_controller import beat, install

from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.aio import cancel_and_wait, timeout

pytestmark = pytest.mark.timeout(270)
WHICH = {
    "each 20th": lambda number, method, target: number % 20 == 0,
    "events": lambda number, method, target: method == "POST" and "/events" in target,
}


@pytest.fixture
async def world(tmp_path):
    """A lab with three nodes, of which n1 is silent; the proxy, and the kubeconfig that leads to it."""
    lab = LabProcess(tmp_path / "lab")
    lab.start()
    try:
        with client_of(lab) as client:
            await install(client)
            await client.patch(POLICIES, "p", {"spec": {"limits": {"settle": "20s"}}})
            hearts = asyncio.create_task(beat(client))
            try:
                async with proxied(lab.kubeconfig, tmp_path) as (proxy, kubeconfig):
                    yield lab, client, proxy, kubeconfig
            finally:
                await cancel_and_wait(hearts)
    finally:
        lab.kill()


def controller_of(tmp_path, kubeconfig):
    agents = install_agent(tmp_path / "agents")
    return ControllerProcess(tmp_path, kubeconfig, f"--fence-agents={agents}", "--attach-detach=own")


def forced(controller):
    return [one for one in controller.audit("force-delete") if one["outcome"] == "done"]


@pytest.mark.parametrize("which", WHICH)
async def test_a_node_is_failed_over_although_some_requests_fail(world, tmp_path, which):
    _, _, proxy, kubeconfig = world
    proxy.fails = WHICH[which]
    controller = controller_of(tmp_path, kubeconfig)
    try:
        await asyncio.to_thread(controller.until, lambda: forced(controller), 150)
        assert proxy.failed
    finally:
        controller.kill()


async def test_errors_of_the_api_server_hold_fencing_back_and_everybody_is_told(world, tmp_path):
    lab, client, proxy, kubeconfig = world
    controller = controller_of(tmp_path, kubeconfig)
    try:
        while "it leads" not in (await asyncio.to_thread(controller.page, "/readyz"))[1]:
            await asyncio.sleep(0.1)
        proxy.fails = lambda number, method, target: number % 5 in (0, 2)  # 40 %
        entry = await reported_limit(client)
        assert (entry["reason"], entry["nodes"]) == ("APIServerFailing", ["n1"])
        explained = await asyncio.to_thread(lastcall, "failover", "explain", "node/n1", "--kubeconfig", lab.kubeconfig)
        assert "node n1 is not fenced: " in explained
        assert " to the API server failed" in explained
        assert f", since {entry['since']}" in explained
        examined = await asyncio.to_thread(lastcall, "doctor", "-o", "json", "--kubeconfig", lab.kubeconfig)
        [check] = [one for one in json.loads(examined)["checks"] if one["name"] == "fence-policies"]
        assert check["verdict"] == "warning"
        assert "node n1 waits" in check["message"]
        assert "limit APIServerFailing since " in check["message"]
        _, metrics = await asyncio.to_thread(controller.page, "/metrics")
        assert 'lastcall_failover_not_fenced_nodes{reason="APIServerFailing"} 1.0' in metrics
        assert not controller.audit("off")
        proxy.fails = lambda number, method, target: False
        await asyncio.to_thread(controller.until, lambda: forced(controller), 120)
    finally:
        controller.kill()


async def reported_limit(client):
    """The entry of the policy's status about the limit, as soon as there is one; it must be there in two minutes."""
    async with timeout(120):
        while True:
            status = (await client.get(POLICIES, "p")).get("status") or {}
            word = {one["type"]: one["status"] for one in status.get("conditions", ())}
            if word.get("FencingAllowed") == "False":
                return status["heldBack"][0]
            await asyncio.sleep(0.1)


def lastcall(*arguments):
    """What the command prints."""
    line = [sys.executable, "-m", "lastcall", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120).stdout
