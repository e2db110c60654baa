"""Starts the containers of one pod: volumes, sandbox, variables, launch."""

from collections.abc import Mapping

from lastcall.adapters.kube.resources import Object
from lastcall.errors import LastcallError
from lastcall.model import decoding
from lastcall.model.pods import Container, LifecycleHandler
from lastcall.ports.node import RunningPod
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps
from lastcall_lab.kubelet.spec import environment, unsupported_fields
from lastcall_lab.kubelet.spec.translation import runtime_container, runtime_pod


class PodHeld(LastcallError):
    """Another component took over the pod while its start was prepared, which can take long: it is not started."""


class VolumeUnavailable(LastcallError):
    """A volume cannot be set up now."""


class ContainerStarter:
    """Starts the containers of one pod; prepares each volume and the sandbox only once."""

    def __init__(self, means: KubeletDeps) -> None:
        self._means = means
        self._paths: dict[str, str] = {}
        self._doubtful = False
        self.live: RunningPod | None = None
        """The prepared pod; None before that."""
        self.address = ""
        """The pod's address, once it has one."""

    async def prepare(self, pod: Object) -> RunningPod:
        """Sets up the volumes, then the sandbox; the latter again if a start has failed: others may have removed it.

        VolumeUnavailable; InvalidInput for what this node does not support; Unavailable.
        """
        if self.live is None:
            unsupported_fields.check_supported(pod)
            await self._mount_volumes(pod)
        if self.live is None or self._doubtful:
            made = runtime_pod(pod, paths=self._paths, address="", mounts=self._means.runtime.mounts)
            self.live = await self._means.runtime.create_sandbox(made)
            self._doubtful = False
            host = pod["spec"].get("hostNetwork", False)
            self.address = "" if host else self.live.pod.status.pod_ip
            self.address = self.address or self._means.profile.address
        return self.live

    async def launch_container(self, pod: Object, container: Object, attempt: int) -> str:
        """Starts a container and returns the id of the run.

        PodHeld; MissingDependency for what its variables need; otherwise as ``NodeRuntime.launch_container``.
        """
        live = await self.prepare(pod)
        ready = await self._runtime_container(pod, container)
        if self._means.held(pod["metadata"]["uid"]):
            raise PodHeld("another component ends the pods of this node")
        try:
            run = await self._means.runtime.launch_container(live.pod, ready, attempt=attempt)
        except LastcallError:
            self._doubtful = True
            raise
        self.live = RunningPod(
            pod=live.pod, containers={**live.containers, container["name"]: run}, sandbox=live.sandbox
        )
        self._tell_unmounted(pod, container, self._means.runtime.unmounted_reason(run))
        return run

    def post_start_hook(self, container: Object) -> LifecycleHandler | None:
        """The container's postStart hook, if it has one with an effect."""
        hook = (container.get("lifecycle") or {}).get("postStart") or {}
        known = decoding.convert(hook, LifecycleHandler, f"container {container['name']}: lifecycle.postStart")
        return known if known.exec or known.http_get or known.sleep else None

    def _tell_unmounted(self, pod: Object, container: Object, why: str) -> None:
        """Reports by an event that a process finds its volumes, its token among them, only through variables."""
        if why:
            paths = ", ".join(one["mountPath"] for one in container.get("volumeMounts") or ())
            message = f"Volumes are not shown at {paths} ({why}): the process finds them by $VOLUME_<NAME>"
            self._means.record_event(pod, "Warning", "VolumesNotShown", message, container["name"])

    async def _mount_volumes(self, pod: Object) -> None:
        for volume in pod["spec"].get("volumes") or ():
            name = volume["name"]
            try:
                self._paths[name] = await self._means.volumes.mount(pod, volume, self._means.pod_location(self.address))
            except LastcallError as error:
                if str(error).startswith("Unable to attach"):
                    raise VolumeUnavailable(str(error)) from error
                raise VolumeUnavailable(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error

    async def _runtime_container(self, pod: Object, container: Object) -> Container:
        namespace = pod["metadata"]["namespace"]
        sources = {
            one: await self._means.sources.get(namespace, one) for one in environment.config_sources_of(container)
        }
        known = environment.container_variables(
            pod,
            container,
            place=self._means.pod_location(self.address),
            sources=sources,
            services={**self._fixed_variables(pod), **await self._service_variables(pod)},
        )
        mounts = self._means.runtime.mounts
        pins = {} if mounts else self._means.volumes.pin_sub_paths(pod, container)
        return runtime_container(container, known, paths=self._paths, pins=pins, mounts=mounts)

    def _fixed_variables(self, pod: Object) -> Mapping[str, str]:
        """Variables of every lab container: a process on the host's network has no other way to know its pod."""
        metadata = pod["metadata"]
        return {
            "POD_NAME": metadata["name"],
            "POD_NAMESPACE": metadata["namespace"],
            "POD_UID": metadata["uid"],
            "POD_IP": self.address,
            "NODE_NAME": self._means.profile.name,
        }

    async def _service_variables(self, pod: Object) -> Mapping[str, str]:
        profile, known = self._means.profile, await self._means.sources.services_for(pod)
        return environment.service_variables(pod, known, node=profile.number, privileged=profile.privileged)
