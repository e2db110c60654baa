"""A fake network for datagrams: its user decides which are lost, and how late the others arrive."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from lastcall.errors import LastcallError, Unavailable

Address = tuple[str, int]
_ROOM = 256
"""Datagrams in a receive queue; further ones are lost, as in the kernel."""


class FakeNetwork:
    """``lag`` returns the delay in seconds between two addresses (sender, receiver); None: lost.

    ``copies`` returns how many of a datagram arrive; UDP allows more than one.
    """

    def __init__(self, lag: Callable[[str, str], float | None] = lambda _, __: 0.0) -> None:
        self.lag = lag
        self.copies: Callable[[], int] = lambda: 1
        self.sent = 0
        self._bound: dict[Address, FakeDatagrams] = {}

    def open(self, address: str, port: int) -> "FakeDatagrams":
        """Opens a socket; Unavailable if the port is taken."""
        if not address:
            raise LastcallError(f"{address}: is no address")
        if (address, port) in self._bound:
            raise Unavailable(f"UDP {address} port {port}: Address already in use")
        bound = self._bound[address, port] = FakeDatagrams(self, (address, port))
        return bound

    def carry_datagram(self, data: bytes, sender: Address, to: Address) -> None:
        """Sends a datagram on its way."""
        self.sent += 1
        for _ in range(self.copies()):
            lag = self.lag(sender[0], to[0])
            if lag is not None:
                asyncio.get_running_loop().call_later(lag, self._deliver, data, sender, to)

    def _deliver(self, data: bytes, sender: Address, to: Address) -> None:
        if to in self._bound:
            self._bound[to].deliver(data, sender)

    def remove_socket(self, address: Address) -> None:
        """Closes the socket at this address."""
        self._bound.pop(address, None)


class FakeDatagrams:
    """``ports.watchdog.Datagrams`` on it."""

    def __init__(self, network: FakeNetwork, address: Address) -> None:
        self._network = network
        self._address = address
        self._waiting: asyncio.Queue[tuple[bytes, Address]] = asyncio.Queue(_ROOM)
        self._peers: Collection[str] = ()
        self._others: FakeDatagrams | None = None

    @property
    def bound_address(self) -> Address:
        """The address that the socket is bound to."""
        return self._address

    def deliver(self, data: bytes, sender: Address) -> None:
        """Delivers a datagram."""
        if self._others and (sender[1] != self._address[1] or sender[0] not in self._peers):
            self._others.deliver(data, sender)
        elif not self._waiting.full():
            self._waiting.put_nowait((data, sender))

    def send(self, data: bytes, to: Address) -> None:
        """``ports.watchdog.Datagrams.send``."""
        self._network.carry_datagram(data, self._address, to)

    async def receive(self) -> tuple[bytes, Address]:
        """``ports.watchdog.Datagrams.receive``."""
        return await self._waiting.get()

    def receive_waiting(self, most: int) -> Sequence[tuple[bytes, Address]]:
        """``ports.watchdog.Datagrams.receive_waiting``."""
        return [self._waiting.get_nowait() for _ in range(min(most, self._waiting.qsize()))]

    def split_off_peers(self, peers: Collection[str]) -> "FakeDatagrams":
        """``ports.watchdog.Datagrams.split_off_peers``."""
        self._others = self._others or FakeDatagrams(self._network, self._address)
        self._peers = peers
        return self._others

    def close(self) -> None:
        """``ports.watchdog.Datagrams.close``."""
        self._network.remove_socket(self._address)
