"""A shutdown beside a kubelet that is not stopped, as where kubelet and runtime share a unit (k3s, RKE2, MicroK8s)."""

import asyncio
import itertools
from dataclasses import dataclass, field

from support.beside.node import BesideNode, beside_node
from support.beside.story import Span, condition_of, kubectl, now, settle
from support.beside.workloads import NODE, OTHER

CHOSEN = ("db", "plain", "critical", "bare")


@dataclass
class SharedUnitShutdown:
    """What was recorded of it."""

    node: BesideNode
    span: Span = field(default_factory=Span)
    record: object = None

    def wrote(self, pod, what):
        """When pods of that name, or with a controller of that name, wrote it during the shutdown on the node."""
        return self.node.workloads.times(pod, what, since=self.span.began, until=self.span.released)

    def versions(self, plural, name):
        """The versions of objects during the shutdown."""
        return self.node.history.of(plural, name, since=self.span.began, until=self.span.released)


async def play_shared_unit(directory):
    """The first phase lasts until the kubelet has restarted pods, and what it has written of its Node is corrected."""
    async with beside_node(directory) as node:
        told = SharedUnitShutdown(node)
        await prepare(node)
        told.span.began = now()
        await node.host.logind.power_off()
        await node.until_wrote("bare", what="TERM", since=told.span.began)
        await asyncio.to_thread(node.apply, node.workloads.late("late"))
        await node.wait_for(exited_twice(told, "plain"))
        await node.wait_for(node.have_written("late", "hooked", what="exit"))
        await node.wait_for(corrected(told), 30)
        node.workloads.let_go()
        await node.until(node.host.went_down, "the release")
        told.span.released = now()
        told.record = await asyncio.to_thread(node.record)
        return told


async def prepare(node):
    """Pods of each kind run on the node, and the other node takes pods too."""
    await node.start_kubelet()
    await kubectl(node, f"cordon {OTHER}")
    chosen = [one for one in node.workloads.everything() if one["metadata"]["name"] in CHOSEN]
    await asyncio.to_thread(node.apply, *chosen, node.workloads.hooked("hooked"))
    await asyncio.to_thread(node.add_manifest, node.workloads.static("static"))
    await node.until_wrote(*CHOSEN, "hooked", "static")
    await node.start_agent("--kubelet-unit=")
    await kubectl(node, f"uncordon {OTHER}")
    await settle()


def exited_twice(told, name):
    async def condition():
        return len(told.node.workloads.times(name, "exit", since=told.span.began)) > 1

    return condition


def corrected(told):
    """The kubelet has said that its Node is ready, and the agent has written again that it is not."""

    async def condition():
        return readiness(told.node.history.of("nodes", NODE, since=told.span.began))[:3] == ["False", "True", "False"]

    return condition


def readiness(versions):
    """What the versions of a Node say one after the other."""
    said = [condition_of(v.obj, "Ready").get("status") for v in versions if v.name == NODE]
    return [status for status, _ in itertools.groupby(said)]
