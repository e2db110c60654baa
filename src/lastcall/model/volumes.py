"""The names of CSI volumes and their attachments (pure): ``k8s.io/kubernetes/pkg/volume/csi``."""

import hashlib

_CSI = "kubernetes.io/csi/"


def unique_name(driver: str, handle: str) -> str:
    """The volume's name in ``volumesInUse`` and ``volumesAttached`` of nodes (``v1.UniqueVolumeName``)."""
    return f"{_CSI}{driver}^{handle}"


def attachment_name(driver: str, handle: str, node: str) -> str:
    """The name of the VolumeAttachment of one volume and node (``getAttachmentName`` of the CSI plugin)."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def attachment_of(unique: str, node: str) -> str:
    """The name of the attachment of a volume that a node reports; empty if it is not a CSI volume."""
    driver, found, handle = unique.removeprefix(_CSI).partition("^")
    return attachment_name(driver, handle, node) if found and unique.startswith(_CSI) else ""
