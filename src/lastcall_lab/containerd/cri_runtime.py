"""Starts pods in a containerd as a kubelet does."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from lastcall import names
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriRefused
from lastcall.adapters.cri.runtime import CriRuntime, exit_code
from lastcall.adapters.cri.spec_sources import Specs, SpecSources, config_source
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.model.pods import Container, LifecycleHandler, Pod
from lastcall.ports.node import Clock, HookResult, RunningPod
from lastcall_lab.apiserver.subresources.kubelet_api import ExecSession
from lastcall_lab.containerd import executions, leftovers
from lastcall_lab.containerd.container_logs import CriLog
from lastcall_lab.containerd.pod_launch import STEP, PodLaunch
from lastcall_lab.processes import pod_addresses

_LOOK = 0.2
"""Seconds between two checks for ended containers: the CRI of containerd 1.6 has no events."""


class LabCriRuntime(CriRuntime):
    """``ports.node.PodRuntime`` and ``ports.node.PodStarter``: the runtime of the lab's nodes.

    Pods have the host's network. Logs and the emptyDirs are below ``directory``; the pods' cgroups below ``cgroup``.
    ``manifests`` returns the pods that an earlier run of this program started.
    """

    def __init__(
        self,
        endpoint: str,
        clock: Clock,
        *,
        directory: Path,
        cgroup: str,
        manifests: Callable[[], Specs] = dict[tuple[str, str], Pod],
    ) -> None:
        self._specs: dict[tuple[str, str], Pod] = {}
        super().__init__(endpoint, clock, sources=lambda: _spec_sources({**manifests(), **self._specs}))
        self._directory = directory
        self._cgroup = cgroup
        self._watched: set[str] = set()
        self._looked = False
        self._told: set[str] = set()
        self._ends: list[tuple[str, str, int | None]] = []

    async def start_pod(self, pod: Pod) -> RunningPod:
        """Starts the sandbox, then the containers in sequence; their images must have been imported."""
        check_startable(pod)
        await self.remove_pod(pod.metadata.uid)
        try:
            live = await self._start_all(pod, self._new_launch(pod))
        except BaseException as error:
            await self.remove_pod(pod.metadata.uid)
            if isinstance(error, CriRefused):
                raise InvalidInput(f"pod {pod.key}", [str(error)]) from error
            raise
        self._watched.add(live.sandbox)
        self._specs[pod.metadata.namespace, pod.metadata.name] = pod
        await self.refresh_pods()
        return live

    async def remove_pod(self, uid: str) -> None:
        """Calls StopPodSandbox and RemovePodSandbox; removes the pod's directory and cgroup."""
        for sandbox in await self._list_sandboxes(uid):
            stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox.id)
            await self.connection.call("StopPodSandbox", stop, within=STEP)
            remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id)
            await self.connection.call("RemovePodSandbox", remove, within=STEP)
            await asyncio.to_thread(leftovers.remove_cgroup, self._cgroup_of(uid))
            await asyncio.to_thread(shutil.rmtree, self._directory_of(uid), ignore_errors=True)
            self._specs.pop((sandbox.metadata.namespace, sandbox.metadata.name), None)
            await self.refresh_pods()

    async def next_ended(self) -> tuple[str, str, int | None]:
        """The next end; includes earlier ends, unless the pod's sandbox had been torn down by then."""
        while not self._ends:
            try:
                self._ends += await self._newly_ended()
            except Unavailable:  # containers survive their runtime: it reports their ends later
                pass
            if not self._ends:
                await self._clock.sleep(_LOOK)
        return self._ends.pop(0)

    async def _start_all(self, pod: Pod, start: PodLaunch) -> RunningPod:
        sandbox = await start.run_sandbox()
        running = {}
        for container in pod.spec.init_containers or ():
            container_id = await start.start_container(container, sandbox)
            if container.restart_policy == "Always":
                running[container.name] = container_id
            else:
                await self._wait_for_exit(pod, container, container_id)
        for container in pod.spec.containers:
            running[container.name] = await start.start_container(container, sandbox)
        return RunningPod(pod=pod, containers=running, sandbox=sandbox)

    async def _wait_for_exit(self, pod: Pod, container: Container, container_id: str) -> None:
        while (status := await self.container_status(container_id)).state != cri.CONTAINER_EXITED:
            await self._clock.sleep(_LOOK)
        if (code := exit_code(status)) != 0:
            raise LastcallError(f"pod {pod.key}: init container {container.name} ended with {code}")
        await self.connection.call("RemoveContainer", cri.RemoveContainerRequest(container_id=container_id))

    def _new_launch(self, pod: Pod) -> PodLaunch:
        uid = pod.metadata.uid
        return PodLaunch(self.connection, pod, directory=self._directory_of(uid), cgroup=self._cgroup_of(uid))

    def _directory_of(self, uid: str) -> Path:
        return self._directory / "pods" / uid

    # -- containers one by one (``kubelet.runtime.NodeRuntime``) -------------------------------------------------------

    mounts = True
    untimed_logs = False

    async def create_sandbox(self, pod: Pod) -> RunningPod:
        """Creates the sandbox. The pod's address is one of loopback, noted on the sandbox."""
        check_startable(pod)
        uid = pod.metadata.uid
        box = await self._ready_sandbox(uid)
        if box is None:
            await self.remove_pod(uid)
            taken = {one.annotations.get(names.POD_ADDRESS, "") for one in await self._list_sandboxes()}
            pod = _with_address(pod, pod_addresses.choose_address(self._cgroup, pod.key, taken))
            sandbox = await self._new_launch(pod).run_sandbox()
        else:
            pod, sandbox = _with_address(pod, box.annotations.get(names.POD_ADDRESS, "")), box.id
        self._watched.add(sandbox)
        self._specs[pod.metadata.namespace, pod.metadata.name] = pod
        running = {one.metadata.name: one.id for one in await self._containers_of(uid) if _is_running(one)}
        return RunningPod(pod=pod, containers=running, sandbox=sandbox)

    async def launch_container(self, pod: Pod, container: Container, *, attempt: int) -> str:
        """Launches the container, after removing all of its last run but the log."""
        uid = pod.metadata.uid
        box = await self._ready_sandbox(uid)
        if box is None:
            raise Unavailable(f"pod {pod.key}: it was not created")
        for one in await self._containers_of(uid):
            if one.metadata.name != container.name:
                continue
            if _is_running(one):
                raise InvalidInput(f"pod {pod.key}", [f"container {container.name}: runs already"])
            self._told.add(one.id)
            await self.connection.call("RemoveContainer", cri.RemoveContainerRequest(container_id=one.id), within=STEP)
        pod = _with_address(pod, box.annotations.get(names.POD_ADDRESS, ""))
        run = await self._new_launch(pod).start_container(container, box.id, attempt=attempt)
        await self.refresh_pods()
        return run

    def unmounted_reason(self, run: str) -> str:
        """Empty: a runtime that mounts volumes itself shows them."""
        return ""

    def repeat_ends(self) -> None:
        """All ends, ordered by their times."""
        self._told.clear()
        self._ends.clear()

    async def probe(self, live: RunningPod, container: str, handler: LifecycleHandler, limit: float) -> HookResult:
        """Runs a probe the way hooks are run."""
        return await self.run_hook(live, container, handler, limit)

    def open_log(self, pod: Pod, container: str, attempt: int) -> CriLog:
        """Opens the log as the runtime writes it."""
        return CriLog(self._directory_of(pod.metadata.uid) / "logs" / container / f"{attempt}.log")

    async def wait_for_probe_change(self, container_id: str = "") -> None:
        """Never returns: a program's answers to probes are unpredictable."""

    async def note_log_times(self) -> None:
        """Does nothing: the runtime writes the times itself."""

    async def execute(
        self, live: RunningPod, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Runs a program by the runtime's streaming server."""
        if container not in live.containers:
            raise InvalidInput(f"pod {live.pod.key}", [f"container {container}: does not run"])
        return await executions.start_execution(
            self.connection, live.containers[container], command, stdin=stdin, tty=tty
        )

    # -- within --------------------------------------------------------------------------------------------------------

    async def _ready_sandbox(self, uid: str) -> cri.PodSandbox | None:
        return next((box for box in await self._list_sandboxes(uid) if box.state == cri.SANDBOX_READY), None)

    async def _containers_of(self, uid: str) -> Sequence[cri.Container]:
        chosen = cri.ContainerFilter(label_selector={names.POD_UID: uid})
        answer = await self.connection.call("ListContainers", cri.ListContainersRequest(filter=chosen))
        items: Sequence[cri.Container] = answer.containers
        return items

    async def _newly_ended(self) -> list[tuple[str, str, int | None]]:
        if not self._looked:
            self._watched.update(box.id for box in await self._list_sandboxes() if box.state == cri.SANDBOX_READY)
            self._looked = True
        exited = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_EXITED))
        answer = await self.connection.call("ListContainers", cri.ListContainersRequest(filter=exited))
        new = [c for c in answer.containers if c.pod_sandbox_id in self._watched and c.id not in self._told]
        statuses = [await self.container_status(container.id) for container in new]
        statuses = [status for status in statuses if status.id not in self._told]  # restarted meanwhile
        self._told.update(container.id for container in new)
        statuses.sort(key=lambda status: status.finished_at)
        return [
            (status.labels[names.POD_UID], status.labels[names.CONTAINER_NAME], exit_code(status))
            for status in statuses
        ]

    async def _list_sandboxes(self, uid: str | None = None) -> Sequence[cri.PodSandbox]:
        labels = {} if uid is None else {names.POD_UID: uid}
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=labels))
        items: Sequence[cri.PodSandbox] = (await self.connection.call("ListPodSandbox", request)).items
        return items

    def _cgroup_of(self, uid: str) -> str:
        return f"{self._cgroup}/pod{uid}"


def _with_address(pod: Pod, address: str) -> Pod:
    return replace(pod, status=replace(pod.status, pod_ip=address))


def _is_running(container: cri.Container) -> bool:
    return bool(container.state in (cri.CONTAINER_RUNNING, cri.CONTAINER_CREATED))


def check_startable(pod: Pod) -> None:
    """Raises InvalidInput for features that this runtime does not support."""
    violations = [] if pod.metadata.uid else ["metadata.uid: is missing"]
    kinds = {volume.name: volume.host_path or volume.empty_dir for volume in pod.spec.volumes or ()}
    violations += [f"volume {name}: must be a hostPath or an emptyDir" for name, kind in kinds.items() if kind is None]
    for container in (pod.spec.init_containers or ()) + pod.spec.containers:
        for mount in container.volume_mounts or ():
            if mount.name not in kinds:
                violations.append(f"container {container.name}: volumeMounts: there is no volume {mount.name}")
    if violations:
        raise InvalidInput(f"pod {pod.key}", violations)


def _spec_sources(specs: Specs) -> SpecSources:
    """A pod of the API counts as watched: it has the uid that the runtime knows, which a static pod's file need not have."""
    watched = {pod.metadata.uid: pod for pod in specs.values() if config_source(pod) == "api"}
    return SpecSources(watched=watched, manifests=specs)
