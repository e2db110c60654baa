"""The real systemd-logind, private: it hears and decides as the machine's own would, and can power off nothing."""

from lastcall.lab.logind_calls import Call, Mode
from lastcall.lab.private_logind.private import PrivateLogind

__all__ = ["Call", "Mode", "PrivateLogind"]
