"""The volumes of a node's pods: made before the first container starts, taken away after the last has ended."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CLAIMS, VOLUMES, Object, resource
from lastcall.aio import first
from lastcall.errors import LastcallError, NotFound
from lastcall.lab.kubelet import projections
from lastcall.lab.kubelet.fields import Place
from lastcall.lab.kubelet.missing import Missing
from lastcall.lab.kubelet.node import Node
from lastcall.lab.kubelet.settings import Settings
from lastcall.lab.kubelet.sources import Sources
from lastcall.lab.kubelet.tokens import Tokens
from lastcall.lab.kubelet.volume_port import Directories, Volumes
from lastcall.ports import Clock

DRIVERS = resource("storage.k8s.io", "v1", "csidrivers")

log = logging.getLogger(__name__)


class VolumeManager:
    """``driver`` is for persistent volumes; without one there are none."""

    def __init__(
        self,
        directories: Directories,
        driver: Volumes | None,
        *,
        client: Client,
        sources: Sources,
        node: Node,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._directories = directories
        self._driver = driver
        self._client = client
        self._sources = sources
        self._node = node
        self._clock = clock
        self._settings = settings
        self._tokens = Tokens(client, clock)
        self._shown: dict[tuple[str, str], projections.Files] = {}
        self._in_use = {
            (uid, name): record["unique"]
            for uid in self._directories.known()
            for name, record in self._directories.mounted(uid).items()
            if record["unique"]
        }

    @property
    def in_use(self) -> list[str]:
        """The unique names of the attachable volumes that pods use or wait for."""
        return sorted(set(self._in_use.values()))

    async def mount(self, pod: Object, volume: Object, place: Place) -> str:
        """Makes one volume, or brings its files up to date; its path on this machine.

        LastcallError says what is missing, or what failed; files that are there stay as they are then.
        """
        uid, name = pod["metadata"]["uid"], volume["name"]
        if "persistentVolumeClaim" in volume:
            return str(await self._mount_claim(pod, volume))
        if projections.projected(volume):
            files = self._shown[uid, name] = await self._files(pod, volume, place)
            return str(self._directories.project(uid, name, files))
        if "hostPath" in volume:
            path = volume["hostPath"]["path"]
            if fault := self._directories.check_host_path(path, volume["hostPath"].get("type") or ""):
                raise Missing(fault)
            return str(path)
        if "emptyDir" in volume:
            return str(self._directories.make(uid, name))
        raise Missing("volumes of this kind are not known here")

    def pin(self, pod: Object, container: Object) -> projections.Parts:
        """What a container that starts is given of parts (``subPath``) of volumes with files: copies, which stay as they are."""
        uid, found = pod["metadata"]["uid"], {}
        for number, one in enumerate(container.get("volumeMounts") or ()):
            name, part = one["name"], one.get("subPath", "")
            if part and (uid, name) in self._shown:
                files = projections.part(self._shown[uid, name], part)
                path = self._directories.project(uid, f"{container['name']}.{name}.{number}", files)
                found[name, part] = f"{path}/{part}"
        return found

    async def unmount_all(self, uid: str) -> None:
        """Unmounts what is mounted, deletes the rest. LastcallError if a driver fails: to be tried again."""
        for name, record in self._directories.mounted(uid).items():
            if self._driver is None:
                raise Missing(f"volume {name} of pod {uid} is mounted, and there is no driver to unmount it")
            await self._driver.unmount(record["pod"], record["claim"], self._directories.volume(uid, name))
            self._directories.after_unmount(uid, name)
            self._in_use.pop((uid, name), None)
            self._node.look()
        for key in [key for key in self._in_use if key[0] == uid]:
            del self._in_use[key]
        self._tokens.forget(uid)
        for key in [key for key in self._shown if key[0] == uid]:
            del self._shown[key]
        self._directories.remove(uid)
        self._node.look()

    def leftovers(self, known: Mapping[str, object]) -> list[str]:
        """The pods, by uid, that have volumes here although they are not known."""
        return [uid for uid in self._directories.known() if uid not in known]

    # -- projections ---------------------------------------------------------------------------------------------------

    async def _files(self, pod: Object, volume: Object, place: Place) -> projections.Files:
        namespace = pod["metadata"]["namespace"]
        sources = {source: await self._sources.get(namespace, source) for source in projections.needed(volume)}
        tokens = {one["path"]: await self._tokens.get(pod, one) for one in projections.tokens(volume)}
        return projections.files(pod, volume, place=place, sources=sources, tokens=tokens)

    # -- persistent volumes --------------------------------------------------------------------------------------------

    async def _mount_claim(self, pod: Object, volume: Object) -> Path:
        claim, found = await self._claim(pod, volume["persistentVolumeClaim"]["claimName"])
        spec = found["spec"]
        if "csi" not in spec:
            return _local(spec)
        if self._driver is None:
            raise Missing(f"driver name {spec['csi']['driver']} not found in the list of registered CSI drivers")
        uid, name, unique = pod["metadata"]["uid"], volume["name"], ""
        if await self._attachable(spec["csi"]["driver"]):
            unique = f"kubernetes.io/csi/{spec['csi']['driver']}^{spec['csi']['volumeHandle']}"
            self._in_use[uid, name] = unique
            self._node.look()
            await self._until_attached(unique, name)
        shown = {"metadata": pod["metadata"], "spec": {"nodeName": pod["spec"]["nodeName"]}}
        record = {"pod": shown, "claim": claim, "unique": unique}
        path = self._directories.before_mount(uid, name, record)
        await self._driver.mount(pod, claim, path)
        return path

    async def _claim(self, pod: Object, name: str) -> tuple[Object, Object]:
        """The claim and its volume."""
        namespace = pod["metadata"]["namespace"]
        try:
            claim = await self._client.get(CLAIMS, name, namespace=namespace)
        except NotFound:
            raise Missing(f'persistentvolumeclaim "{name}" not found') from None
        if (claim.get("status") or {}).get("phase") != "Bound":
            raise Missing(f"error processing PVC {namespace}/{name}: PVC is not bound")
        found = await self._client.get(VOLUMES, claim["spec"]["volumeName"])
        if (found["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            raise Missing(f"PV {found['metadata']['name']} is bound to another claim than {namespace}/{name}")
        return claim, found

    async def _attachable(self, driver: str) -> bool:
        try:
            found = await self._client.get(DRIVERS, driver)
        except NotFound:
            return True
        return bool(found["spec"].get("attachRequired", True))

    async def _until_attached(self, unique: str, name: str) -> None:
        """Missing when it takes too long; who asked tells so, and asks again."""
        end = self._clock.boottime() + self._settings.attach_limit
        while not (unique in self._node.attached() and await self._node.has_attached(unique)):
            left = end - self._clock.boottime()
            if left <= 0:
                why = "timed out waiting for the condition"
                raise Missing(
                    f"Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[],"
                    f" failed to process volumes=[]: {why}"
                )
            changed: asyncio.Future[None] = self._node.changed.next()
            await first(changed, self._clock.sleep(min(left, self._settings.attach_look)))


def _local(spec: Object) -> Path:
    """Volumes that are directories of this machine need no driver."""
    for kind in ("local", "hostPath"):
        if kind in spec:
            return Path(spec[kind]["path"])
    raise LastcallError("persistent volumes of this kind are not known here")
