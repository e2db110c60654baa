"""The watchdog of a node, its Lease, and its peers, as programs know them: roles as in ``ports``."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.model.watchdog_peer_reports import PeerReport


class WatchdogInfo(Facts, frozen=True):
    """What a watchdog that runs now is like; ``timeout`` as the driver reports it, ``inf`` if it does not."""

    identity: str
    timeout: float
    survives_close: bool
    """It runs on when this process dies."""
    resets: bool = True
    """It resets the machine, and does not only raise an alarm."""


class WatchdogDevice(Protocol):
    """The machine's watchdog. Every verb is done when it returns: nothing comes between a decision to pet and the pet."""

    @property
    def is_open(self) -> bool:
        """Whether this process holds it."""
        ...

    def arm(self, timeout: int) -> WatchdogInfo:
        """Opens it, by which it runs and is petted, and asks for that timeout in seconds.

        Unavailable: there is none, or another program holds it; NotPermitted. It is not held then.
        """
        ...

    def pet(self) -> None:
        """The machine is reset unless this comes again within the timeout. Unavailable if the device fails."""
        ...

    def disarm(self) -> bool:
        """Stops it and gives it back. False if it cannot be stopped (``nowayout``): it is held on, and to be petted.

        Unavailable if the device fails: it is given back, and may run on.
        """
        ...


class WatchdogLease(Protocol):
    """The Lease by which this node's agent says that its watchdog is armed."""

    async def write_promise(
        self, promise: Callable[[], WatchdogPromise], heard: Callable[[], Mapping[str, PeerReport]] = dict
    ) -> WatchdogPromise | None:
        """The Lease says so when this returns, and no write that was begun earlier, by anybody, can change that any more.

        What it is to say is asked for when what stands there is known, right before it is sent; again if it has to be sent
        to something else. With it goes of whom this agent has ``heard``, by the names of the nodes, which promises nothing.
        Answers what it said before this life's first write, or since its last one; None if it said nothing. LastcallError:
        whether it has been written is not known.
        """
        ...


class Membership(Facts, frozen=True):
    """All nodes of the cluster, each with its internal address ("" if it has none), and the keys that their agents share."""

    addresses: Mapping[str, str]
    keys: tuple[bytes, ...]
    """The first one signs."""


class Members(Protocol):
    """Who is asked whether the API server is lost to them too."""

    async def read_membership(self) -> Membership:
        """As it is at the API server now; LastcallError if it cannot be known, or there is no key."""
        ...


class DatagramSocket(Protocol):
    """A socket for datagrams, bound to one address of this node."""

    def send(self, data: bytes, to: tuple[str, int]) -> None:
        """Sends it at once, or loses it; never waits, never fails."""
        ...

    async def receive(self) -> tuple[bytes, tuple[str, int]]:
        """The next one, and where an answer goes to. Errors of single datagrams are passed over."""
        ...

    def receive_waiting(self, most: int) -> Sequence[tuple[bytes, tuple[str, int]]]:
        """Those that have come already, in order, but no more than so many; never waits."""
        ...

    def split_off_peers(self, peers: Collection[str]) -> "DatagramSocket | None":
        """From now on this socket gets only what these addresses send from its own port, and another one gets the rest.

        So nobody else can fill the buffer in which messages of peers wait. The other socket is returned; it is the same at
        each call, and is closed with this one. None if that cannot be: this socket goes on to get everything. Where it
        could be before and cannot be now, both sockets go on as they were.
        """
        ...

    def close(self) -> None:
        """Gives the address back."""
        ...
