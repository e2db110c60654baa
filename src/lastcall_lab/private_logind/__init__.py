"""The real systemd-logind on a private bus: it behaves as the machine's own, and can power off nothing."""

from lastcall_lab.fakes.systemd_calls import SystemdCall, SystemdResponse
from lastcall_lab.private_logind.daemon import PrivateLogind

__all__ = ["PrivateLogind", "SystemdCall", "SystemdResponse"]
