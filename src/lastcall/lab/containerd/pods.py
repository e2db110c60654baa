"""Starts pods in a containerd as a kubelet does, so that there is something to end."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grpclib.const import Status

from lastcall import names
from lastcall.adapters.cri import marks
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.catalogue import Specs
from lastcall.adapters.cri.connection import Refused
from lastcall.adapters.cri.runtime import CriRuntime, exit_code
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.lab.containerd import leftovers
from lastcall.model.pods import Container, Pod
from lastcall.ports import Clock, LivePod

_START = 60.0
"""Seconds for one step of a start; fifty at once on a small machine take ten."""

_LOOK = 0.2
"""Seconds between two looks for containers that have ended: the CRI of containerd 1.6 has no events."""


class LabCriRuntime(CriRuntime):
    """``ports.PodRuntime`` and ``ports.PodStarter`` in one: what the lab's node runs its pods with.

    Pods have the host's network. Logs and the emptyDirs lie below ``directory``; the pods' cgroups below ``cgroup``.
    ``manifests`` tells of pods that an earlier life of this program started.
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
        super().__init__(endpoint, clock, specs=lambda: {**manifests(), **self._specs})
        self._directory = directory
        self._cgroup = cgroup
        self._watched: set[str] = set()
        self._looked = False
        self._told: set[str] = set()
        self._ends: list[tuple[str, str, int | None]] = []

    async def start(self, pod: Pod) -> LivePod:
        """One sandbox, then the containers one after the other; images must have been imported."""
        _check(pod)
        await self.remove(pod.metadata.uid)
        start = _Start(
            self,
            pod,
            self._clock,
            directory=self._directory / "pods" / pod.metadata.uid,
            cgroup=self._cgroup_of(pod.metadata.uid),
        )
        try:
            live = await start.run()
        except BaseException as error:
            await self.remove(pod.metadata.uid)
            if isinstance(error, Refused):
                raise InvalidInput(f"pod {pod.key}", [str(error)]) from error
            raise
        self._watched.add(live.sandbox)
        self._specs[pod.metadata.namespace, pod.metadata.name] = pod
        await self.refresh()
        return live

    async def remove(self, uid: str) -> None:
        """StopPodSandbox and RemovePodSandbox; the pod's directory and cgroup go too."""
        for sandbox in await self._sandboxes(uid):
            stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox.id)
            await self.connection.call("StopPodSandbox", stop, within=_START)
            remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox.id)
            await self.connection.call("RemovePodSandbox", remove, within=_START)
            await asyncio.to_thread(leftovers.remove_cgroup, self._cgroup_of(uid))
            await asyncio.to_thread(shutil.rmtree, self._directory / "pods" / uid, ignore_errors=True)
            self._specs.pop((sandbox.metadata.namespace, sandbox.metadata.name), None)
            await self.refresh()

    async def ended(self) -> tuple[str, str, int | None]:
        """Also what ended before this object was made, unless the pod's sandbox had been torn down by then."""
        while not self._ends:
            try:
                self._ends += await self._newly_ended()
            except Unavailable:  # containers live on without their runtime: it tells later
                pass
            if not self._ends:
                await self._clock.sleep(_LOOK)
        return self._ends.pop(0)

    async def _newly_ended(self) -> list[tuple[str, str, int | None]]:
        if not self._looked:
            self._watched.update(box.id for box in await self._sandboxes() if box.state == cri.SANDBOX_READY)
            self._looked = True
        exited = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_EXITED))
        answer = await self.connection.call("ListContainers", cri.ListContainersRequest(filter=exited))
        new = [c for c in answer.containers if c.pod_sandbox_id in self._watched and c.id not in self._told]
        statuses = [await self.status(container.id) for container in new]
        self._told.update(container.id for container in new)
        statuses.sort(key=lambda status: status.finished_at)
        return [
            (status.labels[names.POD_UID], status.labels[names.CONTAINER_NAME], exit_code(status))
            for status in statuses
        ]

    async def _sandboxes(self, uid: str | None = None) -> Sequence[cri.PodSandbox]:
        labels = {} if uid is None else {names.POD_UID: uid}
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=labels))
        items: Sequence[cri.PodSandbox] = (await self.connection.call("ListPodSandbox", request)).items
        return items

    def _cgroup_of(self, uid: str) -> str:
        return f"{self._cgroup}/pod{uid}"


class _Start:
    """The start of one pod."""

    def __init__(self, runtime: LabCriRuntime, pod: Pod, clock: Clock, *, directory: Path, cgroup: str) -> None:
        self._runtime = runtime
        self._pod = pod
        self._clock = clock
        self._directory = directory
        own = pod.metadata
        self._config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name=own.name, namespace=own.namespace, uid=own.uid),
            log_directory=str(directory / "logs"),
            labels=marks.sandbox_labels(pod),
            annotations=marks.sandbox_annotations(pod),
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=cgroup,
                security_context=cri.LinuxSandboxSecurityContext(namespace_options=_host_network()),
            ),
        )

    async def run(self) -> LivePod:
        spec = self._pod.spec
        await asyncio.to_thread(self._make_directories)
        sandbox = (await self._call("RunPodSandbox", cri.RunPodSandboxRequest(config=self._config))).pod_sandbox_id
        running = {}
        for container in spec.init_containers or ():
            container_id = await self._start(container, sandbox)
            if container.restart_policy == "Always":
                running[container.name] = container_id
            else:
                await self._to_its_end(container, container_id)
        for container in spec.containers:
            running[container.name] = await self._start(container, sandbox)
        return LivePod(pod=self._pod, containers=running, sandbox=sandbox)

    async def _start(self, container: Container, sandbox: str) -> str:
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox, config=self._container(container), sandbox_config=self._config
        )
        try:
            container_id: str = (await self._call("CreateContainer", request)).container_id
        except Refused as error:
            if error.status is Status.NOT_FOUND:
                rule = f'image "{container.image}" is not in this containerd: {error}'
                raise InvalidInput(f"pod {self._pod.key}", [f"container {container.name}: {rule}"]) from error
            raise
        await self._call("StartContainer", cri.StartContainerRequest(container_id=container_id))
        return container_id

    async def _to_its_end(self, container: Container, container_id: str) -> None:
        while (status := await self._runtime.status(container_id)).state != cri.CONTAINER_EXITED:
            await self._clock.sleep(_LOOK)
        if (code := exit_code(status)) != 0:
            raise LastcallError(f"pod {self._pod.key}: init container {container.name} ended with {code}")
        await self._call("RemoveContainer", cri.RemoveContainerRequest(container_id=container_id))

    def _container(self, container: Container) -> cri.ContainerConfig:
        return cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=container.name),
            image=cri.ImageSpec(image=container.image),
            command=container.command or (),
            args=container.args or (),
            working_dir=container.working_dir,
            envs=[cri.KeyValue(key=variable.name, value=variable.value.encode()) for variable in container.env or ()],
            mounts=self._mounts(container),
            labels=marks.container_labels(self._pod, container),
            annotations=marks.container_annotations(self._pod, container),
            log_path=f"{container.name}/0.log",
            linux=cri.LinuxContainerConfig(security_context=self._security(container)),
        )

    def _security(self, container: Container) -> cri.LinuxContainerSecurityContext:
        """The container's own user and group, else the pod's."""
        contexts = [context for context in (container.security_context, self._pod.spec.security_context) if context]
        users = [context.run_as_user for context in contexts if context.run_as_user is not None]
        groups = [context.run_as_group for context in contexts if context.run_as_group is not None]
        return cri.LinuxContainerSecurityContext(
            namespace_options=_host_network(),
            run_as_user=cri.Int64Value(value=users[0]) if users else None,
            run_as_group=cri.Int64Value(value=groups[0]) if users and groups else None,
        )

    def _mounts(self, container: Container) -> list[cri.Mount]:
        volumes = {volume.name: volume for volume in self._pod.spec.volumes or ()}
        mounts = []
        for mount in container.volume_mounts or ():
            source = volumes[mount.name].host_path
            path = source.path if source else str(self._directory / "volumes" / mount.name)
            mounts.append(cri.Mount(host_path=path, container_path=mount.mount_path))
        return mounts

    def _make_directories(self) -> None:
        for container in (self._pod.spec.init_containers or ()) + self._pod.spec.containers:
            (self._directory / "logs" / container.name).mkdir(parents=True, exist_ok=True)
        for volume in self._pod.spec.volumes or ():
            if volume.empty_dir is not None:
                path = self._directory / "volumes" / volume.name
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o777)

    async def _call(self, verb: str, request: Any) -> Any:
        return await self._runtime.connection.call(verb, request, within=_START)


def _host_network() -> cri.NamespaceOption:
    return cri.NamespaceOption(network=cri.NODE, pid=cri.CONTAINER, ipc=cri.POD)


def _check(pod: Pod) -> None:
    """InvalidInput for what cannot be started here."""
    violations = [] if pod.metadata.uid else ["metadata.uid: is missing"]
    kinds = {volume.name: volume.host_path or volume.empty_dir for volume in pod.spec.volumes or ()}
    violations += [f"volume {name}: must be a hostPath or an emptyDir" for name, kind in kinds.items() if kind is None]
    for container in (pod.spec.init_containers or ()) + pod.spec.containers:
        for mount in container.volume_mounts or ():
            if mount.name not in kinds:
                violations.append(f"container {container.name}: volumeMounts: there is no volume {mount.name}")
    if violations:
        raise InvalidInput(f"pod {pod.key}", violations)
