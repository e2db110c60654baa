"""A real control plane whose nodes are hollow, for tests that call programs: etcd, kube-apiserver, its controllers, a scheduler."""

import asyncio
import contextlib
from random import Random

from support.kube.helm import CHART, Helm
from support.kube.kubectl import Kubectl
from support.kube.loop_thread import LoopThread
from support.kube.real_control_plane import RealControlPlane, why_not
from support.lab.hollow_node import HollowNode

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import NAMESPACES, NODES, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import AlreadyExists, NotFound
from lastcall.names import SYSTEM_NAMESPACE

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


def missing_programs():
    """Why there is no real control plane here; empty if there can be one."""
    return why_not("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class RealCluster(LoopThread):
    """In a thread with a loop of its own; ``enter`` it."""

    def __init__(self, directory):
        super().__init__("real cluster", seconds=180)
        self._directory, self._plane = directory, directory / "plane"
        self._plane.mkdir()
        self._random = Random(1)

    def kubectl(self, namespace):
        """The administrator's, in a namespace that is made if it is not there."""
        self.do(self._namespace(namespace))
        return Kubectl(self.kubeconfig, self._directory, namespace)

    def install_chart(self, values=None):
        """lastcall's chart."""
        self.do(self._namespace(SYSTEM_NAMESPACE))
        helm = Helm(self.kubeconfig, self._directory)
        helm("install", str(CHART), "lastcall", values or {}, namespace=SYSTEM_NAMESPACE)

    def account(self, namespace, name):
        """The kubeconfig of a service account, which is made if it is not there."""
        return self.do(self._account(namespace, name))

    def node(self, name):
        """A node that is ready."""
        self.do(self._node(name))

    def read(self, resource, name, namespace=""):
        """An object; None if there is none."""

        async def get():
            with contextlib.suppress(NotFound):
                return await self.client.get(resource, name, namespace=namespace)

        return self.do(get())

    # -- in the loop ---------------------------------------------------------------------------------------------------

    async def _begin(self):
        self._stack, self._nodes = contextlib.AsyncExitStack(), OrderedTaskGroup()
        self._real = RealControlPlane(self._plane)
        await self._stack.enter_async_context(self._real.running())
        await self._stack.enter_async_context(self._real.controller_manager())
        await self._stack.enter_async_context(self._real.scheduler())
        self.kubeconfig = self._real.kubeconfig("admin")
        known = kubeconfig.load_kubeconfig([self.kubeconfig], SystemClock())
        http = self._stack.enter_context(contextlib.closing(HttpsTransport(known.endpoint, known.credentials)))
        self.client = Client(http, manager="test")

    async def _end(self):
        await self._nodes.cancel()
        await self._stack.aclose()

    async def _namespace(self, name):
        with contextlib.suppress(AlreadyExists):
            await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        async with asyncio.timeout(120):
            while True:
                with contextlib.suppress(NotFound):
                    await self.client.get(ACCOUNTS, "default", namespace=name)
                    return
                await asyncio.sleep(0.1)

    async def _account(self, namespace, name):
        with contextlib.suppress(AlreadyExists):
            await self.client.create(ACCOUNTS, {"metadata": {"name": name}}, namespace=namespace)
        return await self._real.account_kubeconfig(self.client, namespace, name)

    async def _node(self, name):
        with contextlib.suppress(AlreadyExists):
            await self.client.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
        node = HollowNode(self.client, self.client, SystemClock(), self._random, name)
        self._nodes.start(node.run(), name)
        async with asyncio.timeout(120):
            while not await self._is_ready(name):
                await asyncio.sleep(0.1)

    async def _is_ready(self, name):
        try:
            return not (await self.client.get(NODES, name))["spec"].get("taints")
        except NotFound:
            return False
