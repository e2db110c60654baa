"""A node in virtual time: an API server, one kubelet on it, and actors for containers. The test is the scheduler."""

import functools
import os
import tempfile
from pathlib import Path
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import EVENTS, NODES, PODS, dict_resource
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.request import UserInfo
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript
from lastcall_lab.kubelet.base.settings import KubeletSettings, NodeProfile
from lastcall_lab.kubelet.node.kubelet import LabKubelet
from lastcall_lab.kubelet.volumes.pod_directories import PodDirectories

SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


class Line:
    """A transport that can be cut; what streams breaks off then."""

    def __init__(self, transport):
        self.transport, self.cut = transport, False

    async def request(self, *arguments, **options):
        if self.cut:
            raise Unavailable("the line is cut")
        answer = await self.transport.request(*arguments, **options)
        if not isinstance(answer.body, bytes):
            object.__setattr__(answer, "body", Stream(answer.body, self))
        return answer

    def close(self):
        self.transport.close()


class Stream:
    def __init__(self, chunks, line):
        self.chunks, self.line = chunks, line

    def __aiter__(self):
        return self

    async def __anext__(self):
        chunk = await anext(self.chunks)
        if self.line.cut:
            raise Unavailable("the line is cut")
        return chunk

    async def aclose(self):
        await self.chunks.aclose()


class LabNode:
    """``behave`` maps ``pod/container`` or ``container`` to a Behaviour, or to a list of them: one for each run."""

    def __init__(self, directory, behave=None, settings=None, **options):
        self.clock, self.random = virtual.VirtualClock(), Random(1)
        self.behave = behave or {}
        self.directory, self.settings, self.options = Path(directory), settings or KubeletSettings(), options
        self.server = ApiServer(self.clock, self.random)
        self.client = Client(InProcessTransport(self.server), manager="test")
        user = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
        self.line = Line(InProcessTransport(self.server, user))
        self.runtime = ActorRuntime(self.clock, script=self.script, node="n1")
        self.group = OrderedTaskGroup()
        self.kubelet = None
        self.boots = 0

    def script(self, pod, container, attempt):
        found = self.behave.get(f"{pod.metadata.name}/{container}", self.behave.get(container, ContainerScript()))
        return found[min(attempt, len(found) - 1)] if isinstance(found, list) else found

    async def begin(self):
        await self.client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        self.boot()
        await self.until(lambda: self.node() is not None)

    def boot(self, boot_id="boot-1"):
        profile = NodeProfile(name="n1", address="127.0.1.1", boot_id=boot_id)
        self.kubelet = LabKubelet(
            profile,
            self.runtime,
            client=Client(self.line, manager="kubelet"),
            clock=self.clock,
            random=self.random,
            directories=PodDirectories(self.directory),
            settings=self.settings,
            **self.options,
        )
        self.running = self.group.start(self.kubelet.run(), "kubelet")

    async def stop(self):
        """The kubelet dies; what runs runs on."""
        self.running.cancel()
        await self.clock.sleep(0.01)

    # -- the API -------------------------------------------------------------------------------------------------------

    async def create(self, name, *containers, **spec):
        """A pod that is bound to the node."""
        shown = [{"name": "main", "image": "i"}] if not containers else list(containers)
        pod = {
            "metadata": {"name": name, **spec.pop("metadata", {})},
            "spec": {
                "containers": [{"image": "i", **one} for one in shown],
                "nodeName": "n1",
                "automountServiceAccountToken": False,
                **spec,
            },
        }
        for one in pod["spec"].get("initContainers", ()):
            one.setdefault("image", "i")
        return await self.client.create(PODS, pod, namespace="default")

    async def delete(self, name, **options):
        return await self.client.delete(PODS, name, namespace="default", **options)

    def all(self, resource):
        qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        return [stored.to_object() for stored in self.server.store.objects(qualified)]

    def pod(self, name):
        return next((pod for pod in self.all(PODS) if pod["metadata"]["name"] == name), None)

    def status(self, name):
        return self.pod(name)["status"]

    def phase(self, name):
        return self.status(name)["phase"]

    def conditions(self, name):
        return {one["type"]: one for one in self.status(name).get("conditions", ())}

    def ready(self, name):
        return self.conditions(name).get("Ready", {}).get("status") == "True"

    def container(self, name, container="main", kind="containerStatuses"):
        return next((one for one in self.status(name).get(kind, ()) if one["name"] == container), None)

    def node(self):
        return next(iter(self.all(NODES)), None)

    def node_condition(self, kind="Ready"):
        return next(one for one in self.node()["status"]["conditions"] if one["type"] == kind)

    def events(self, name):
        """Reasons and messages about an object, in the order in which they were last written; each as often as it was
        counted."""
        found = [one for one in self.all(EVENTS) if one["involvedObject"]["name"] == name]
        found.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["reason"], one["message"]) for one in found for _ in range(one["count"])]

    def reasons(self, name):
        return [reason for reason, _ in self.events(name)]

    def files(self, name=None):
        """What the containers of a pod are given, by volume; of all pods, by path."""
        root = self.directory / self.uids[name] / "volumes" if name else self.directory
        found = [Path(place, one) for place, _, names in os.walk(root, followlinks=True) for one in names]
        shown = [file for file in found if not any(part.startswith("..") for part in file.relative_to(root).parts)]
        paths = {str(file.relative_to(root)).partition("/")[2] if name else str(file): file for file in sorted(shown)}
        return {path: file.read_text() for path, file in paths.items()}

    # -- the truth -----------------------------------------------------------------------------------------------------

    def deliveries(self, name, container=None):
        """What reached the containers of a pod: rounded seconds and what."""
        uid = self.uids[name]
        return [
            (round(one.at, 1), one.what)
            for one in self.runtime.deliveries
            if one.uid == uid and container in (None, one.container)
        ]

    @property
    def uids(self):
        return self._uids | {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.all(PODS)}

    _uids = {}

    def remember(self, name):
        """Before it is gone."""
        self._uids = self.uids
        return self._uids[name]

    # -- time ----------------------------------------------------------------------------------------------------------

    async def until(self, condition, seconds=600.0):
        end = self.clock.boottime() + seconds
        while not condition():
            if self.running.done() and not self.running.cancelled():
                self.running.result()
            assert self.clock.boottime() < end, "it does not come to that"
            await self.clock.sleep(0.05)

    async def started(self, name, *containers, **spec):
        """A pod that runs."""
        made = await self.create(name, *containers, **spec)
        self.remember(name)
        await self.until(lambda: self.phase(name) == "Running")
        return made

    async def deleted(self, name="web", **options):
        """A pod that has been deleted is gone."""
        await self.delete(name, **options)
        await self.until(lambda: self.pod(name) is None)


def on_node(behave=None, settings=None, **options):
    """Runs a test with such a node."""

    def decorate(test):
        @functools.wraps(test)
        def run():
            async def main(directory):
                node = LabNode(directory, behave, settings, **options)
                await node.begin()
                try:
                    await test(node)
                    await node.clock.sleep(1)
                    assert not node.running.done() or node.running.cancelled(), node.running.exception()
                finally:
                    await node.group.cancel()

            with tempfile.TemporaryDirectory() as directory:
                virtual.run(main(directory))

        del run.__wrapped__
        return run

    return decorate
