"""Numbers of nodes, which determine their loopback addresses, unique among the labs on one machine."""

import socket

from lastcall.errors import Unavailable

COUNT = 127
"""The count of numbers, limited by ``listen_addresses.listen_address``."""


class NodeNumbers:
    """The numbers of this lab. The kernel frees them when its process ends in any way."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, wanted: int) -> int:
        """Takes this number, or the next free one; Unavailable if all are taken.

        Each number is a socket with a name in the abstract namespace, which the kernel grants only once.
        """
        for number in ((wanted + further) % COUNT for further in range(COUNT)):
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0lastcall-lab-node-{number}")
            except OSError:
                claim.close()
                continue
            self._held.append(claim)
            return number
        raise Unavailable(f"all {COUNT} numbers of nodes are taken by labs on this machine")

    def release(self) -> None:
        """Frees all of them."""
        while self._held:
            self._held.pop().close()
