"""What Kubernetes does by itself when the plug of a node is pulled, in the words of the unmodified kubectl.

The constants of Kubernetes are compressed: those of nodes that fall silent fivefold (a grace of 10 s instead of 50), what
pods tolerate thirtyfold (10 s instead of 300). tests/lab/controllers/nodes/test_lost_node_without_lastcall.py has them as they are.
"""

import asyncio
import contextlib
import re
import time
from random import Random

import pytest
from support.kube.kubectl import Kubectl, rows
from support.lab.real_machines import CLOCK, IMAGE, Lab

from lastcall.aio import OrderedTaskGroup
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.controllers.nodes import node_lifecycle, pod_gc, zones
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner
from lastcall_lab.kubelet.base.settings import KubeletSettings
from lastcall_lab.volumes.volume_events import find_violations

pytestmark = pytest.mark.timeout(360)

GRACE, TOLERATED = 10.0, 10
KUBELET = KubeletSettings(lease_duration=4, lease_renewal=1.0, status_update=1.0, status_report=30.0)
LIFECYCLE = node_lifecycle.NodeLifecycleSettings(
    period=0.5, grace=GRACE, startup_grace=12.0, rates=zones.TaintRates(normal=1.0)
)
COLLECTOR = pod_gc.PodGCSettings(period=2.0, quarantine=4.0)
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
ENDS = "trap 'exit 0' TERM; while :; do sleep 0.2 & wait $!; done"


def workload(kind, name, **spec):
    labels = {"app": name}
    mounts = [{"name": "data", "mountPath": "/data"}] if "volumeClaimTemplates" in spec else []
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", ENDS], "volumeMounts": mounts}
    tolerations = [
        {
            "key": f"node.kubernetes.io/{why}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": TOLERATED,
        }
        for why in ("not-ready", "unreachable")
    ]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": tolerations}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


WEB = workload("Deployment", "web")
DB = workload(
    "StatefulSet",
    "db",
    serviceName="db",
    volumeClaimTemplates=[
        {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        }
    ],
)


class Cluster:
    """Two machines, kubectl, and workloads on lab-2; the controllers that count the time run beside the others."""

    def __init__(self, directory):
        self.lab = Lab(directory, "processes", without=("nodelifecycle", "podgc"), settings=KUBELET)
        self._kubectl = Kubectl(directory / "kubeconfig", directory)

    @contextlib.asynccontextmanager
    async def up(self):
        group = OrderedTaskGroup()
        async with self.lab.up():
            counting = [node_lifecycle.NodeLifecycleController(LIFECYCLE), pod_gc.PodGarbageCollector(COLLECTOR)]
            client = ClusterApiClient(self.lab.plane.client(ADMIN), CLOCK, Random(3))
            group.start(ControllerRunner(client, CLOCK, counting).run(), "controllers that count the time")
            try:
                await self("cordon lab-1")
                for one in (WEB, DB):
                    await self("create -f -", given=one)
                await self("wait --for=condition=Ready pod -l app=web --timeout=60s")
                await self("rollout status statefulset db --timeout=60s")
                await self("uncordon lab-1")
                yield self
            finally:
                await group.cancel()

    async def __call__(self, line, **options):
        return await asyncio.to_thread(self._kubectl, line, **options)

    async def until(self, line, condition, seconds=120.0):
        return await asyncio.to_thread(self._kubectl.until, line, condition, seconds)

    async def pods(self, app):
        """Name, status and node of each, as ``kubectl get pods -o wide`` has them."""
        return table(await self(f"get pods -l app={app} -o wide"))


@pytest.fixture
async def cluster(tmp_path):
    async with Cluster(tmp_path).up() as cluster:
        yield cluster


def table(text):
    """Of pods: name, status, node; kubectl prints no heading if there are none."""
    heading, *lines = rows(text) or [["NAME", "STATUS", "NODE"]]
    columns = [heading.index(name) for name in ("NAME", "STATUS", "NODE")]
    return sorted(tuple(line[at] for at in columns) for line in lines)


def runs_on(node):
    """Whether a table of pods has one that runs there."""
    return lambda text: any(status == "Running" and where == node for _, status, where in table(text))


async def test_nobody_says_that_the_node_is_off_until_an_administrator_does(cluster):
    [(old, _, node)] = await cluster.pods("web")
    assert node == "lab-2"
    began = time.monotonic()
    await cluster.lab.machines.switch("lab-2", "off")

    # The Deployment: its pod is replaced when the node's grace and what the pod tolerates have passed; the old one stays.
    await cluster.until("get pods -l app=web -o wide", runs_on("lab-1"))
    assert time.monotonic() - began >= GRACE + TOLERATED - 2, "a sign of life is up to a second old"
    assert (old, "Terminating", "lab-2") in await cluster.pods("web")
    assert [line[1] for line in rows(await cluster("get nodes"))] == ["STATUS", "Ready", "NotReady"]

    # The StatefulSet: its only pod is Terminating for ever, and its volume stays attached where it is.
    await cluster.until("get pods -l app=db -o wide", lambda text: "Terminating" in text)
    uid = await cluster("get pod db-0 -o jsonpath={.metadata.uid}")
    await asyncio.sleep(GRACE + TOLERATED)
    assert await cluster.pods("db") == [("db-0", "Terminating", "lab-2")]
    assert await cluster("get pod db-0 -o jsonpath={.metadata.uid}") == uid
    assert rows(await cluster("get statefulset db"))[1][1] == "0/1"
    assert await attachments(cluster) == [("lab-2", "true")]

    # Why, as kubectl describe has it.
    said = await cluster("describe pod db-0")
    assert re.search(r"^Status: +Terminating \(lasts ", said, re.MULTILINE)
    assert re.search(r"^ +DisruptionTarget +True", said, re.MULTILINE)
    assert re.search(r"^ +Warning +NodeNotReady .*node-controller +Node is not ready$", said, re.MULTILINE)
    assert re.search(r"TaintManagerEviction .*Marking for deletion Pod default/db-0$", said, re.MULTILINE)
    said = await cluster("describe node lab-2")
    assert re.search(
        r"^ +Ready +Unknown .*NodeStatusUnknown +Kubelet stopped posting node status.$", said, re.MULTILINE
    )
    assert "node.kubernetes.io/unreachable:NoExecute" in said

    # An administrator says that the node is off: the pod's object goes, its volume goes with it, and both come elsewhere.
    assert await cluster(f"taint nodes lab-2 {OUT_OF_SERVICE}") == "node/lab-2 tainted\n"
    await cluster.until("get pods -l app=db -o wide", runs_on("lab-1"))
    assert await cluster("get pod db-0 -o jsonpath={.metadata.uid}") != uid
    assert await attachments(cluster) == [("lab-1", "true")]
    assert {where for _, _, where in await cluster.pods("web")} == {"lab-1"}
    assert find_violations(cluster.lab.storage.records) == []


async def attachments(cluster):
    """Node and ATTACHED of each, as ``kubectl get volumeattachment`` has them."""
    heading, *lines = rows(await cluster("get volumeattachment"))
    return [(line[heading.index("NODE")], line[heading.index("ATTACHED")]) for line in lines]
