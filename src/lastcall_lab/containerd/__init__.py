"""A real containerd for the lab, with pods in it: private, without a registry, gone without a trace."""

from lastcall_lab.containerd.cri_runtime import LabCriRuntime
from lastcall_lab.containerd.daemon import PrivateContainerd, unavailable_reason
from lastcall_lab.containerd.images import BUSYBOX

__all__ = ["BUSYBOX", "LabCriRuntime", "PrivateContainerd", "unavailable_reason"]
