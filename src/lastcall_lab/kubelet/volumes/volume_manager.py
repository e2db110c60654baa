"""The volume manager: sets up volumes before the first container starts and removes them after the last has ended."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import CLAIMS, VOLUMES, Object, dict_resource
from lastcall.aio import wait_first
from lastcall.errors import LastcallError, NotFound
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.missing_dependency import MissingDependency
from lastcall_lab.kubelet.base.settings import KubeletSettings
from lastcall_lab.kubelet.cluster.config_sources import ConfigSources
from lastcall_lab.kubelet.cluster.node_reporter import NodeReporter
from lastcall_lab.kubelet.cluster.service_account_tokens import ServiceAccountTokens
from lastcall_lab.kubelet.spec import projections
from lastcall_lab.kubelet.spec.field_refs import PodLocation
from lastcall_lab.kubelet.volumes.driver_port import NodeVolumeDriver, VolumeDirectories

DRIVERS = dict_resource("storage.k8s.io", "v1", "csidrivers")

log = logging.getLogger(__name__)


class VolumeManager:
    """``driver`` handles persistent volumes; without a driver they are not supported."""

    def __init__(
        self,
        directories: VolumeDirectories,
        driver: NodeVolumeDriver | None,
        *,
        client: Client,
        sources: ConfigSources,
        node: NodeReporter,
        clock: Clock,
        settings: KubeletSettings,
    ) -> None:
        self._directories = directories
        self._driver = driver
        self._client = client
        self._sources = sources
        self._node = node
        self._clock = clock
        self._settings = settings
        self._tokens = ServiceAccountTokens(client, clock)
        self._shown: dict[tuple[str, str], projections.Files] = {}
        self._in_use = {
            (uid, name): record["unique"]
            for uid in self._directories.pod_uids()
            for name, record in self._directories.mount_records(uid).items()
            if record["unique"]
        }

    @property
    def in_use(self) -> list[str]:
        """The unique names of the attachable volumes that pods use or wait for."""
        return sorted(set(self._in_use.values()))

    async def mount(self, pod: Object, volume: Object, place: PodLocation) -> str:
        """Sets up one volume, or updates its files; returns its path on this machine.

        LastcallError says what is missing or what failed; existing files then stay unchanged.
        """
        uid, name = pod["metadata"]["uid"], volume["name"]
        if "persistentVolumeClaim" in volume:
            return str(await self._mount_claim(pod, volume))
        if projections.is_projected(volume):
            files = self._shown[uid, name] = await self._projected_files(pod, volume, place)
            return str(self._directories.write_projection(uid, name, files))
        if "hostPath" in volume:
            path = volume["hostPath"]["path"]
            if fault := self._directories.host_path_problem(path, volume["hostPath"].get("type") or ""):
                raise MissingDependency(fault)
            return str(path)
        if "emptyDir" in volume:
            return str(self._directories.make_empty(uid, name))
        raise MissingDependency("volumes of this kind are not supported here")

    def pin_sub_paths(self, pod: Object, container: Object) -> projections.Parts:
        """Copies the ``subPath`` parts of projected volumes for a starting container. The copies do not change."""
        uid, found = pod["metadata"]["uid"], {}
        for number, one in enumerate(container.get("volumeMounts") or ()):
            name, part = one["name"], one.get("subPath", "")
            if part and (uid, name) in self._shown:
                files = projections.files_below(self._shown[uid, name], part)
                path = self._directories.write_projection(uid, f"{container['name']}.{name}.{number}", files)
                found[name, part] = f"{path}/{part}"
        return found

    async def unmount_all(self, uid: str) -> None:
        """Unmounts persistent volumes and deletes the rest. LastcallError if a driver fails; the caller retries."""
        for name, record in self._directories.mount_records(uid).items():
            if self._driver is None:
                raise MissingDependency(f"volume {name} of pod {uid} is mounted, and there is no driver to unmount it")
            await self._driver.unmount(record["pod"], record["claim"], self._directories.volume_path(uid, name))
            self._directories.forget_mount(uid, name)
            self._in_use.pop((uid, name), None)
            self._node.request_status_write()
        for key in [key for key in self._in_use if key[0] == uid]:
            del self._in_use[key]
        self._tokens.forget(uid)
        for key in [key for key in self._shown if key[0] == uid]:
            del self._shown[key]
        self._directories.remove(uid)
        self._node.request_status_write()

    def leftover_pods(self, known: Mapping[str, object]) -> list[str]:
        """The uids of unknown pods that still have volumes on this node."""
        return [uid for uid in self._directories.pod_uids() if uid not in known]

    # -- projections ---------------------------------------------------------------------------------------------------

    async def _projected_files(self, pod: Object, volume: Object, place: PodLocation) -> projections.Files:
        namespace = pod["metadata"]["namespace"]
        sources = {
            source: await self._sources.get(namespace, source) for source in projections.config_sources_of(volume)
        }
        tokens = {one["path"]: await self._tokens.get(pod, one) for one in projections.token_sources(volume)}
        return projections.projected_files(pod, volume, place=place, sources=sources, tokens=tokens)

    # -- persistent volumes --------------------------------------------------------------------------------------------

    async def _mount_claim(self, pod: Object, volume: Object) -> Path:
        claim, found = await self._bound_claim(pod, volume["persistentVolumeClaim"]["claimName"])
        spec = found["spec"]
        if "csi" not in spec:
            return _local_path(spec)
        if self._driver is None:
            raise MissingDependency(
                f"driver name {spec['csi']['driver']} not found in the list of registered CSI drivers"
            )
        uid, name, unique = pod["metadata"]["uid"], volume["name"], ""
        driver, handle = spec["csi"]["driver"], spec["csi"]["volumeHandle"]
        if await self._is_attachable(driver):
            unique = f"kubernetes.io/csi/{driver}^{handle}"
            self._in_use[uid, name] = unique
            self._node.request_status_write()
            await self._wait_until_attached(unique, name)
        shown = {"metadata": pod["metadata"], "spec": {"nodeName": pod["spec"]["nodeName"]}}
        record = {"pod": shown, "claim": claim, "unique": unique, "driverName": driver, "volumeHandle": handle}
        path = self._directories.record_mount(uid, name, record)
        await self._driver.mount(pod, claim, path)
        return path

    async def _bound_claim(self, pod: Object, name: str) -> tuple[Object, Object]:
        """The bound claim and its volume."""
        namespace = pod["metadata"]["namespace"]
        try:
            claim = await self._client.get(CLAIMS, name, namespace=namespace)
        except NotFound:
            raise MissingDependency(f'persistentvolumeclaim "{name}" not found') from None
        if (claim.get("status") or {}).get("phase") != "Bound":
            raise MissingDependency(f"error processing PVC {namespace}/{name}: PVC is not bound")
        found = await self._client.get(VOLUMES, claim["spec"]["volumeName"])
        if (found["spec"].get("claimRef") or {}).get("uid") != claim["metadata"]["uid"]:
            raise MissingDependency(f"PV {found['metadata']['name']} is bound to another claim than {namespace}/{name}")
        return claim, found

    async def _is_attachable(self, driver: str) -> bool:
        try:
            found = await self._client.get(DRIVERS, driver)
        except NotFound:
            return True
        return bool(found["spec"].get("attachRequired", True))

    async def _wait_until_attached(self, unique: str, name: str) -> None:
        """MissingDependency after a timeout; the caller reports it and retries."""
        end = self._clock.boottime() + self._settings.attach_limit
        while not (unique in self._node.attached_volumes() and await self._node.is_attached_now(unique)):
            left = end - self._clock.boottime()
            if left <= 0:
                why = "timed out waiting for the condition"
                raise MissingDependency(
                    f"Unable to attach or mount volumes: unmounted volumes=[{name}], unattached volumes=[],"
                    f" failed to process volumes=[]: {why}"
                )
            changed: asyncio.Future[None] = self._node.changed.next()
            await wait_first(changed, self._clock.sleep(min(left, self._settings.attach_look)))


def _local_path(spec: Object) -> Path:
    """The path of volumes that are plain directories of this machine and need no driver."""
    for kind in ("local", "hostPath"):
        if kind in spec:
            return Path(spec[kind]["path"])
    raise LastcallError("persistent volumes of this kind are not supported here")
