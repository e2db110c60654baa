"""A node of the lab with a real runtime: an API server in this process, a kubelet that can be killed and started again."""

import asyncio
import contextlib
from random import Random

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.subresources.kubelet_api import LogOptions
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories
from lastcall_lab.processes import ProcessRuntime


class RealNode:
    """Pods are processes unless another runtime is made."""

    def __init__(self, directory, *, manifests=None, volumes=None, **settings):
        self.options = {"manifests": manifests, "volumes": volumes}
        self.settings = KubeletSettings(**{"backoff_first": 0.5, "lost_after": 0.5, **settings})
        self.directory, self.clock, self.random = directory, SystemClock(), Random(1)
        self.server = ApiServer(self.clock, self.random)
        self.client = Client(InProcessTransport(self.server), manager="test")

    async def begin(self):
        accounts = dict_resource("", "v1", "serviceaccounts")
        await self.client.create(accounts, {"metadata": {"name": "default"}}, namespace="default")
        self.boot()

    def boot(self):
        user = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
        self.runtime = self.make_runtime()
        self.kubelet = LabKubelet(
            NodeProfile(name="n1", address="127.0.1.1", boot_id="b"),
            self.runtime,
            client=Client(InProcessTransport(self.server, user), manager="kubelet"),
            clock=self.clock,
            random=self.random,
            directories=PodDirectories(self.directory / "pods"),
            settings=self.settings,
            **self.options,
        )
        self.running = asyncio.create_task(self.kubelet.run())

    def make_runtime(self):
        return ProcessRuntime(self.directory / "runtime", self.clock)

    def close_runtime(self):
        self.runtime.close()

    async def kill(self):
        self.running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.running
        self.close_runtime()

    async def end(self):
        for live in await self.runtime.refresh_pods():
            await self.runtime.remove_pod(live.pod.metadata.uid)
        await self.kill()

    async def create(self, name, script, **spec):
        main = {"name": "main", "image": "none", "command": ["sh", "-c", script], **spec.pop("container", {})}
        spec = {"containers": [main], "nodeName": "n1", "automountServiceAccountToken": False, **spec}
        spec.setdefault("terminationGracePeriodSeconds", 5)
        return await self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")

    async def pod(self, name):
        return await self.client.get(PODS, name, namespace="default")

    async def until(self, condition, name="web", seconds=60.0):
        """Waits until something holds of a pod's status; the status."""
        async with asyncio.timeout(seconds):
            while True:
                status = (await self.pod(name))["status"]
                if condition(status):
                    return status
                await asyncio.sleep(0.05)

    async def gone(self, name="web"):
        async with asyncio.timeout(60):
            while any(stored.to_object()["metadata"]["name"] == name for stored in self.server.store.objects("pods")):
                await asyncio.sleep(0.05)

    async def logs(self, name="web", **options):
        return b"".join(
            [line async for line in self.kubelet.api.logs(await self.pod(name), LogOptions("main", **options))]
        )

    async def execute(self, command, name="web", *, stdin=b"", tty=False):
        """What it says, and its exit code."""
        execution = await self.kubelet.api.execute(await self.pod(name), "main", command, stdin=bool(stdin), tty=tty)
        await execution.write(stdin)
        execution.end_input()
        said = b"".join([data async for _, data in execution.output()])
        return said, await execution.wait()


def ready(status):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ()))


def running(status):
    return status.get("phase") == "Running" and "running" in status["containerStatuses"][0]["state"]


def restarted(status):
    return status.get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1
