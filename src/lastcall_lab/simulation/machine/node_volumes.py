"""``ports.volumes.NodeVolumes`` of a simulated machine: what its kubelet has mounted, as an agent beside it sees that."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from lastcall.model.node_volumes import CSI_PLUGIN, Filesystem, MountedVolume, VolumeState
from lastcall.ports.node import Clock
from lastcall_lab.simulation.machine.directories import InMemoryPodDirectories
from lastcall_lab.simulation.machine.volume_driver import FLUSH_SECONDS
from lastcall_lab.volumes.storage import Storage

_PREFIX = "kubernetes.io/csi/"


class SimulatedNodeVolumes:
    """Attachable volumes alone; there are no staging paths and no subPath mounts. Unmounting takes its time."""

    def __init__(self, storage: Storage, node: str, directories: InMemoryPodDirectories, clock: Clock) -> None:
        self._storage = storage
        self._node = node
        self._directories = directories
        self._clock = clock

    async def list_volumes(self, uid: str) -> Sequence[MountedVolume]:
        """Those that the kubelet has recorded."""
        records = self._directories.mount_records(uid)
        return [self._volume(uid, name, record["unique"]) for name, record in records.items() if record["unique"]]

    async def read_state(self, volume: MountedVolume, known: AbstractSet[Filesystem] = frozenset()) -> VolumeState:
        """By the mounts of the storage."""
        users = [uid for handle, uid in self._storage.mounts_of(self._node) if handle == volume.handle]
        mounted = volume.uid in users
        shown = {Filesystem(device=volume.handle, root="/")} if mounted else frozenset()
        return VolumeState(
            subpaths=(),
            target=volume.path if mounted else "",
            users=tuple(uid for uid in users if uid != volume.uid),
            has_stage=False,
            stage="",
            filesystems=frozenset(known | shown),
            elsewhere=(),
        )

    async def unmount_subpaths(self, paths: Sequence[str]) -> None:
        """There are none."""

    async def unpublish(self, volume: MountedVolume, within: float) -> None:
        """The volume can be written until this returns."""
        await self._clock.sleep(FLUSH_SECONDS)
        await self._storage.unmount(volume.handle, self._node, volume.uid, Path(volume.path))

    async def unstage(self, volume: MountedVolume, within: float) -> None:
        """Nothing is staged."""

    async def forget(self, volume: MountedVolume, *, staged: bool) -> None:
        """A kubelet that starts later does not find it."""
        self._directories.forget_mount(volume.uid, volume.name)

    def _volume(self, uid: str, name: str, unique: str) -> MountedVolume:
        driver, _, handle = unique.removeprefix(_PREFIX).partition("^")
        path = str(self._directories.volume_path(uid, name))
        return MountedVolume(
            uid=uid, name=name, plugin=CSI_PLUGIN, path=path, driver=driver, handle=handle, inline=False, problem=""
        )
