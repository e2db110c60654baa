"""A node where kubelet and agent are two programs, beside a lab with another node.

The lab's kubelet is the unit kubelet.service of a real systemd, whose bus is that of a real logind; its pods are in a real
containerd, its volumes of a CSI driver; the real agent runs beside it. All of them are private to the test.
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import yaml
from support.beside.object_history import ObjectHistory
from support.beside.workloads import NODE, Workloads, apply_objects
from support.csi.volume_worlds import PROGRAM as CSI_PROGRAM
from support.csi.volume_worlds import detach_loops_below
from support.host.real_host import GOING_DOWN, real_host
from support.kube.kubectl import Kubectl
from support.lab.up_process import LabProcess
from support.runtimes.private_containerd import shared_containerd

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.kube.node_access import KUBELET_CONF
from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import Unavailable
from lastcall.model.shutdown import from_lines
from lastcall.model.shutdown_fold import fold_events
from lastcall.names import KUBELET_TIMER
from lastcall_lab.containerd.leftovers import remove_cgroup
from lastcall_lab.volumes import DRIVER

UNIT = "kubelet.service"
PROGRAM = [sys.executable, str(Path(__file__).with_name("patient_program.py"))]
CONFIG = """\
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 90}
- {priority: 2000000000, shutdownGracePeriodSeconds: 30}
traffic: {settleSeconds: 1, limitSeconds: 10}
"""
"""No phase runs out, and no wait for Services, however busy the machine is."""
KUBELET_CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 120s
shutdownGracePeriodCriticalPods: 30s
"""


class BesideNode:
    """The node ``beside-1``; use ``beside_node``."""

    def __init__(self, directory: Path, short: Path, lab: LabProcess) -> None:
        self.lab = lab
        self.root, self.short = short / "kubelet", short
        self.state, self.log = directory / "state", directory / "agent.log"
        self.boot_id, self.arguments = directory / "boot_id", directory / "kubelet.env"
        self.kubelet_log = directory / "kubelet.log"
        self.config = directory / "agent.yaml"
        self.config.write_text(CONFIG)
        self.arguments.write_text("KUBELET_EXTRA_ARGS=\n")
        self.kubelet_config = directory / "kubelet.yaml"
        self.kubelet_config.write_text(KUBELET_CONFIG)
        self.boot_id.write_text(str(uuid.uuid4()))
        for name in ("truth", "manifests"):
            (directory / name).mkdir()
        self.workloads = Workloads(directory / "truth" / "log")
        self.workloads.truth.touch()
        for path in (directory, directory / "truth", self.workloads.truth):
            path.chmod(0o777)
        self.containerd = shared_containerd()
        self.kubectl = Kubectl(lab.kubeconfig, directory)
        self.history = ObjectHistory(lab.kubeconfig)
        self.agent = None
        self.host = None
        self._directory = directory

    def kubelet_unit(self):
        """As kubeadm writes it: further arguments are in a file."""
        options = [f"--node-name={NODE}", f"--kubeconfig={self.short}/kubelet.conf", f"--root-dir={self.root}"]
        options += [f"--bootstrap-kubeconfig={self.lab.kubeconfig}", "--verbose"]
        options += [f"--container-runtime-endpoint={self.containerd.endpoint}"]
        options += [f"--pod-manifest-path={self._directory}/manifests"]
        line = " ".join([*PROGRAM, str(self.boot_id), "lab", "kubelet", *options, "$KUBELET_EXTRA_ARGS"])
        return (
            f"[Service]\nEnvironmentFile={self.arguments}\nEnvironment=PYTHONPATH={':'.join(sys.path)}\n"
            f"ExecStart={line}\nRestart=always\nStandardError=append:{self.kubelet_log}\n"
        )

    # -- programs ------------------------------------------------------------------------------------------------------

    async def start_kubelet(self, *, own_manager=False):
        """Until the Node is ready; ``own_manager``: the kubelet handles shutdowns itself."""
        root, address = self.host.logind.root, self.host.logind.address
        manager = f"--config={self.kubelet_config} --logind-root={root}" if own_manager else ""
        self.arguments.write_text(f"KUBELET_EXTRA_ARGS={manager}\nDBUS_SYSTEM_BUS_ADDRESS={address}\n")
        await self.host.start(UNIT)
        await self.until(self.is_ready, "the Node to be ready")

    async def start_agent(self, *options):
        """The program by its command line, until it is armed."""
        before = self.log.stat().st_size if self.log.exists() else 0
        command = [*PROGRAM, str(self.boot_id), "agent", f"--config={self.config}", f"--state-dir={self.state}"]
        command += [f"--logind-root={self.host.logind.root}", f"--node-name={NODE}", "--metrics-bind-address=0"]
        command += [f"--container-runtime-endpoint={self.containerd.endpoint}", f"--kubelet-root-dir={self.root}"]
        command += [f"--kubeconfig={self._directory}/agent.conf", *options]
        with self.log.open("ab") as log:
            self.agent = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.host.logind.address},
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
            )

        async def armed():
            said = self.log.read_text()[before:]
            return (
                "armed: " in said and "not armed" not in said.splitlines()[-1] and (self.state / "pods.json").exists()
            )

        await self.until(armed, "the agent to be armed")

    async def stop_agent(self):
        """SIGTERM."""
        if self.agent and self.agent.returncode is None:
            self.agent.terminate()
            await asyncio.wait_for(self.agent.wait(), 60)

    async def end(self):
        """Ends agent and kubelet."""
        if self.agent and self.agent.returncode is None:
            self.agent.kill()
            await self.agent.wait()
        with contextlib.suppress(Unavailable):
            await self.host.stop(UNIT)

    async def boot(self, *, own_manager=False):
        """Another boot of the machine: nothing runs, and what systemd had for the last one is gone."""
        await self.stop_agent()
        if await self.host.went_down():
            await self.host.fail_to_go_down()
        for unit in (KUBELET_TIMER, UNIT):
            with contextlib.suppress(Unavailable):  # there is no timer
                await self.host.stop(unit)
        await self.until(self.is_up, "the shutdown to be over")
        await self.end_by_cri("", sandbox=True)
        self.boot_id.write_text(str(uuid.uuid4()))
        await self.start_kubelet(own_manager=own_manager)

    async def end_by_cri(self, name, *, sandbox):
        """Ends the pods whose names begin so, without a word to the kubelet: their sandboxes, or only their containers.

        containerd keeps what it knows of them, as on a disk.
        """
        connection = CriConnection(self.containerd.endpoint)
        try:
            known = await connection.call("ListPodSandbox", cri.ListPodSandboxRequest())
            for box in [one for one in known.items if one.metadata.name.startswith(name)]:
                if sandbox:
                    await connection.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=box.id), within=60)
                    continue
                chosen = cri.ContainerFilter(pod_sandbox_id=box.id)
                inside = await connection.call("ListContainers", cri.ListContainersRequest(filter=chosen))
                for container in inside.containers:
                    stop = cri.StopContainerRequest(container_id=container.id)
                    await connection.call("StopContainer", stop, within=60)
        finally:
            connection.close()

    async def is_up(self):
        """Whether logind prepares no shutdown."""
        session = await SystemLogind(self.host.logind.address).open()
        try:
            return not await session.is_preparing() and not await self.host.running(GOING_DOWN, UNIT)
        finally:
            session.close()

    # -- the cluster ---------------------------------------------------------------------------------------------------

    def give_rights(self):
        """The objects of ``lastcall manifests agent`` but its pods, and a kubeconfig with the ServiceAccount's token."""
        printed = subprocess.run(
            [sys.executable, "-m", "lastcall", "manifests", "agent"], capture_output=True, text=True, check=True
        ).stdout
        objects = [obj for obj in yaml.safe_load_all(printed) if obj["kind"] != "DaemonSet"]
        apply_objects(Kubectl(self.lab.kubeconfig, self._directory, ""), objects)
        token = self.kubectl("create token lastcall-agent -n lastcall-system").strip()
        file = self._directory / "agent.conf"
        text = re.sub(r"token: .*", f"token: {token}", self.lab.kubeconfig.read_text())
        file.write_text(text)
        conf = self.host.logind.root / KUBELET_CONF.lstrip("/")
        conf.parent.mkdir(parents=True, exist_ok=True)
        conf.symlink_to(self.short / "kubelet.conf")

    def apply(self, *objects):
        """kubectl apply."""
        apply_objects(self.kubectl, objects)

    def add_manifest(self, pod):
        """A static pod for the kubelet, which reads no half of it."""
        file = self._directory / "manifests" / f".{pod['metadata']['name']}"
        file.write_text(json.dumps(pod))
        file.rename(file.with_name(f"{pod['metadata']['name']}.yaml"))

    def read_image(self, volume):
        """The first bytes of the file behind a block device."""
        return (self._directory / f"{volume}.img").read_bytes()[:16]

    def node(self):
        """The Node as last seen."""
        return self.history.newest("nodes", NODE)

    async def is_ready(self):
        """Whether the Node is ready in this boot."""
        status = (self.node() or {}).get("status", {})
        ready = [one["status"] for one in status.get("conditions", ()) if one["type"] == "Ready"]
        return ready == ["True"] and status["nodeInfo"]["bootID"] == self.boot_id.read_text()

    # -- what happened -------------------------------------------------------------------------------------------------

    async def until_wrote(self, *pods, what="start", since=0.0):
        """Until pods with each of these names have written it."""
        await self.until(self.have_written(*pods, what=what, since=since), f"{what} of {pods}")

    def have_written(self, *pods, what="start", since=0.0):
        """Whether they have, as a condition."""

        async def wrote():
            return all(self.workloads.times(pod, what, since=since) for pod in pods)

        return wrote

    async def until(self, condition, what):
        """Waits for a coroutine function's yes, a minute at most."""
        assert await self.wait_for(condition), f"waited in vain for {what}:\n{self.story()}"

    async def wait_for(self, condition, seconds=60.0):
        """Whether it says yes within that time. The story goes on, and a test judges."""
        end = time.monotonic() + seconds
        while not await condition():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.05)
        return True

    def record(self):
        """The agent's newest record."""
        files = JournalFiles(self.state)
        return fold_events(from_lines(files.read_lines(files.list_ids()[0])))

    def story(self):
        """For a failure."""
        logs = [file.read_text()[-3000:] if file.exists() else "" for file in (self.log, self.kubelet_log)]
        return "\n".join([*map(str, self.workloads.saw()[-40:]), *logs, str(self.node())])


@contextlib.asynccontextmanager
async def beside_node(directory: Path, *options: str):
    """The node with its kubelet and no pods, and ``lab-1``, on which nothing is scheduled yet; ``options`` of the lab."""
    lab = LabProcess(directory / "lab", "--nodes=1", *options)
    short = Path(tempfile.mkdtemp(prefix="lcb-"))  # a socket's path has 107 bytes at most
    async with contextlib.AsyncExitStack() as opened:
        opened.callback(shutil.rmtree, short, ignore_errors=True)
        await asyncio.to_thread(lab.start)
        opened.push_async_callback(asyncio.to_thread, lab.end)
        node = await asyncio.to_thread(BesideNode, directory, short, lab)
        opened.push_async_callback(asyncio.to_thread, remove_cgroup, f"/lastcall-{NODE}")
        opened.push_async_callback(node.containerd.remove_pods)
        await opened.enter_async_context(_in_threads(_csi_driver(node.root, directory)))
        host = real_host({UNIT: node.kubelet_unit()}, own_network=False, shared=node.root)
        node.host = await opened.enter_async_context(_in_threads(host))
        opened.push_async_callback(asyncio.to_thread, detach_loops_below, node.root)  # while its mounts have names
        await node.host.until_answers()
        await asyncio.to_thread(node.give_rights)
        await opened.enter_async_context(node.history.following())
        opened.push_async_callback(node.end)
        yield node


@contextlib.asynccontextmanager
async def _in_threads(context):
    """Enters and leaves it where it may block."""
    entered = await asyncio.to_thread(context.__enter__)
    try:
        yield entered
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


@contextlib.contextmanager
def _csi_driver(root: Path, directory: Path):
    """Kubelet, driver and agent see the same mounts below the kubelet's directory, as on a machine."""
    root.mkdir()
    for options in (["--bind", str(root)], ["--make-shared"]):
        subprocess.run(["mount", *options, str(root)], check=True)
    plugin = root / "plugins" / DRIVER
    plugin.mkdir(parents=True)
    command = [sys.executable, str(CSI_PROGRAM), DRIVER, str(plugin / "csi.sock"), str(directory)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()
            process.wait()
            detach_loops_below(directory)
            subprocess.run(f"grep -o ' {root}/[^ ]*' /proc/self/mounts | xargs -r umount -l", shell=True, check=False)
            subprocess.run(["umount", "-l", str(root)], check=True)
