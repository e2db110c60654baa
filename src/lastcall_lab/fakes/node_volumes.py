"""A node's CSI volumes and their drivers in memory: ``ports.volumes.NodeVolumes`` for tests and rehearsals."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from lastcall.errors import Unavailable
from lastcall.model.node_volumes import CSI_PLUGIN, Filesystem, MountedVolume, VolumeState
from lastcall.ports.node import Clock

DRIVER = "csi.example.com"


class FakeNodeVolumes:
    """``behaviour`` maps calls (``NodeUnpublishVolume``, ``NodeUnstageVolume``) to ``hang``, ``fail``, ``lie`` or ``gone``.

    ``calls`` are the calls that a driver has received, with the volume's handle. ``seconds`` is the time of one call.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._directories: dict[str, dict[str, MountedVolume]] = {}
        self._targets: set[str] = set()
        self._stages: dict[str, bool] = {}
        self._elsewhere: dict[str, str] = {}
        self._subpaths: dict[str, tuple[str, ...]] = {}
        self.behaviour: dict[str, str] = {}
        self.calls: list[tuple[str, str]] = []
        self.seconds = 0.0

    def mount(
        self,
        uid: str,
        name: str,
        handle: str,
        *,
        inline: bool = False,
        subpath: bool = False,
        block: bool = False,
        problem: str = "",
    ) -> MountedVolume:
        """Mounts a volume for a pod, as a kubelet does."""
        path = f"/pods/{uid}/{'volumeDevices' if block else 'volumes'}/{name}"
        volume = MountedVolume(
            uid=uid,
            name=name,
            plugin=CSI_PLUGIN,
            path=path,
            driver="" if problem else DRIVER,
            handle="" if problem else handle,
            inline=inline,
            is_block=block,
            problem=problem,
        )
        self._directories.setdefault(uid, {})[name] = volume
        self._targets.add(path)
        if not inline:
            self._stages[handle] = True
        if subpath:
            self._subpaths[path] = (f"/pods/{uid}/volume-subpaths/{name}/0",)
        if block:
            self._subpaths[path] = (f"/plugins/volumeDevices/{name}/dev/{uid}",)
        return volume

    def add_pod(self, uid: str) -> None:
        """Makes the directory of a pod without such volumes."""
        self._directories.setdefault(uid, {})

    def mount_elsewhere(self, handle: str, path: str) -> None:
        """Mounts the file system of a volume at a path that no kubelet knows."""
        self._elsewhere[handle] = path

    def unmount_elsewhere(self, handle: str) -> None:
        """Unmounts that again."""
        del self._elsewhere[handle]

    async def list_volumes(self, uid: str) -> Sequence[MountedVolume]:
        """The volumes with a directory."""
        if uid not in self._directories:
            raise Unavailable(f"/pods/{uid} is not a directory")
        return tuple(self._directories[uid].values())

    async def read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem] = frozenset()) -> VolumeState:
        """The state; each volume has a file system of its own."""
        filesystem = Filesystem(device=volume.handle, root="/")
        is_target, is_stage = volume.path in self._targets, self._stages.get(volume.handle, False)
        filesystems = known | {filesystem} if is_target or is_stage else frozenset(known)
        elsewhere = self._elsewhere.get(volume.handle) if filesystem in filesystems else None
        return VolumeState(
            subpaths=self._subpaths.get(volume.path, ()),
            target=f"{volume.path}/mount" if is_target else "",
            users=tuple(one.uid for one in self._others(volume) if one.handle == volume.handle),
            has_stage=volume.handle in self._stages,
            stage=f"/plugins/{volume.handle}/globalmount" if is_stage else "",
            filesystems=frozenset(filesystems),
            elsewhere=(elsewhere,) if elsewhere else (),
        )

    async def unmount_subpaths(self, paths: Sequence[str]) -> None:
        """Unmounts them."""
        self._subpaths = {
            volume: left for volume, own in self._subpaths.items() if (left := tuple(p for p in own if p not in paths))
        }

    async def unpublish(self, volume: MountedVolume, within: float) -> None:
        """Unmounts the target."""
        if await self._call("NodeUnpublishVolume", volume, within):
            self._targets.discard(volume.path)

    async def unstage(self, volume: MountedVolume, within: float) -> None:
        """Unmounts the stage."""
        if await self._call("NodeUnstageVolume", volume, within) and volume.handle in self._stages:
            self._stages[volume.handle] = False

    async def forget(self, volume: MountedVolume, *, staged: bool) -> None:
        """Removes the directories."""
        if volume.path in self._targets or (staged and self._stages.get(volume.handle)):
            raise Unavailable(f"{volume.path}: Device or resource busy")
        self._directories[volume.uid].pop(volume.name, None)
        if staged:
            self._stages.pop(volume.handle, None)

    def _others(self, volume: MountedVolume) -> list[MountedVolume]:
        return [one for pod in self._directories.values() for one in pod.values() if one.path != volume.path]

    async def _call(self, method: str, volume: MountedVolume, within: float) -> bool:
        """Whether the driver does what it is asked for."""
        verb = self.behaviour.get(method, "")
        if verb == "gone":
            raise Unavailable(f"{DRIVER}: {method}: connection refused")
        self.calls.append((method, volume.handle))
        if verb == "hang":
            await self._clock.sleep(within)
            raise Unavailable(f"{DRIVER}: {method}: the driver has not answered in time")
        await self._clock.sleep(self.seconds)
        if verb == "fail":
            raise Unavailable(f"{DRIVER}: {method}: the device is busy")
        return verb != "lie"
