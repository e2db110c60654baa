"""A shop of four pods on two nodes of the lab, one of which goes down while the shop's Service is used."""

import asyncio

from support.lab.http_load import SERVER, HttpLoad
from support.lab.real_machines import IMAGE, Lab

from lastcall.adapters.kube.resources import SERVICES, dict_resource
from lastcall.aio import cancel_and_wait

DEPLOYMENTS = dict_resource("apps", "v1", "deployments")
CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 40s
shutdownGracePeriodCriticalPods: 10s
traffic: {{limitSeconds: {}}}
"""


async def shut_down_in_use(directory, limit):
    """The load, at its end, of a shop of which one node has gone down; SIGTERM waits for traffic ``limit`` seconds."""
    async with Lab(directory, "processes", config=CONFIG.format(limit).encode(), delay=0.5).up() as lab:
        await create_shop(lab)
        load = HttpLoad(lambda: shop_doors(lab))
        customers = asyncio.ensure_future(load.run())
        await lab.until(lambda: asyncio.sleep(0, load.answered > 200))
        await lab.machines.switch("lab-1", "button")
        await lab.until_off()
        answered = load.answered
        await lab.until(lambda: asyncio.sleep(0, load.answered > answered + 200))
        await cancel_and_wait(customers)
        return load


async def create_shop(lab):
    """Four pods behind a Service, two on each node, which the proxy of the node that stays knows."""
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python3", "-c", SERVER],
        "readinessProbe": {"tcpSocket": {"port": 18080}, "periodSeconds": 1},
    }
    template = {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [container]}}
    deployment = {
        "metadata": {"name": "shop"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "shop"}}, "template": template},
    }
    service = {
        "metadata": {"name": "shop"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"name": "http", "port": 80, "targetPort": 18080}]},
    }
    await lab.client.create(SERVICES, service, namespace="default")
    await lab.client.create(DEPLOYMENTS, deployment, namespace="default")
    pods = await lab.running("shop", 4)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"lab-1", "lab-2"}
    table = lab.machines.hosts["lab-2"].table
    await lab.until(lambda: asyncio.sleep(0, len(table.ready_endpoints("default", "shop", "http")) == 4))


def shop_doors(lab, node="lab-2"):
    """Where the Service is reached on that node."""
    proxy = lab.machines.hosts[node].proxy
    return [(door.address, door.port) for door, target in proxy.listen_targets.items() if target.service == "shop"]
