"""Whether an address is this machine's, and a UDP port of it free, tried without a datagram being sent."""

import ipaddress
import socket

from lastcall.adapters.host.datagrams import bind_udp
from lastcall.doctor.facts import AttemptResult
from lastcall.errors import LastcallError

_ANY = 9
"""A port must be named; nothing is sent there (discard, RFC 863)."""


def is_own_address(address: str) -> bool:
    """Whether it is one of this machine's: who sends to himself is who receives.

    Also where addresses of others may be bound (``net.ipv4.ip_nonlocal_bind``).
    """
    try:
        wanted = ipaddress.ip_address(address)
        with socket.socket(socket.AF_INET if wanted.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.setblocking(False)
            probe.connect((address, _ANY))
            return ipaddress.ip_address(probe.getsockname()[0]) == wanted
    except (ValueError, OSError):
        return False


def try_bind(address: str, port: int) -> AttemptResult:
    """Whether the port can be had now, as the agent binds it. It is given back."""
    try:
        bind_udp(address, port).close()
    except LastcallError as error:
        return AttemptResult(works=False, message=str(error))
    return AttemptResult(works=True, message=f"UDP {address} port {port} is free")
