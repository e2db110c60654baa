"""``ports.watchdog.Datagrams`` over UDP."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Collection, Sequence

from lastcall.adapters.host import datagram_filter
from lastcall.errors import LastcallError, Unavailable

_LONGEST = 2048
"""A longer datagram is truncated, so that its signature does not match."""
_ROOM = 1 << 23
"""Size of the receive buffer in bytes: some 10,000 short datagrams, each of which counts as 768 bytes."""

_SO_RCVBUFFORCE = 33
"""socket(7): exceeds the kernel's limit (``net.core.rmem_max``) for a process with CAP_NET_ADMIN."""


class UdpDatagrams:
    """One UDP socket."""

    def __init__(self, bound: socket.socket) -> None:
        self._socket = bound
        self._others: UdpDatagrams | None = None

    @property
    def bound_address(self) -> tuple[str, int]:
        """The address that the socket is bound to."""
        host, port = self._socket.getsockname()[:2]
        return str(host), int(port)

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """``ports.watchdog.Datagrams.send``."""
        with contextlib.suppress(OSError):  # a full buffer, no route, or an ICMP error of an earlier datagram
            self._socket.sendto(data, to)

    async def receive(self) -> tuple[bytes, tuple[str, int]]:
        """``ports.watchdog.Datagrams.receive``."""
        while True:
            try:
                data, sender = await asyncio.get_running_loop().sock_recvfrom(self._socket, _LONGEST)
            except OSError:
                await asyncio.sleep(
                    0.01
                )  # an ICMP error of an earlier datagram; the pause bounds the work if it repeats
                continue
            return data, sender

    def receive_waiting(self, most: int) -> Sequence[tuple[bytes, tuple[str, int]]]:
        """``ports.watchdog.Datagrams.receive_waiting``."""
        found: list[tuple[bytes, tuple[str, int]]] = []
        with contextlib.suppress(OSError):  # the queue is empty, or an ICMP error of an earlier datagram
            while len(found) < most:
                found.append(self._socket.recvfrom(_LONGEST))
        return found

    def split_off_peers(self, peers: Collection[str]) -> "UdpDatagrams | None":
        """``ports.watchdog.Datagrams.split_off_peers``."""
        others = self._others
        try:
            others = others or UdpDatagrams(self._second_socket())
            datagram_filter.steer_datagrams(self._socket, peers)
        except OSError:  # the earlier second socket keeps its peers: it is still being read
            if others is not None and others is not self._others:
                others.close()
            return self._others
        self._others = others
        return others

    def _second_socket(self) -> socket.socket:
        """A second socket of the same address, which may be shared only from now on.

        Raises OSError if the kernel does not allow it.
        """
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        second = socket.socket(self._socket.family, socket.SOCK_DGRAM)
        try:
            second.setblocking(False)
            second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            second.bind(self._socket.getsockname())
        except OSError:
            second.close()
            raise
        return second

    def close(self) -> None:
        """``ports.watchdog.Datagrams.close``."""
        self._socket.close()
        if self._others is not None:
            self._others.close()


def bind_udp(address: str, port: int) -> UdpDatagrams:
    """Bound to an IP address of this machine, IPv4 or 6; Unavailable if it is none, or the port is taken."""
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        raise LastcallError(f"{address}: is not an IP address") from error
    opened = socket.socket(socket.AF_INET if version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        with contextlib.suppress(PermissionError):
            opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        opened.bind((address, port))
    except OSError as error:
        opened.close()
        raise Unavailable(f"UDP {address} port {port}: {error.strerror or error}") from error
    return UdpDatagrams(opened)
