"""The agent's pod as the DaemonSet describes it, in a real container of a private containerd.

Unless an image of lastcall is given, it has no Python: the machine's /usr and this checkout are mounted into it.
Everything else is taken from the manifest: arguments, environment, mounts, security. The node's directories are the test's.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from support.runtimes.containerd_world import BUSYBOX

import lastcall
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import Unavailable
from lastcall.manifests.daemon_set import agent_daemon_set
from lastcall.model.shutdown import from_lines
from lastcall.model.shutdown_fold import fold_events

CHECKOUT = Path(__file__).parents[3]
CERTIFICATE = CHECKOUT / "tests/support/self_signed.pem"
RESTARTER = Path(__file__).with_name("container_restarter.py")
SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"
UID = "agent-pod-uid"
REQUEST = "create-container"
"""The file in a node's directory that has the request for the container."""


def restarter_unit(directory, endpoint):
    """What plays the kubelet for the pod of that directory, as a service."""
    line = f"{sys.executable} {RESTARTER} {endpoint} {directory / REQUEST}"
    return f"[Service]\nExecStart={line}\nStandardError=append:{directory}/restarter.log\n"


class AgentPod:
    """``directory`` is the node's; ``logind`` and ``containerd`` are the private ones; ``image`` is one of lastcall."""

    def __init__(self, directory, logind, containerd, *, config, image=""):
        self.image = image
        self.directory, self.logind = directory, logind
        self.endpoint, self.cgroup = containerd.endpoint, containerd.cgroup
        self.connection = CriConnection(self.endpoint)
        self.state = self._make("state")
        self.logs = self._make("logs")
        self.config = self._make("config")
        (self.config / "agent.yaml").write_text(config)
        secrets = self._make("secrets")
        (secrets / "token").write_text("none")
        (secrets / "ca.crt").write_bytes(CERTIFICATE.read_bytes())
        manifest = agent_daemon_set("lastcall-system", image=image or BUSYBOX, endpoint=self.endpoint)
        self.spec = manifest["spec"]["template"]["spec"]

    def _make(self, name):
        path = self.directory / name
        path.mkdir(parents=True)
        return path

    async def create_sandbox(self):
        """Runs the pod's sandbox and writes down the request for its container."""
        sandbox = self._sandbox_config()
        answer = await self.connection.call("RunPodSandbox", cri.RunPodSandboxRequest(config=sandbox), within=60)
        (self.logs / "agent").mkdir()
        request = cri.CreateContainerRequest(
            pod_sandbox_id=answer.pod_sandbox_id, config=self._container_config(), sandbox_config=sandbox
        )
        (self.directory / REQUEST).write_bytes(request.SerializeToString())

    def _sandbox_config(self):
        labels = {"io.kubernetes.pod.name": "agent", "io.kubernetes.pod.namespace": "lastcall-system"}
        return cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name="agent", namespace="lastcall-system", uid=UID),
            log_directory=str(self.logs),
            labels={**labels, "io.kubernetes.pod.uid": UID},
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=self.cgroup,
                security_context=cri.LinuxSandboxSecurityContext(namespace_options=self._namespaces()),
            ),
        )

    def _namespaces(self):
        assert self.spec["hostNetwork"]
        assert "hostPID" not in self.spec
        return cri.NamespaceOption(network=cri.NODE, pid=cri.CONTAINER, ipc=cri.POD)

    def _container_config(self):
        [container] = self.spec["containers"]
        labels = {"io.kubernetes.container.name": "agent", "io.kubernetes.pod.uid": UID}
        labels |= {"io.kubernetes.pod.name": "agent", "io.kubernetes.pod.namespace": "lastcall-system"}
        return cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name="agent"),
            image=cri.ImageSpec(image=container["image"]),
            command=container["command"] if self.image else [sys.executable, "-m", *container["command"]],
            args=[
                *(one.replace("$(NODE_NAME)", "n1") for one in container["args"] if "metrics" not in one),
                "--metrics-bind-address=0",  # two such pods at a time have one loopback
            ],
            envs=[cri.KeyValue(key=key, value=value.encode()) for key, value in self._environment().items()],
            mounts=[*self._mounts_of(container), *([] if self.image else _programs())],
            labels=labels,
            annotations={"io.kubernetes.container.restartCount": "0"},
            linux=cri.LinuxContainerConfig(
                security_context=self._security(container["securityContext"]),
                resources=cri.LinuxContainerResources(memory_limit_in_bytes=_mebibytes(container) << 20),
            ),
        )

    def _environment(self):
        checkout = {
            "PYTHONPATH": str(Path(os.path.realpath(lastcall.__file__)).parents[1]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return ({} if self.image else checkout) | {
            "NODE_NAME": "n1",
            "POD_UID": UID,
            # No API server answers here; the bus has another name in its directory.
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": "9",
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/run/dbus/bus",
        }

    def _security(self, context):
        assert context == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        return cri.LinuxContainerSecurityContext(
            namespace_options=self._namespaces(),
            capabilities=cri.Capability(drop_capabilities=["ALL"]),
            readonly_rootfs=True,
            no_new_privs=True,
            run_as_user=cri.Int64Value(value=self.spec["securityContext"]["runAsUser"]),
            seccomp=cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault),
        )

    def _mounts_of(self, container):
        """Each of the manifest's mounts, from the test's place for what the node has there."""
        places = {
            "config": self.config,
            "state": self.state,
            "delay-limit": self.logind.drop_ins,
            "bus": self.logind.root,
            "runtime": Path(self.endpoint.removeprefix("unix://")).parent,
        }
        mounts = []
        for mount in container["volumeMounts"]:
            place = places.get(mount["name"]) or self.directory / mount["name"]
            place.mkdir(parents=True, exist_ok=True)
            mounts.append(_mount(place, mount["mountPath"], readonly=mount.get("readOnly", False)))
        return [*mounts, _mount(self.directory / "secrets", SECRETS)]

    def read_request(self):
        """The request for its container."""
        return cri.CreateContainerRequest.FromString((self.directory / REQUEST).read_bytes())

    # -- what happens to it --------------------------------------------------------------------------------------------

    async def containers(self):
        chosen = cri.ContainerFilter(label_selector={"io.kubernetes.pod.uid": UID})
        answer = await self.connection.call("ListContainers", cri.ListContainersRequest(filter=chosen))
        return sorted(answer.containers, key=lambda one: one.metadata.attempt)

    async def running(self):
        """The id of the container that runs; "" if none does."""
        return next((one.id for one in await self.containers() if one.state == cri.CONTAINER_RUNNING), "")

    async def process_1(self):
        """The host's number of the container's process 1."""
        request = cri.ContainerStatusRequest(container_id=await self.running(), verbose=True)
        answer = await self.connection.call("ContainerStatus", request)
        return int(json.loads(answer.info["info"])["pid"])

    async def exit_status(self, container):
        """The container's status once it has ended."""
        request = cri.ContainerStatusRequest(container_id=container)
        while True:
            status = (await self.connection.call("ContainerStatus", request)).status
            if status.state == cri.CONTAINER_EXITED:
                return status
            await asyncio.sleep(0.05)

    async def exhaust_memory(self):
        """Has the kernel end the container for its memory: a program in it takes all, and process 1 is the first to go."""
        first = await self.process_1()
        for process, score in [(first, 1000), *((child, 900) for child in agent_processes(first))]:
            Path(f"/proc/{process}/oom_score_adj").write_text(str(score))
        eater = "x = [bytearray(1 << 20) for _ in range(100000)]"
        request = cri.ExecSyncRequest(container_id=await self.running(), cmd=[sys.executable, "-c", eater], timeout=60)
        try:
            await self.connection.call("ExecSync", request, within=90)
        except Unavailable:
            pass  # its container has ended

    async def stop(self, grace):
        """As a kubelet that deletes the pod."""
        request = cri.StopContainerRequest(container_id=await self.running(), timeout=grace)
        await self.connection.call("StopContainer", request, within=grace + 60)

    def log(self):
        """Of all lives, as text."""
        files = sorted((self.logs / "agent").glob("*.log"))
        return "".join(file.read_text() for file in files)

    def says(self, words):
        return len(re.findall(words, self.log()))

    def records(self):
        """Of all journals; one that has just been made may have no line yet."""
        files = JournalFiles(self.state)
        journals = (from_lines(files.read_lines(i)) for i in files.list_ids())
        return [fold_events(events) for events in journals if events]


def agent_processes(process_1):
    """The numbers of the children of the container's process 1: the agent, and what it has left."""
    return [int(word) for word in Path(f"/proc/{process_1}/task/{process_1}/children").read_text().split()]


def _mebibytes(container):
    return int(container["resources"]["limits"]["memory"].removesuffix("Mi"))


def _programs():
    """Python, its libraries and lastcall, where this test has them."""
    found = {Path(name) for name in ("/usr", "/etc/ssl")}
    found |= {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    found |= {Path(os.path.realpath(lastcall.__file__)).parents[1], CHECKOUT}
    links = {Path(name) for name in ("/bin", "/lib", "/lib64")}
    tops = sorted(found)
    tops = [path for path in tops if not any(other != path and other in path.parents for other in tops)]
    return [_mount(path, str(path)) for path in [*tops, *links] if path.exists()]


def _mount(host, container, *, readonly=True):
    return cri.Mount(host_path=str(host), container_path=str(container), readonly=readonly)


async def wait_until(condition, what, seconds=60.0):
    """``condition`` is a coroutine function; ``what`` may be a function that describes the state."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await condition():
        if loop.time() > end:
            raise AssertionError(f"waited in vain: {what() if callable(what) else what}")
        await asyncio.sleep(0.05)
