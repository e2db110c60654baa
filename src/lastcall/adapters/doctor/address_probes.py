"""Probes without a datagram: whether an address is this machine's, and whether a UDP port of it is free."""

import ipaddress
import socket

from lastcall.adapters.host.datagrams import bind_udp
from lastcall.doctor.facts import AttemptResult
from lastcall.errors import LastcallError

_ANY = 9
"""connect(2) needs a port; nothing is sent to it (discard, RFC 863)."""


def is_own_address(address: str) -> bool:
    """Whether the address belongs to this machine: a packet to it then has it as its source, too.

    Correct also where foreign addresses may be bound (``net.ipv4.ip_nonlocal_bind``).
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
    """Tries to bind the port as the agent does, and closes it again."""
    try:
        bind_udp(address, port).close()
    except LastcallError as error:
        return AttemptResult(works=False, message=str(error))
    return AttemptResult(works=True, message=f"UDP {address} port {port} is free")
