"""Pods that kubectl deletes under load, on nodes with a living kubelet: what the policy for the sleep is there for."""

import asyncio
from pathlib import Path

import pytest
import yaml
from support.kube.kubectl import Kubectl
from support.lab.real_machines import CLOCK, Lab

from lastcall.adapters.kube.resources import DEPLOYMENTS, SERVICES
from lastcall.aio import cancel_and_wait
from lastcall.manifests.pod_policies import pod_policy_objects
from lastcall.names import PRIORITY_ANNOTATION, SETTLE_SECONDS
from lastcall_lab import demo
from lastcall_lab.demo.request_load import RequestLoad

pytestmark = pytest.mark.timeout(270)

SERVER = """\
import http.server, os
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server((os.environ["POD_IP"], 18080), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
"""As ``python3 -m http.server``, but with a queue for the connections of a busy machine."""

WEB = Path(demo.__file__).parent / "objects/web.yaml"


def shop():
    """The demo's web servers, which end at SIGTERM at once; without the hook that the demo gives them."""
    service, deployment, _ = yaml.safe_load_all(WEB.read_text())
    deployment["spec"]["replicas"] = 2
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    del container["lifecycle"]
    container["command"] = ["python3", "-c", SERVER]
    container["ports"] = [{"containerPort": 18080}]
    for one in (service, deployment):
        del one["metadata"]["namespace"]
    return service, deployment


@pytest.fixture
async def lab(tmp_path):
    for path in (tmp_path, tmp_path.parent):
        path.chmod(0o755)
    async with Lab(tmp_path, "processes").up() as lab:
        yield lab


def doors(lab):
    found = [host.proxy.listen_targets.items() for host in lab.machines.hosts.values()]
    return [door for items in found for door, target in items if target.service == "web"]


def known_endpoints(lab):
    """The uids to which each node's proxy sends new connections."""
    proxies = [host.proxy for host in lab.machines.hosts.values()]
    targets = [(proxy, one) for proxy in proxies for one in set(proxy.listen_targets.values()) if one.service == "web"]
    return [{found.uid for found in proxy._table.ready_endpoints(*one)} for proxy, one in targets]


async def two_pods(lab):
    """As soon as there are no others, and the proxies know these."""

    async def only_two():
        uids = {pod["metadata"]["uid"] for pod in await lab.pods(app="web")}
        return len(uids) == 2 and known_endpoints(lab) == [uids, uids]

    await lab.until(only_two)
    return await lab.running("web", 2)


async def kubectl_deletes(lab, kubectl, turns):
    """Why requests are lost while kubectl deletes a pod, so many times."""
    await two_pods(lab)
    load = RequestLoad(lambda: doors(lab), CLOCK, rate=200)
    running = asyncio.create_task(load.run())
    try:
        for _ in range(turns):
            [pod, _] = await two_pods(lab)
            await asyncio.to_thread(kubectl, "delete pod --wait=true", pod["metadata"]["name"])
        await two_pods(lab)
        while load.counts.good <= 100:  # a busy machine sends fewer than 200 a second
            await asyncio.sleep(0.1)
    finally:
        await cancel_and_wait(running)
    return load.counts.lost


async def test_requests_are_lost_without_and_none_with_the_policy(lab, tmp_path):
    kubectl = Kubectl(tmp_path / "kubeconfig", tmp_path)
    service, deployment = shop()
    await lab.client.create(SERVICES, service, namespace="default")
    await lab.client.create(DEPLOYMENTS, deployment, namespace="default")
    lost = {}
    for _ in range(5):
        if lost := await kubectl_deletes(lab, kubectl, 1):
            break
    assert lost, "the state in which the policy matters"

    for obj in pod_policy_objects():
        await asyncio.to_thread(kubectl, "apply -f -", given=obj)
    await asyncio.to_thread(kubectl, f"label namespace default {SETTLE_SECONDS}=2")
    await asyncio.to_thread(kubectl, "rollout restart deployment/web")
    await asyncio.to_thread(kubectl, "rollout status deployment/web --timeout=60s")
    [pod, _] = await two_pods(lab)
    [container] = pod["spec"]["containers"]
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 2}}}
    assert pod["metadata"]["annotations"][PRIORITY_ANNOTATION] == "0"
    assert await kubectl_deletes(lab, kubectl, 3) == {}
