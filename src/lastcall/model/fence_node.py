"""What a Node says of the machine that it runs on: what a fence is chosen, set up and checked by."""

from collections.abc import Mapping

from lastcall.model.base import Facts


class FenceNode(Facts, frozen=True):
    """A Node as it was read last. What it does not say is empty."""

    name: str
    system_uuid: str = ""
    """``status.nodeInfo.systemUUID``: what the kubelet read from ``/sys/class/dmi/id/product_uuid``, or in its place, on a
    machine without DMI, the machine id of its system."""
    shared_with: str = ""
    """Another Node that shows the same one: a machine that was renamed and registered anew, or a copied firmware."""
    provider_id: str = ""
    """``spec.providerID``."""
    serial: str = ""
    """The annotation ``lastcall.dev/machine-serial``; Kubernetes knows no serial numbers."""
    boot_id: str = ""
    """``status.nodeInfo.bootID``."""
    machine_id: str = ""
    """``status.nodeInfo.machineID``: ``/etc/machine-id``, which machines that were cloned may share."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
