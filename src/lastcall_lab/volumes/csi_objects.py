"""The objects of the toy driver that exist from the start."""

from collections.abc import Sequence
from typing import Any

from lastcall_lab.volumes import DRIVER, STORAGE_CLASS

Object = dict[str, Any]


def storage_class() -> Object:
    """The class ``lab``, the default one, with WaitForFirstConsumer: a volume is made when its pod has a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def csi_driver() -> Object:
    """The driver, whose volumes are attached before they are mounted."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": True, "podInfoOnMount": False},
    }


def csi_node(node: str, uid: str, *, drivers: Sequence[str] = (DRIVER,)) -> Object:
    """The kubelet's record of the drivers on a node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node, "ownerReferences": [owner]},
        "spec": {"drivers": [{"name": one, "nodeID": node, "topologyKeys": None} for one in drivers]},
    }
