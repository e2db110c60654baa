"""A node in little, as a kubelet looks to the API server: its pods run at once, say something, and go when they are told.

The lab's own nodes run real processes; this one runs nothing, so that what is tested is the API server and its clients.
A pod whose command is ``true`` or ``false`` ends at once; one with the label ``ends: late`` stays for its whole grace.
Programs that are executed in a pod are real.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import LEASES, NODES, PODS
from lastcall.aio import OrderedTaskGroup
from lastcall.errors import Conflict, InvalidInput, NotFound
from lastcall_lab.apiserver.subresources.kubelet_api import STDERR, STDOUT
from lastcall_lab.apiserver.values.object_meta import timestamp

BEAT_SECONDS = 5.0
PROGRAMS = Path(sys.executable).parent
"""Where lastcall is, as in the image of an agent."""
_ENDS = {"true": ("Succeeded", "Completed", 0), "false": ("Failed", "Error", 1)}


class HollowNode:
    """``kubelets.Kubelet``, and what a kubelet writes. ``run`` until it is cancelled."""

    def __init__(self, client, admin, clock, random, name, labels=None):
        """``client`` is the kubelet's, ``admin`` takes the taints of a new Node away."""
        self.name = name
        self._clock, self._random = clock, random
        self._labels = labels or {}
        self._admin, self._client = admin, client
        self._group = OrderedTaskGroup()
        self._addresses = 0

    async def run(self):
        await self._register()
        self._group.start(self._beat(), f"{self.name}'s heart")
        watching = Informer(
            self._client, PODS, clock=self._clock, random=self._random, fields=f"spec.nodeName={self.name}"
        )
        ending = set()
        try:
            async for change in watching.changes():
                pod = change.new
                if not pod:
                    continue
                with contextlib.suppress(NotFound, Conflict):
                    if not pod["metadata"].get("deletionTimestamp"):
                        await self._start(pod)
                    elif (key := (pod["metadata"]["uid"], pod["metadata"]["deletionGracePeriodSeconds"])) not in ending:
                        ending.add(key)
                        self._group.start(self._end(pod), "end")
        finally:
            await self._group.cancel()

    # -- what it writes ------------------------------------------------------------------------------------------------

    async def _register(self):
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", **self._labels}
        await self._client.create(NODES, {"metadata": {"name": self.name, "labels": labels}})
        room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        status = {
            "conditions": [self._condition("Ready", "True", "KubeletReady", "kubelet is posting ready status")],
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.9"}, {"type": "Hostname", "address": self.name}],
            "nodeInfo": dict.fromkeys(
                ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"), "hollow"
            )
            | {
                "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }
        await self._client.patch(NODES, self.name, {"status": status}, subresource="status")
        await self._admin.patch(NODES, self.name, {"spec": {"taints": None}})

    async def _beat(self):
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40}
        lease = {"metadata": {"name": self.name}, "spec": spec}
        await self._client.create(LEASES, lease, namespace="kube-node-lease")
        while True:
            moment = timestamp(self._clock.wall()).replace("Z", ".000000Z")
            with contextlib.suppress(NotFound):
                patch = {"spec": {**spec, "renewTime": moment}}
                await self._client.patch(LEASES, self.name, patch, namespace="kube-node-lease")
            await self._clock.sleep(BEAT_SECONDS)

    async def _start(self, pod):
        status = pod.get("status") or {}
        if status.get("phase", "Pending") != "Pending" or status.get("podIP"):
            return
        self._addresses += 1
        address = f"127.64.9.{self._addresses}"
        container = pod["spec"]["containers"][0]
        phase, reason, code = _ENDS.get((container.get("command") or [""])[0], ("Running", "", 0))
        now = timestamp(self._clock.wall())
        state = {"running": {"startedAt": now}}
        if reason:
            state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
        running = phase == "Running"
        told = {
            "phase": phase,
            "startTime": now,
            "hostIP": "127.0.0.9",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [
                self._condition(kind, "True" if running or kind == "Initialized" else "False")
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
            ],
            "containerStatuses": [
                {
                    "name": one["name"],
                    "image": one["image"],
                    "imageID": one["image"],
                    "containerID": f"hollow://{pod['metadata']['uid']}/{one['name']}",
                    "ready": running,
                    "started": running,
                    "restartCount": 0,
                    "state": state,
                }
                for one in pod["spec"]["containers"]
            ],
        }
        told["conditions"] += [c for c in status.get("conditions") or () if c["type"] == "PodScheduled"]
        await self._write(pod, told)

    async def _end(self, pod):
        """The kubelet's second delete."""
        metadata = pod["metadata"]
        if metadata.get("labels", {}).get("ends") == "late":
            await self._clock.sleep(metadata["deletionGracePeriodSeconds"])
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(
                PODS, metadata["name"], namespace=metadata["namespace"], grace=0, uid=metadata["uid"]
            )

    async def _write(self, pod, status):
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        await self._client.patch(PODS, metadata["name"], body, namespace=metadata["namespace"], subresource="status")

    def _condition(self, kind, status, reason="", message=""):
        now = timestamp(self._clock.wall())
        said = {"type": kind, "status": status, "lastTransitionTime": now}
        if reason:
            said |= {"reason": reason, "message": message, "lastHeartbeatTime": now}
        return said

    # -- what it is asked for ------------------------------------------------------------------------------------------

    async def logs(self, pod, options):
        """Three lines, and a fourth when somebody follows."""
        if options.previous:
            name = pod["metadata"]["name"]
            raise InvalidInput("", [f'previous terminated container "{options.container}" in pod "{name}" not found'])
        lines = [f"{options.container} says {word}" for word in ("one", "two", "three")]
        for line in lines[-options.tail :] if options.tail else lines if options.tail is None else []:
            stamp = "2026-01-02T03:04:05.000000006Z " if options.timestamps else ""
            yield f"{stamp}{line}\n".encode()[: options.limit_bytes]
        if options.follow:
            await self._clock.sleep(0.1)
            yield f"{options.container} says four\n".encode()

    async def execute(self, pod, container, command, *, stdin, tty):
        return await self._program(pod, container, command)

    async def _program(self, pod, container, command):
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": f"{PROGRAMS}:/usr/bin:/bin", "POD": pod["metadata"]["name"], "CONTAINER": container},
                cwd="/tmp",
                start_new_session=True,
            )
        except OSError as error:
            raise InvalidInput("command", [str(error)]) from None
        return _Execution(process)


class _Execution:
    """``kubelets.Execution`` of a real process."""

    def __init__(self, process):
        self._process = process
        self._queue = asyncio.Queue()
        streams = ((STDOUT, process.stdout), (STDERR, process.stderr))
        self._pumps = [asyncio.create_task(self._pump(channel, stream)) for channel, stream in streams]

    async def _pump(self, channel, stream):
        while data := await stream.read(65536):
            await self._queue.put((channel, data))
        await self._queue.put(None)

    async def write(self, data):
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def end_input(self):
        self._process.stdin.close()

    def resize(self, width, height):
        pass

    async def output(self):
        open_ = 2
        while open_:
            if (said := await self._queue.get()) is None:
                open_ -= 1
            else:
                yield said

    async def wait(self):
        return await self._process.wait()

    def kill(self):
        """With all that it has started."""
        for pump in self._pumps:
            pump.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
