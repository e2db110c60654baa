"""A real containerd for the lab, with pods in it: private, without a registry, gone without a trace."""

from lastcall.lab.containerd.daemon import PrivateContainerd, why_not
from lastcall.lab.containerd.images import BUSYBOX
from lastcall.lab.containerd.pods import LabCriRuntime

__all__ = ["BUSYBOX", "LabCriRuntime", "PrivateContainerd", "why_not"]
