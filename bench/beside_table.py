"""One shutdown of a node with pods of every kind, the kubelet's own beside lastcall's, as a table in Markdown.

All times are seconds since the power button. It needs root, dbus-daemon, systemd, containerd,
runc, busybox and the loopback plugin of CNI, and the programs that ``real_control_plane`` names. Each turn has a control plane
and a node of its own. A node that has gone down does not come back here.
"""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import beside
import real_control_plane
import table_pods
from beside_kubelet import ACCOUNTS, KubeletLogind, KubeletNode, _stop_kubelet
from beside_node import KUBELET, NODE
from failover_turns import connected
from table_rows import Turn, table
from table_sight import Sight, condition

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.errors import AlreadyExists
from lastcall_lab.containerd import PrivateContainerd, leftovers

NAME = "beside-table"
CNI = Path("/usr/lib/cni")
LATE = 1.0
"""Seconds after the power button at which somebody creates a pod for the node."""
AFTERWARDS = 8.0
"""Seconds after the release in which controllers follow."""
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")


class TableNode(KubeletNode):
    """With a static pod, and the pods of ``table_pods``."""

    def command(self):
        line = super().command()
        path = self.directory / "kubelet.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "staticPodPath": str(self.manifests)}))
        return line

    async def start_pods(self, logind):
        await logind.run_unit(KUBELET)
        await self._until(lambda sight: condition(sight.latest(NODES).get(NODE, {}), "Ready") == "True")
        (self.manifests / "static.json").write_text(json.dumps(table_pods.static_pod(self.truth)))
        for resource, obj in table_pods.workloads(self.truth):
            await self._client.create(resource, obj, namespace="default")
        await self.truth.until("start", table_pods.STARTED)
        await self._until(lambda sight: _ready(sight) == table_pods.RUNNING)

    async def _until(self, is_so):
        async with Sight(self._client).open() as sight:
            while not is_so(sight):
                await asyncio.sleep(0.1)

    async def _go_down(self, logind):
        async with Sight(self._client).open() as sight:
            await asyncio.sleep(1)
            load, zero = os.getloadavg()[0], SystemClock().boottime()
            await logind.power_off()
            late = asyncio.create_task(self._create_late_pod())
            start = await logind.wait_for_start(seconds=90)
            mounts = len(leftovers.mount_points(self.directory / "kubelet"))
            await late
            if self._own:
                await _stop_kubelet(logind)  # as its machine would
            await asyncio.sleep(AFTERWARDS)
            seen = {what: self.truth.times(what) for what in ("TERM", "end")}
            return Turn(load=load, zero=zero, released=start.at, seen=seen, sight=sight, mounts=mounts)

    async def _create_late_pod(self):
        await asyncio.sleep(LATE)
        await self._client.create(PODS, table_pods.late_pod(self.truth), namespace="default")


def _ready(sight):
    return sum(condition(pod, "Ready") == "True" for pod in sight.latest(PODS).values())


async def turn(containerd, directory, *, own):
    """The kubelet's own shutdown, or that of the agent beside it."""
    directory.mkdir()
    async with (
        real_control_plane.RealControlPlane(directory).running() as real,
        connected(real.kubeconfig("admin")) as client,
        real.controller_manager("--controllers=*"),
        real.scheduler(),
    ):
        await beside._install(client)
        with contextlib.suppress(AlreadyExists):
            await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        node = TableNode(containerd, client, real, own=own)
        logind = KubeletLogind(node.command(), node.directory / "kubelet.log")
        await asyncio.to_thread(logind.__enter__)
        try:
            await asyncio.wait_for(node.start_pods(logind), 180)
            return await (node.measure_kubelet(logind) if own else node.measure(logind))
        finally:
            await _stop_kubelet(logind)
            await asyncio.to_thread(logind.__exit__, None, None, None)
            await node.clean_up()


def add_network(containerd):
    """The loopback plugin alone: without a network the kubelet's node is never ready."""
    cni = containerd.directory / "cni"
    (cni / "net.d").mkdir(parents=True, exist_ok=True)
    if not (cni / "bin").exists():
        (cni / "bin").symlink_to(CNI)
    network = {"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "loopback"}]}
    (cni / "net.d" / "10-lo.conflist").write_text(json.dumps(network))


def why_not():
    """Why this machine cannot do it; empty if it can."""
    if not (CNI / "loopback").exists():
        return f"no {CNI / 'loopback'}"
    return real_control_plane.why_not(*PROGRAMS)


async def markdown(tell):
    """The table."""
    directory, turns = Path(tempfile.mkdtemp(prefix="lc-bench-")), []
    try:
        async with PrivateContainerd() as containerd:
            add_network(containerd)
            for own, who in ((True, "the kubelet alone"), (False, "lastcall beside it")):
                tell(f"{NAME}: {who}")
                turns.append(await turn(containerd, directory / str(own), own=own))
    finally:
        shutil.rmtree(directory)
    return table(*turns)
