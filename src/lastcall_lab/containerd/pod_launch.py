"""The steps of starting a pod in a containerd, in a kubelet's order."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

from grpclib.const import Status

from lastcall import names
from lastcall.adapters.cri import kubelet_labels
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection, CriRefused
from lastcall.errors import InvalidInput
from lastcall.model.pods import Container, Pod

STEP = 60.0
"""Seconds for one step of a start; fifty starts at once on a small machine take ten."""


class _MountedPath(NamedTuple):
    host: str
    inside: str
    is_device: bool


class PodLaunch:
    """One pod being started. ``directory`` is the pod's own, for logs and emptyDirs."""

    def __init__(self, connection: CriConnection, pod: Pod, *, directory: Path, cgroup: str) -> None:
        self._connection = connection
        self._pod = pod
        self._directory = directory
        own = pod.metadata
        self._config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name=own.name, namespace=own.namespace, uid=own.uid),
            log_directory=str(directory / "logs"),
            labels=kubelet_labels.sandbox_labels(pod),
            annotations=kubelet_labels.sandbox_annotations(pod)
            | ({names.POD_ADDRESS: pod.status.pod_ip} if pod.status.pod_ip else {}),
            linux=cri.LinuxPodSandboxConfig(
                cgroup_parent=cgroup,
                security_context=cri.LinuxSandboxSecurityContext(namespace_options=_host_network()),
            ),
        )

    async def run_sandbox(self) -> str:
        """Runs the sandbox; returns its id."""
        await asyncio.to_thread(self._make_directories)
        answer = await self._call_runtime("RunPodSandbox", cri.RunPodSandboxRequest(config=self._config))
        sandbox: str = answer.pod_sandbox_id
        return sandbox

    async def start_container(self, container: Container, sandbox: str, *, attempt: int = 0) -> str:
        """Starts a container in the sandbox and returns its id. InvalidInput if its image is missing."""
        await asyncio.to_thread(self._make_log_directory, container)
        volumes = await asyncio.to_thread(self._mounted_paths, container)
        config = self._container_config(container, volumes, attempt)
        request = cri.CreateContainerRequest(pod_sandbox_id=sandbox, config=config, sandbox_config=self._config)
        try:
            container_id: str = (await self._call_runtime("CreateContainer", request)).container_id
        except CriRefused as error:
            if error.status is Status.NOT_FOUND:
                rule = f'image "{container.image}" is not in this containerd: {error}'
                raise InvalidInput(f"pod {self._pod.key}", [f"container {container.name}: {rule}"]) from error
            raise
        await self._call_runtime("StartContainer", cri.StartContainerRequest(container_id=container_id))
        return container_id

    def _container_config(
        self, container: Container, volumes: "list[_MountedPath]", attempt: int
    ) -> cri.ContainerConfig:
        return cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=container.name, attempt=attempt),
            image=cri.ImageSpec(image=container.image),
            command=container.command or (),
            args=container.args or (),
            working_dir=container.working_dir,
            envs=[cri.KeyValue(key=variable.name, value=variable.value.encode()) for variable in container.env or ()],
            mounts=[cri.Mount(host_path=one.host, container_path=one.inside) for one in volumes if not one.is_device],
            devices=[
                cri.Device(host_path=one.host, container_path=one.inside, permissions="mrw")
                for one in volumes
                if one.is_device
            ],
            labels=kubelet_labels.container_labels(self._pod, container),
            annotations=kubelet_labels.container_annotations(self._pod, container),
            log_path=f"{container.name}/{attempt}.log",
            linux=cri.LinuxContainerConfig(security_context=self._security_context(container)),
        )

    def _security_context(self, container: Container) -> cri.LinuxContainerSecurityContext:
        """The user and group of the container, else those of the pod."""
        contexts = [context for context in (container.security_context, self._pod.spec.security_context) if context]
        users = [context.run_as_user for context in contexts if context.run_as_user is not None]
        groups = [context.run_as_group for context in contexts if context.run_as_group is not None]
        return cri.LinuxContainerSecurityContext(
            namespace_options=_host_network(),
            run_as_user=cri.Int64Value(value=users[0]) if users else None,
            run_as_group=cri.Int64Value(value=groups[0]) if users and groups else None,
        )

    def _mounted_paths(self, container: Container) -> "list[_MountedPath]":
        """A block device is no mount: the container may open it only if the runtime knows it as a device."""
        volumes = {volume.name: volume for volume in self._pod.spec.volumes or ()}
        found = []
        for mount in container.volume_mounts or ():
            source = volumes[mount.name].host_path
            path = Path(source.path) if source else self._directory / "volumes" / mount.name
            found.append(_MountedPath(str(path), mount.mount_path, is_device=path.is_block_device()))
        return found

    def _make_directories(self) -> None:
        for volume in self._pod.spec.volumes or ():
            if volume.empty_dir is not None:
                path = self._directory / "volumes" / volume.name
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o777)

    def _make_log_directory(self, container: Container) -> None:
        (self._directory / "logs" / container.name).mkdir(parents=True, exist_ok=True)

    async def _call_runtime(self, verb: str, request: Any) -> Any:
        return await self._connection.call(verb, request, within=STEP)


def _host_network() -> cri.NamespaceOption:
    return cri.NamespaceOption(network=cri.NODE, pid=cri.CONTAINER, ipc=cri.POD)
