"""A small cluster in virtual time that prints everything that happens, for ``test_virtual_repeatable``.

As a program (``python -m support.virtual_time.repeatable_cluster SEED``), so that it can be run with another hash seed and another Python.
"""

import functools
import hashlib
import sys
from random import Random

from support.lab.small_kubelets import Kubelet
from support.lab.workloads import template, workload

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NODES, PODS, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import LastcallError
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner

NAMESPACES = dict_resource("", "v1", "namespaces")
SERVICES = dict_resource("", "v1", "services")
ZONES = "topology.kubernetes.io/zone"
DEPLOYMENTS, STATEFULSETS, DAEMONSETS = (
    dict_resource("apps", "v1", plural) for plural in ("deployments", "statefulsets", "daemonsets")
)
JOBS = dict_resource("batch", "v1", "jobs")
BUDGETS = dict_resource("policy", "v1", "poddisruptionbudgets")
CONTROLLER = UserInfo("system:kube-controller-manager", ("system:masters", "system:authenticated"))


class Told:
    """``transport.Transport`` that marks every request, every answer and every piece of a watch."""

    def __init__(self, transport, who):
        self.transport, self.who = transport, who

    async def request(self, method, target, headers, body, *, stream=False):
        loop = virtual.running_loop()
        loop.mark_trace(f"{self.who} {method} {target} {short(body)}")
        answer = await self.transport.request(method, target, headers, body, stream=stream)
        if isinstance(answer.body, bytes):
            loop.mark_trace(f"{self.who} {method} {target} is answered {answer.status} {short(answer.body)}")
        else:
            object.__setattr__(answer, "body", ToldStream(answer.body, f"{self.who} {target}"))
        return answer

    def close(self):
        self.transport.close()


class ToldStream:
    def __init__(self, chunks, what):
        self.chunks, self.what = chunks, what

    def __aiter__(self):
        return self

    async def __anext__(self):
        chunk = await anext(self.chunks)
        virtual.running_loop().mark_trace(f"{self.what} hears {short(chunk)}")
        return chunk

    async def aclose(self):
        await self.chunks.aclose()


def short(data):
    return f"{len(data)} {hashlib.blake2b(data, digest_size=6).hexdigest()}"


class Cluster:
    """What ``support.lab.small_kubelets.Kubelet`` needs, with all controllers."""

    def __init__(self, seed):
        self.clock, random = virtual.VirtualClock(), Random(seed)
        self.server = ApiServer(self.clock, random)
        self.client = self.reach("test")
        self.random = random

    def reach(self, who, user=None):
        transport = InProcessTransport(self.server, user) if user else InProcessTransport(self.server)
        return Client(Told(transport, who), manager=who)

    def start_controllers(self):
        client = ClusterApiClient(self.reach("controllers", CONTROLLER), self.clock, self.random)
        process = virtual.VirtualProcess("controllers")
        process.start(ControllerRunner(client, self.clock, make_controllers("")).run(), "controllers")
        return process

    async def bind(self, pod, node):
        target = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self.client.create_subresource(PODS, pod, "binding", target, namespace="default")


def node(number):
    """One that is never looked after: its lease is never renewed, and the node lifecycle controller acts on it."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "2027-01-15T08:00:00Z"}
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {"name": f"n{number}", "labels": {ZONES: f"z{number % 2}", "kubernetes.io/hostname": f"n{number}"}},
        "status": {"conditions": [ready], "capacity": room, "allocatable": room},
    }


async def scenario(seed):
    """Workloads of all kinds come up, change and go; controllers are killed on the way; nodes fall silent."""
    cluster, group = Cluster(seed), OrderedTaskGroup()
    make = functools.partial(cluster.client.create, namespace="default")
    for number in range(3):
        await cluster.client.create(NODES, node(number))
    controllers = cluster.start_controllers()
    kubelet = Kubelet(cluster, work=lambda pod: (5.0, 0) if "job" in pod["metadata"]["name"] else None)
    kubelet.client = cluster.reach("kubelet")
    group.start(kubelet.run(), "kubelet")
    await cluster.clock.sleep(2)
    await make(SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    await make(DEPLOYMENTS, workload("web", replicas=5))
    await make(STATEFULSETS, workload("db", replicas=3, serviceName="db"))
    await make(DAEMONSETS, workload("logs"))
    await make(JOBS, {"metadata": {"name": "job"}, "spec": {"completions": 3, "parallelism": 2, "template": done()}})
    chosen = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}
    await make(BUDGETS, {"metadata": {"name": "web"}, "spec": chosen})
    await cluster.clock.sleep(20)
    controllers.fuse = seed % 50
    for name in ("web", "db"):
        which = DEPLOYMENTS if name == "web" else STATEFULSETS
        await cluster.client.patch(which, name, {"spec": {"template": template("i:2")}}, namespace="default")
    await cluster.clock.sleep(10)
    controllers.kill()
    await cluster.client.delete(PODS, "db-1", namespace="default")
    cluster.start_controllers()
    await cluster.clock.sleep(120)
    for what, name in ((DEPLOYMENTS, "web"), (DAEMONSETS, "logs"), (JOBS, "job")):
        try:
            await cluster.client.delete(what, name, namespace="default", propagation="Foreground")
        except LastcallError as error:
            virtual.running_loop().mark_trace(str(error))
    await cluster.clock.sleep(400)
    await group.cancel()
    return virtual.running_loop().trace_digest(), cluster.server.store.revision


def done():
    made = template(labels={"app": "job"})
    made["spec"]["restartPolicy"] = "Never"
    return made


def main():
    seed, *rest = sys.argv[1:]
    trace, revision = virtual.run(scenario(int(seed)), steps="steps" in rest, listen=sys.stdout.write)
    sys.stdout.write(f"trace {trace} at revision {revision}\n")


if __name__ == "__main__":
    main()
