"""The facts of a Node that identify its machine: fences are chosen, configured and verified by them."""

from collections.abc import Mapping

from lastcall.model.base import Facts


class FenceNode(Facts, frozen=True):
    """A Node as last read. Unknown fields are empty."""

    name: str
    system_uuid: str = ""
    """``status.nodeInfo.systemUUID``: the kubelet reads it from ``/sys/class/dmi/id/product_uuid``, or on a machine
    without DMI uses the system's machine id."""
    shared_with: str = ""
    """Another Node with the same system UUID: the same machine under a new name, or a copied firmware."""
    provider_id: str = ""
    """``spec.providerID``."""
    serial: str = ""
    """The annotation ``lastcall.dev/machine-serial``; Kubernetes has no field for a serial number."""
    boot_id: str = ""
    """``status.nodeInfo.bootID``."""
    machine_id: str = ""
    """``status.nodeInfo.machineID``: ``/etc/machine-id``, which cloned machines may share."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
