"""A private containerd with pods for the lab: without a registry, and removed completely at the end."""

from lastcall_lab.containerd.cri_runtime import LabCriRuntime
from lastcall_lab.containerd.daemon import PrivateContainerd, unavailable_reason
from lastcall_lab.containerd.images import BUSYBOX

__all__ = ["BUSYBOX", "LabCriRuntime", "PrivateContainerd", "unavailable_reason"]
