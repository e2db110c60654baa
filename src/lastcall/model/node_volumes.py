"""The volumes that a kubelet has mounted for a pod, and how far one of them is unmounted (pure)."""

from lastcall.model.base import Facts
from lastcall.model.volumes import unique_name

CSI_PLUGIN = "kubernetes.io/csi"


class MountedVolume(Facts, frozen=True):
    """A volume that has a directory of a pod on the node and has to be unmounted before its pod's object may go.

    ``name`` is the PersistentVolume's, or the pod's own for a volume that is defined in the pod (``inline``).
    ``driver`` and ``handle`` are those of CSI; ``problem`` says why the agent cannot unmount it, "" if it can.
    ``path`` is its directory, or the link to its device if the pod uses it as a block device (``is_block``).
    """

    uid: str
    name: str
    plugin: str
    path: str
    driver: str = ""
    handle: str = ""
    inline: bool = False
    is_block: bool = False
    problem: str = ""

    @property
    def unique_name(self) -> str:
        """Its name in ``volumesInUse`` of the Node; "" if it is none that is attached through CSI."""
        return unique_name(self.driver, self.handle) if self.driver and not self.inline else ""

    @property
    def title(self) -> str:
        """The volume as reports name it."""
        return f"{self.name} ({self.driver or self.plugin})"


class Filesystem(Facts, frozen=True):
    """What a mount point shows: the device as ``major:minor``, and the directory of its file system."""

    device: str
    root: str


class VolumeState(Facts, frozen=True):
    """How far a volume is unmounted; all paths are mount points, or of a block device.

    ``subpaths`` are the kubelet's own mounts: of parts for subPath, or of a block device.
    ``users`` are the uids of other pods whose directories on this node refer to the volume. ``filesystems`` are those that
    its mounts show, or have shown at an earlier look. ``elsewhere`` are further mount points of them, without those of
    other volumes.
    """

    subpaths: tuple[str, ...] = ()
    target: str = ""
    users: tuple[str, ...] = ()
    has_stage: bool = False
    stage: str = ""
    filesystems: frozenset[Filesystem] = frozenset()
    elsewhere: tuple[str, ...] = ()
