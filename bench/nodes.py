"""One node for one measurement: pods are started, the machine is told to power off (or the floor is measured), and all
is cleaned away again. The pods are processes below the lab's node, or containers beside ``lastcall agent``.
"""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pods import CRITICAL, Truth, manifest, names
from programs import Ear, Program, raise_weight

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.pods.static_pods import read_directory
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.model.shutdown import from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall_lab.containerd import LabCriRuntime
from lastcall_lab.private_logind import PrivateLogind
from lastcall_lab.processes import ProcessRuntime

SETTLE = 1.0
"""Seconds of rest before each measurement, in which what was started comes to an end of its own work."""

STARTS_AT_ONCE = 8
"""Pods that are started side by side; more of them only wait for each other."""

CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 60s
shutdownGracePeriodCriticalPods: 20s
"""


@dataclass(frozen=True)
class Sample:
    """Seconds since PrepareForShutdown was seen by others than the agent or, for the floor, since the first stop call.

    ``terms`` are the pods' own stamps in order; ``stopped``: the runtime has said of the last container that it has
    ended; ``finished``: the last sandbox is torn down. ``critical`` are the stamps of the critical pods. The last three
    are of the agent's runs alone: PowerOff was called ``called`` before; StartUnit reached systemd at ``start_unit``.
    """

    terms: list
    stopped: float
    finished: float
    critical: list = ()
    called: float = 0.0
    start_unit: float = 0.0


class Node:
    """A directory with everything that one measurement needs."""

    in_container = False

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
        self.directory.chmod(0o755)
        self.state = self.directory / "state"
        self.manifests = self.directory / "manifests"
        self.manifests.mkdir()
        self.config = self.directory / "kubelet.yaml"
        self.config.write_text(f"{CONFIG}staticPodPath: {self.manifests}\n")
        self.truth = Truth(self.directory / "truth")
        self.count = self.critical = 0

    def add(self, count, critical):
        self.count, self.critical = count, critical
        for name, priority in names(count, critical).items():
            pod = manifest(name, self.truth, priority=priority, in_container=self.in_container)
            (self.manifests / f"{name}.json").write_text(json.dumps(pod))

    def program(self, verb, logind, *arguments):
        """A verb that runs an agent."""
        common = (f"--config={self.config}", f"--state-dir={self.state}", "--node-name=bench")
        bus = (f"--logind-root={logind.root}", "--metrics-bind-address=127.0.0.1:0")
        log = self.directory / "agent.log"
        return Program.lastcall(*verb, *common, *bus, *arguments, log=log, bus=logind.address)

    async def measure(self, logind):
        """PowerOff with an agent that is at rest, and what came of it."""
        agent = await self.agent(logind)
        try:
            return await self._shut_down(agent, logind)
        finally:
            await agent.kill()

    async def _shut_down(self, agent, logind):
        await agent.until_says("INFO    armed")
        await asyncio.sleep(SETTLE)
        ear = await Ear.on(logind.address)
        called = SystemClock().boottime()
        await logind.power_off()
        terms = await self.truth.until("TERM", self.count)
        start = await logind.wait_for_start(seconds=60)
        await asyncio.sleep(0.3)  # the journal's last lines
        ear.close()
        return self._sample(terms, ear.at, called=called, start_unit=start.at)

    def _sample(self, terms, zero, *, called, start_unit):
        files = JournalFiles(self.state)
        [shutdown_id] = files.list_ids()
        record = fold_events(from_lines(files.read_lines(shutdown_id)))
        ends = [container.ended for pod in record.pods for container in pod.containers]
        offset = record.boottime - zero
        critical = {name for name, priority in names(self.count, self.critical).items() if priority >= CRITICAL}
        return Sample(
            terms=sorted(at - zero for at in terms.values()),
            critical=sorted(at - zero for name, at in terms.items() if name in critical),
            stopped=max(ends) + offset,
            finished=max(pod.ended for pod in record.pods) + offset,
            called=called - zero,
            start_unit=start_unit - zero,
        )

    async def floor(self, kind, where):
        """The bare stop calls, in a program of their own."""
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("floor.py")),
            kind,
            str(where),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        raise_weight(program.pid)
        assert await program.stdout.readline() == b"ready\n"
        await asyncio.sleep(SETTLE)
        program.stdin.write(b"go\n")
        terms = await self.truth.until("TERM", self.count)
        said = json.loads((await program.communicate())[0])
        zero = said["began"]
        return Sample(
            terms=sorted(at - zero for at in terms.values()),
            stopped=said["stopped"] - zero,
            finished=said["finished"] - zero,
        )

    async def clean_up(self):
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)


class ProcessNode(Node):
    """``lastcall lab node``. Each measurement is made by a program that has adopted the pods, so that all are equal."""

    async def agent(self, logind):
        return await self.program(("lab", "node"), logind, f"--manifests={self.manifests}")

    async def start_pods(self, logind):
        agent = await self.agent(logind)
        try:
            await self.truth.until("start", self.count)
            await agent.until_says("INFO    armed")
            await asyncio.sleep(0.5)  # the last status is written
        finally:
            await agent.stop()

    async def measure_floor(self):
        return await self.floor("processes", self.state)

    async def clean_up(self):
        runtime = ProcessRuntime(self.state, SystemClock())
        for live in await runtime.list_pods():
            await runtime.remove_pod(live.pod.metadata.uid)
        runtime.close()
        await super().clean_up()


class ContainerNode(Node):
    """``lastcall agent`` beside a containerd in which the bench has started the pods as a kubelet would."""

    in_container = True

    def __init__(self, containerd):
        super().__init__()
        self.containerd = containerd
        self.truth.path.chmod(0o666)

    async def start_pods(self, logind):
        runtime = LabCriRuntime(
            self.containerd.endpoint, SystemClock(), directory=self.directory / "pods", cgroup=self.containerd.cgroup
        )
        pods, errors = read_directory(self.manifests, "bench")
        assert not errors, errors
        turn = asyncio.Semaphore(STARTS_AT_ONCE)

        async def start(pod):
            async with turn:
                await runtime.start_pod(pod)

        await asyncio.gather(*map(start, pods))
        await runtime.close()
        await self.truth.until("start", self.count)

    async def agent(self, logind):
        """There is no kubelet here that would have to be stopped first."""
        endpoint = f"--container-runtime-endpoint={self.containerd.endpoint}"
        return await self.program(("agent",), logind, endpoint, "--kubelet-unit=")

    async def measure_floor(self):
        return await self.floor("containerd", self.containerd.endpoint)

    async def clean_up(self):
        await self.containerd.remove_pods()
        await super().clean_up()


@contextlib.asynccontextmanager
async def running(node, count, critical=0):
    """The node with its pods, on a logind of its own; both are gone afterwards."""
    logind = PrivateLogind()
    await asyncio.to_thread(logind.__enter__)
    try:
        node.add(count, critical)
        await node.start_pods(logind)
        yield logind
    finally:
        await node.clean_up()
        await asyncio.to_thread(logind.__exit__, None, None, None)
