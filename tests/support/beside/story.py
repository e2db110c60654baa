"""One night of a node: a shutdown with lastcall beside the kubelet, the boot, a cancelled shutdown, and one without lastcall.

Played once; the tests judge what was recorded.
"""

import asyncio
import json
import time
from dataclasses import dataclass, field

from support.beside.node import UNIT, BesideNode, beside_node
from support.beside.workloads import NODE, OTHER, controlled_by, kept_open_below, mounted_below
from support.kube.kubectl import Kubectl

from lastcall.model.pods import FINISHED
from lastcall.names import NODE_SHUTDOWN_MARK

FIRST = ("web", "db", "raw", "plain", "critical", "job", "bare", "static")
"""What runs on the node at first."""


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class Span:
    """One shutdown: from the button to the release of the lock, both CLOCK_BOOTTIME."""

    began: float = 0.0
    released: float = 0.0


@dataclass
class Night:
    """What was recorded. ``boot`` and the others are times; ``mounts`` and ``records`` were read when a shutdown was over."""

    node: BesideNode
    beside: Span = field(default_factory=Span)
    boot: float = 0.0
    settled: float = 0.0
    """After the boot all was undone."""
    cancelled: Span = field(default_factory=Span)
    alone: Span = field(default_factory=Span)
    refused: str = ""
    """The answer to the kubelet's identity that asks for more than it may."""
    disturbed: float = 0.0
    """When somebody stopped pods behind the kubelet's back, and wrote that its Node is not ready."""
    mounts_before: list = field(default_factory=list)
    mounts: list = field(default_factory=list)
    loops: list = field(default_factory=list)
    """The files below the kubelet's directory that a loop device keeps open, after the shutdown beside it."""
    volumes: dict = field(default_factory=dict)
    """The names of the PersistentVolumes, by claim."""
    written: bytes = b""
    """What the block device has, after the pod that wrote it."""
    mirror: str = ""
    """The uid of the first mirror pod, which somebody has deleted."""
    record: object = None
    cancelled_record: object = None
    kubelet_stopped: float = 0.0
    kubelet_started_again: float = 0.0
    kubelet_stopped_again: float = 0.0
    corrected: float = 0.0
    """When the Node and its pods were not ready again, whatever the kubelet wrote meanwhile."""

    @property
    def history(self):
        return self.node.history


async def play_night(directory):
    """All of it."""
    async with beside_node(directory) as node:
        night = Night(node)
        await prepare(night)
        await shut_down_beside(night)
        await boot_beside(night)
        await cancel_one(night)
        await shut_down_alone(night)
        return night


async def prepare(night):
    """Everything runs on the node, whatever others do to it; then the other node takes pods, too."""
    node = night.node
    await node.start_kubelet()
    as_kubelet = Kubectl(node.short / "kubelet.conf", node.lab.temporary)
    night.refused = await asyncio.to_thread(as_kubelet.fails, f"label node {OTHER} a=b")
    await kubectl(node, f"cordon {OTHER}")
    await asyncio.to_thread(node.apply, *node.workloads.everything())
    await asyncio.to_thread(node.add_manifest, node.workloads.static("static"))
    await node.until_wrote(*FIRST)
    await node.until(in_service(node, 2), "both in the Service")
    claims = await asyncio.to_thread(node.kubectl.json, "get pvc")
    night.volumes = {one["metadata"]["name"]: one["spec"]["volumeName"] for one in claims["items"]}
    night.disturbed = now()
    [night.mirror] = [one["metadata"]["uid"] for one in node.history.current("pods", "static")]
    await disturb(node)
    await node.start_agent()
    await node.wait_for(node.have_written("plain", "critical", "static", since=night.disturbed), 30)
    await node.wait_for(mirrored_anew(night), 30)
    await node.wait_for(node.is_ready, 30)
    await kubectl(node, f"uncordon {OTHER}")
    await settle()


async def disturb(node):
    """Ends containers and a sandbox by the CRI, deletes a mirror pod, and writes the Node's Ready."""
    await node.end_by_cri("plain", sandbox=False)
    await node.end_by_cri("static", sandbox=False)
    await kubectl(node, f"delete pod static-{NODE} --wait=false")
    await node.end_by_cri("critical", sandbox=True)
    body = '{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Disturbed"}]}}'
    await kubectl(node, f"patch node {NODE} --subresource=status -p", body)


async def settle():
    """A pod that has just started may not be in the agent's list yet: that is another story."""
    await asyncio.sleep(2)


async def shut_down_beside(night):
    """The first phase lasts until a pod that no scheduler has seen has arrived and somebody has started the kubelet."""
    node, span = night.node, night.beside
    night.mounts_before = await asyncio.to_thread(mounted_below, node.root)
    span.began = now()
    await node.host.logind.power_off()
    await node.until_wrote("bare", what="TERM")
    await node.wait_for(kubelet_rests(node))
    night.kubelet_stopped = now()
    await asyncio.to_thread(node.apply, node.workloads.late("late"))
    await asyncio.to_thread(node.add_manifest, node.workloads.static("tardy"))
    await node.wait_for(renewed(node, night.kubelet_stopped), 20)
    night.kubelet_started_again = now()
    await node.host.start(UNIT)
    await leave_corpse(node)
    await node.wait_for(replaced(node))
    await node.wait_for(kubelet_rests(node))
    night.kubelet_stopped_again = now()
    await node.wait_for(not_ready_again(node))
    night.corrected = now()
    node.workloads.let_go()
    await node.until(node.host.went_down, "the release")
    span.released = now()
    night.mounts = await asyncio.to_thread(mounted_below, node.root)
    night.loops = await asyncio.to_thread(kept_open_below, node.root)
    night.written = await asyncio.to_thread(node.read_image, night.volumes["raw-raw-0"])
    night.record = await asyncio.to_thread(node.record)


async def leave_corpse(node):
    """What a kubelet leaves that was still running and rejected a pod of a ReplicaSet.

    The controller, which would delete it as one too many before it has failed, gets it afterwards.
    """
    [owner] = await asyncio.to_thread(lambda: node.kubectl.json("get replicasets")["items"])
    await asyncio.to_thread(node.apply, node.workloads.late("corpse"))
    status = '{"status":{"phase":"Failed","reason":"NodeShutdown"}}'
    await kubectl(node, "patch pod corpse --subresource=status -p", status)
    await kubectl(node, "patch pod corpse -p", json.dumps({"metadata": controlled_by(owner)}))


async def boot_beside(night):
    """Until all is undone and what stayed runs again."""
    node = night.node
    night.boot = now()
    await node.boot()
    await node.start_agent()
    await node.wait_for(node.have_written("bare", "plain", "critical", "static", "late", "tardy", since=night.boot))
    for condition in (undone(node), swept(node), returned(node), ready_again(node)):
        await node.wait_for(condition)
    night.settled = now()
    await settle()


async def cancel_one(night):
    """A shutdown that is over, without a power-off, while the first phase lasts."""
    node, span = night.node, night.cancelled
    node.workloads.hold()
    span.began = now()
    await node.host.logind.power_off()
    await node.until_wrote("bare", what="TERM", since=span.began)
    await asyncio.to_thread(node.host.logind.restart_logind)
    await node.wait_for(node.is_ready)
    node.workloads.let_go()
    await node.wait_for(node.have_written("bare", "plain", since=span.began))
    await node.wait_for(undone(node))
    span.released = now()
    night.cancelled_record = await asyncio.to_thread(node.record)


async def shut_down_alone(night):
    """The kubelet's own graceful shutdown, with pods of the Service on this node again."""
    node, span = night.node, night.alone
    booted = now()
    await node.boot(own_manager=True)
    await kubectl(node, f"cordon {OTHER}")
    await kubectl(node, "scale deployment web --replicas=4")
    await node.until_wrote("web", "bare", "plain", "critical", since=booted)
    await node.until(in_service(node, 4), "all in the Service")
    await node.wait_for(ready_again(node))
    await kubectl(node, f"uncordon {OTHER}")
    span.began = now()
    await node.host.logind.power_off()
    await node.until_wrote("bare", what="TERM", since=span.began)
    await asyncio.to_thread(node.apply, node.workloads.late("too-late"))
    await node.until(node.host.went_down, "the release")
    span.released = now()


async def kubectl(node, line, *more):
    await asyncio.to_thread(node.kubectl, line, *more)


def in_service(node, count):
    async def condition():
        return sum(len(ready_addresses(one)) for one in node.history.current("endpointslices", "web")) == count

    return condition


def ready_addresses(endpoint_slice, node=None):
    """The addresses that get traffic; only those on one node."""
    return [
        address
        for endpoint in endpoint_slice.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready", True) and node in (None, endpoint.get("nodeName"))
        for address in endpoint["addresses"]
    ]


def replaced(node):
    async def condition():
        pods = node.history.current("pods")
        moved = {pod["metadata"]["labels"]["app"] for pod in pods if pod["spec"].get("nodeName") == OTHER}
        return moved >= {"web", "db"}

    return condition


def undone(node):
    async def condition():
        found = node.node()
        kinds = {one["type"] for one in found["status"]["conditions"] if one["status"] == "True"}
        return not found["spec"].get("unschedulable") and kinds == {"Ready"} and not marks(found)

    return condition


def kubelet_rests(node):
    async def condition():
        return await node.host.running(UNIT) == []

    return condition


def mirrored_anew(night):
    async def condition():
        return [p for p in night.history.current("pods", "static") if p["metadata"]["uid"] != night.mirror]

    return condition


def renewed(node, since):
    async def condition():
        return bool(node.history.of("leases", NODE, since=since))

    return condition


def returned(node):
    async def condition():
        return any("returnedTime" in one.get("status", {}) for one in node.history.current("nodeshutdowns", NODE))

    return condition


def not_ready_again(node):
    """What the kubelet may have written while it ran is corrected: of the Node, and of the pods that have begun to end."""

    async def condition():
        ended = ("bare", "plain")
        pods = [one for one in node.history.current("pods") if one["metadata"]["name"] in ended]
        return all(condition_of(one, "Ready").get("status") == "False" for one in (node.node(), *pods))

    return condition


def ready_again(node):
    async def condition():
        pods = [pod for pod in on_node(node.history.current("pods")) if pod["status"].get("phase") not in FINISHED]
        return all(condition_of(pod, "Ready").get("status") == "True" for pod in pods)

    return condition


def swept(node):
    async def condition():
        return not node.history.current("pods", "corpse")

    return condition


def marks(node):
    """What the agent has written of a shutdown."""
    return [key for key in node["metadata"].get("annotations", {}) if key == NODE_SHUTDOWN_MARK]


def condition_of(obj, kind):
    """The condition of that type; an empty one if there is none."""
    return next((one for one in obj.get("status", {}).get("conditions", ()) if one["type"] == kind), {})


def on_node(pods):
    return [pod for pod in pods if pod["spec"].get("nodeName") == NODE]
