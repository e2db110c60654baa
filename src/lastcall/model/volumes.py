"""How volumes of CSI drivers and their attachments are called (pure): ``k8s.io/kubernetes/pkg/volume/csi``."""

import hashlib

_CSI = "kubernetes.io/csi/"


def unique_name(driver: str, handle: str) -> str:
    """As nodes call a volume in ``volumesInUse`` and ``volumesAttached`` (``v1.UniqueVolumeName``)."""
    return f"{_CSI}{driver}^{handle}"


def attachment_name(driver: str, handle: str, node: str) -> str:
    """Of the VolumeAttachment, one for each volume and node (``getAttachmentName`` of the CSI plugin)."""
    return f"csi-{hashlib.sha256(f'{handle}{driver}{node}'.encode()).hexdigest()}"


def attachment_of(unique: str, node: str) -> str:
    """The name of the attachment of a volume that a node reports; empty if it is not one of a CSI driver."""
    driver, found, handle = unique.removeprefix(_CSI).partition("^")
    return attachment_name(driver, handle, node) if found and unique.startswith(_CSI) else ""
