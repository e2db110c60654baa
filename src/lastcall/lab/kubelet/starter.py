"""Brings the containers of one pod to run: volumes, sandbox, variables, start."""

from collections.abc import Mapping

from lastcall.adapters.kube.resources import Object
from lastcall.errors import LastcallError
from lastcall.lab.kubelet import abilities, environment
from lastcall.lab.kubelet.means import Means
from lastcall.lab.kubelet.translation import runtime_container, runtime_pod
from lastcall.model import decode
from lastcall.model.pods import Container, Handler
from lastcall.ports import LivePod


class Held(LastcallError):
    """While the start was prepared, which may take long, somebody else has taken the pod over: it is not started."""


class VolumeFault(LastcallError):
    """A volume cannot be made now."""


class Starter:
    """Of one pod; what has been prepared once is not prepared again."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._paths: dict[str, str] = {}
        self.live: LivePod | None = None
        """The pod as the runtime knows it, once it does."""
        self.address = ""
        """The pod's, once it has one."""

    async def prepare(self, pod: Object) -> LivePod:
        """Volumes, then the sandbox. VolumeFault; InvalidInput for what this node cannot do; Unavailable."""
        if self.live is None:
            abilities.check(pod)
            await self._mount(pod)
            made = runtime_pod(pod, paths=self._paths, address="", mounts=self._means.runtime.mounts)
            self.live = await self._means.runtime.create(made)
            host = pod["spec"].get("hostNetwork", False)
            self.address = "" if host else self.live.pod.status.pod_ip
            self.address = self.address or self._means.profile.address
        return self.live

    async def launch(self, pod: Object, container: Object, attempt: int) -> str:
        """The id of the run. Held; Missing for what its variables need, else as ``NodeRuntime.launch``."""
        live = await self.prepare(pod)
        ready = await self._container(pod, container)
        if self._means.held(pod["metadata"]["uid"]):
            raise Held("somebody else ends the pods of this node")
        run = await self._means.runtime.launch(live.pod, ready, attempt=attempt)
        self.live = LivePod(pod=live.pod, containers={**live.containers, container["name"]: run}, sandbox=live.sandbox)
        self._tell_unmounted(pod, container, self._means.runtime.unmounted(run))
        return run

    def post_start(self, container: Object) -> Handler | None:
        """Its postStart hook, if it has one that does something."""
        hook = (container.get("lifecycle") or {}).get("postStart") or {}
        known = decode.convert(hook, Handler, f"container {container['name']}: lifecycle.postStart")
        return known if known.exec or known.http_get or known.sleep else None

    def _tell_unmounted(self, pod: Object, container: Object, why: str) -> None:
        """That a process finds its volumes, its token among them, by variables alone."""
        if why:
            paths = ", ".join(one["mountPath"] for one in container.get("volumeMounts") or ())
            message = f"Volumes are not shown at {paths} ({why}): the process finds them by $VOLUME_<NAME>"
            self._means.tell(pod, "Warning", "VolumesNotShown", message, container["name"])

    async def _mount(self, pod: Object) -> None:
        for volume in pod["spec"].get("volumes") or ():
            name = volume["name"]
            try:
                self._paths[name] = await self._means.volumes.mount(pod, volume, self._means.place(self.address))
            except LastcallError as error:
                if str(error).startswith("Unable to attach"):
                    raise VolumeFault(str(error)) from error
                raise VolumeFault(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error

    async def _container(self, pod: Object, container: Object) -> Container:
        namespace = pod["metadata"]["namespace"]
        sources = {one: await self._means.sources.get(namespace, one) for one in environment.needed(container)}
        known = environment.variables(
            pod,
            container,
            place=self._means.place(self.address),
            sources=sources,
            services={**self._standing(pod), **await self._services(pod)},
        )
        mounts = self._means.runtime.mounts
        pins = {} if mounts else self._means.volumes.pin(pod, container)
        return runtime_container(container, known, paths=self._paths, pins=pins, mounts=mounts)

    def _standing(self, pod: Object) -> Mapping[str, str]:
        """What every container of this lab has: nothing else tells a process on the host's network which pod it is."""
        metadata = pod["metadata"]
        return {
            "POD_NAME": metadata["name"],
            "POD_NAMESPACE": metadata["namespace"],
            "POD_UID": metadata["uid"],
            "POD_IP": self.address,
            "NODE_NAME": self._means.profile.name,
        }

    async def _services(self, pod: Object) -> Mapping[str, str]:
        profile, known = self._means.profile, await self._means.sources.services(pod)
        return environment.services(pod, known, node=profile.number, privileged=profile.privileged)
