"""Ports for a node's watchdog, its Lease, and its peers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.model.watchdog_peer_reports import PeerReport


class WatchdogInfo(Facts, frozen=True):
    """The properties of a running watchdog; ``timeout`` as the driver reports it, ``inf`` if it does not."""

    identity: str
    timeout: float
    survives_close: bool
    """It keeps running when this process dies."""
    resets: bool = True
    """It resets the machine instead of only raising an alarm."""


class WatchdogDevice(Protocol):
    """The machine's watchdog. All methods are synchronous: nothing runs between a decision to pet and the pet."""

    @property
    def is_open(self) -> bool:
        """Whether this process holds the device."""
        ...

    def arm(self, timeout: int) -> WatchdogInfo:
        """Opens the device, which starts it and pets it once, and requests a timeout in seconds.

        Unavailable: there is no device, or another program holds it. NotPermitted. After an error the device is not
        held.
        """
        ...

    def pet(self) -> None:
        """Restarts the timeout; the machine is reset when it expires. Unavailable if the device fails."""
        ...

    def disarm(self) -> bool:
        """Stops and closes the device.

        False if it cannot be stopped (``nowayout``): it stays open and needs further pets.

        Unavailable if the device fails: it is closed and may keep running.
        """
        ...


class WatchdogLease(Protocol):
    """The Lease in which this node's agent states that its watchdog is armed."""

    async def write_promise(
        self, promise: Callable[[], WatchdogPromise], heard: Callable[[], Mapping[str, PeerReport]] = dict
    ) -> WatchdogPromise | None:
        """Writes the promise to the Lease.

        After it returns, no write that began earlier, by any process, can change it.

        ``promise`` is called after the current Lease is read, right before the write, and again if the write has to be
        repeated against another state. ``heard`` supplies the peer reports by node name, which promise nothing. Returns
        the promise that the Lease held before this process's first write, or since its last one; None if it held none.
        LastcallError: whether the promise was written is unknown.
        """
        ...


class Membership(Facts, frozen=True):
    """All nodes with their internal addresses ("" if a node has none), and the keys that their agents share."""

    addresses: Mapping[str, str]
    keys: tuple[bytes, ...]
    """The first key signs."""


class Members(Protocol):
    """The peers that are asked whether they have lost the API server too."""

    async def read_membership(self) -> Membership:
        """The current membership at the API server; LastcallError if it cannot be read or no key exists."""
        ...


class DatagramSocket(Protocol):
    """A UDP socket bound to one address of this node."""

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Sends immediately or drops the datagram; never waits, never fails."""
        ...

    async def receive(self) -> tuple[bytes, tuple[str, int]]:
        """The next datagram and its sender's address. Errors of single datagrams are skipped."""
        ...

    def receive_waiting(self, most: int) -> Sequence[tuple[bytes, tuple[str, int]]]:
        """Up to ``most`` datagrams that have already arrived, in order; never waits."""
        ...

    def split_off_peers(self, peers: Collection[str]) -> "DatagramSocket | None":
        """Restricts this socket to datagrams from these addresses and its own port; another socket receives the rest.

        Other senders then cannot fill the buffer of the peers' messages. Returns the other socket, the same one at each
        call; it is closed together with this one. None if the kernel cannot do this: this socket continues to receive
        everything. If an earlier call succeeded and a later one cannot, both sockets keep their filters.
        """
        ...

    def close(self) -> None:
        """Releases the address."""
        ...
