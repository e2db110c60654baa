"""The agent beside a real kubelet, and the kubelet's own graceful shutdown, in turn and with the same pods.

etcd, kube-apiserver and kubelet are the programs that ``real_control_plane`` finds. The kubelet is a unit of the recorder
in systemd's place. Its pods are in the host's network, so that no network plugin is needed.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import real_control_plane
from beside_node import KUBELET, NODE, BesideNode, BesideSample
from nodes import SETTLE
from pods import CRITICAL, manifest, names
from programs import Ear

from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import AlreadyExists, NotFound
from lastcall_lab.containerd import leftovers
from lastcall_lab.private_logind import PrivateLogind

ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
PERIODS = {"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "20s"}


class KubeletLogind(PrivateLogind):
    """A private logind; kubelet.service is ``command`` at its recorder."""

    def __init__(self, command, log):
        super().__init__()
        self._command, self._log = command, log
        self.write_drop_in("10-bench.conf", "[Login]\nInhibitDelayMaxSec=120\n")

    def _start_program(self, name, *line):
        program = str(Path(__file__).with_name("kubelet_unit.py"))
        return super()._start_program(
            name, *((sys.executable, program, str(self.root)) if name == "recorder" else line)
        )

    def _bus_environment(self):
        more = {"KUBELET_COMMAND": json.dumps(self._command), "KUBELET_LOG": str(self._log)}
        return {**super()._bus_environment(), **more}


class KubeletNode(BesideNode):
    """``real`` is the control plane. Without ``own`` the kubelet ends no pods, and the agent does."""

    def __init__(self, containerd, client, real, *, own):
        super().__init__(containerd, client, real.kubeconfig("admin"), Path("/dev/null"))
        self._real, self._own = real, own

    def command(self):
        settings = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "containerRuntimeEndpoint": self.containerd.endpoint,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "address": "127.0.0.1",
            "port": real_control_plane.free_port(),
            "healthzPort": 0,
            "failSwapOn": False,
            "evictionHard": {"memory.available": "1Mi"},
            "enforceNodeAllocatable": [],
            "cgroupsPerQOS": False,
            "cgroupRoot": "/",
            "localStorageCapacityIsolation": False,
            "resolvConf": "",
            "podLogsDir": str(self.directory / "logs"),
            "imageGCHighThresholdPercent": 100,
            **(PERIODS if self._own else {}),
        }
        path = self.directory / "kubelet.json"
        path.write_text(json.dumps(settings))
        return [
            real_control_plane.program_path("kubelet"),
            f"--config={path}",
            f"--kubeconfig={self._real.kubeconfig('kubelet')}",
            f"--hostname-override={NODE}",
            f"--root-dir={self.directory / 'kubelet'}",
            f"--cert-dir={self.directory / 'certificates'}",
        ]

    async def start_pods(self, logind):
        with contextlib.suppress(AlreadyExists):
            await self._client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await logind.run_unit(KUBELET)
        for name, priority in names(self.count, self.critical).items():
            made = manifest(name, self.truth, priority=priority, in_container=True)
            spec = made["spec"] | {"nodeName": NODE, "hostNetwork": True, "automountServiceAccountToken": False}
            spec["tolerations"] = [{"operator": "Exists"}]
            spec["containers"][0]["imagePullPolicy"] = "Never"
            del spec["priority"]
            if priority >= CRITICAL:
                spec["priorityClassName"] = "system-node-critical"
            await self._client.create(
                PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}, namespace="default"
            )
            self._pods.append(name)
        await self.truth.until("start", self.count)

    async def measure_kubelet(self, logind):
        await asyncio.sleep(5 * SETTLE)
        return await self._go_down(logind)

    async def _shut_down(self, agent, logind):
        await agent.until_says("INFO    armed")
        await asyncio.sleep(5 * SETTLE)
        return await self._go_down(logind)

    async def _go_down(self, logind):
        ear = await Ear.on(logind.address)
        await logind.power_off()
        terms = await self.truth.until("TERM", self.count)
        start = await logind.wait_for_start(seconds=60)
        ear.close()
        return BesideSample(terms=sorted(at - ear.at for at in terms.values()), released=start.at - ear.at)

    async def clean_up(self):
        """The pods' objects, and what the kubelet mounts: its own directory, which it shares with containers."""
        for name in self._pods:
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, name, namespace="default", grace=0)
        self._pods = []
        for mounted in reversed(leftovers.mount_points(self.directory)):
            subprocess.run(["umount", "--lazy", mounted], check=True)
        await super().clean_up()


async def measured(containerd, client, real, *, own, critical=3, count=13):
    """One turn, of the kubelet (``own``) or of the agent beside it."""
    node = KubeletNode(containerd, client, real, own=own)
    logind = KubeletLogind(node.command(), node.directory / "kubelet.log")
    await asyncio.to_thread(logind.__enter__)
    try:
        node.add(count, critical)
        await node.start_pods(logind)
        return await (node.measure_kubelet(logind) if own else node.measure(logind))
    finally:
        await _stop_kubelet(logind)
        await asyncio.to_thread(logind.__exit__, None, None, None)
        await node.clean_up()


async def _stop_kubelet(logind):
    """Until its process has ended: it would reject the pods of the next turn."""
    async with SystemdUnits.open(logind.address) as units:
        await units.stop_unit(KUBELET)
        while not (await units.unit_states(KUBELET))[0].is_at_rest:
            await asyncio.sleep(0.05)
