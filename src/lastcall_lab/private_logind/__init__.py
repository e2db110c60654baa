"""The real systemd-logind, private: it hears and decides as the machine's own would, and can power off nothing."""

from lastcall_lab.fakes.systemd_calls import SystemdCall, SystemdResponse
from lastcall_lab.private_logind.daemon import PrivateLogind

__all__ = ["PrivateLogind", "SystemdCall", "SystemdResponse"]
