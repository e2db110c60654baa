"""Numbers of nodes, by which each has loopback addresses of its own: no two labs on one machine have the same."""

import socket

from lastcall.errors import Unavailable

COUNT = 127
"""There are so many: ``addresses.door``."""


class NodeNumbers:
    """Those that this lab has taken. They are free again when its process ends, however it does."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, wanted: int) -> int:
        """This one, or the next that nobody has; Unavailable if all are taken.

        A socket with a name in the abstract namespace stands for each: the kernel sees to it that nobody else has it.
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
        """All of them."""
        while self._held:
            self._held.pop().close()
