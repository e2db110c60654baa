"""Reads the state of a cluster from a file, for the rules of the controllers."""

from collections.abc import Iterator

from lastcall.model.base import Facts
from lastcall.model.list_file import FileKind, FoundObjects, read_list
from lastcall.model.snapshot import Lease, Node, PersistentVolume, Snapshot, SnapshotPod, VolumeAttachment

_KINDS = {
    "Node": FileKind("v1", Node),
    "Pod": FileKind("v1", SnapshotPod, namespaced=True),
    "VolumeAttachment": FileKind("storage.k8s.io/v1", VolumeAttachment),
    "Lease": FileKind("coordination.k8s.io/v1", Lease, namespaced=True),
    "PersistentVolume": FileKind("v1", PersistentVolume),
}

_OURS = ("FencePolicy", "NodeShutdown")
"""Kinds that only ``lastcall failover explain`` reads from such a file."""


class StateFile(Facts, frozen=True):
    """The objects in the file's order, and warnings about the rest of the file."""

    snapshot: Snapshot
    warnings: tuple[str, ...] = ()


def read_state(data: bytes, source: str) -> StateFile:
    """The objects in a file, read by ``read_list``: a List, or documents. InvalidInput."""
    found = read_list(data, source, _KINDS)
    snapshot = Snapshot(
        nodes=tuple(found.objects["Node"]),
        pods=tuple(found.objects["Pod"]),
        attachments=tuple(found.objects["VolumeAttachment"]),
        leases=tuple(found.objects["Lease"]),
        volumes=tuple(found.objects["PersistentVolume"]),
    )
    return StateFile(snapshot=snapshot, warnings=tuple(_list_warnings(found, snapshot, source)))


def _list_warnings(found: FoundObjects, snapshot: Snapshot, source: str) -> Iterator[str]:
    """Warnings about a file without violations."""
    others = {kind: count for kind, count in found.others.items() if kind.removesuffix("List") not in _OURS}
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        yield f"{source}: passed over: {kinds}"
    if not snapshot.nodes:
        missing = "all nodes of the pods count as missing" if snapshot.pods else "there is nothing to plan for"
        yield f"{source}: no Node: {missing}"
    volumes = {volume.metadata.name for volume in snapshot.volumes}
    unknown = [
        attachment.metadata.name
        for attachment in snapshot.attachments
        if (volume := attachment.spec.source.persistent_volume_name) and volume not in volumes
    ]
    if unknown:
        yield f"{source}: no PersistentVolume for: {', '.join(sorted(unknown))}"
