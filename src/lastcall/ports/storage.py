"""The node's lease on shared storage, as programs know it: roles as in ``ports``."""

from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.storage_lease import HostSeen, StorageRecord


class Lockspace(Facts, frozen=True):
    """A lockspace that this machine has joined: its own lease there, and what it has read of the others'."""

    host_id: int
    generation: int
    owner: str
    timestamp: int
    """Of a renewal of its own, as it was read from the storage."""
    interval: float
    """Seconds between two looks at the storage, of which each renews."""
    dead_after: float
    """Seconds after a renewal by which a watchdog would have fired, if it is one that the loss of the lockspace sets off."""
    watchdog: bool
    """The service that keeps the lease keeps a watchdog with it."""
    used: bool
    """It is marked as used: nothing gives it up, and lets go of the watchdog, before the machine is reset."""
    looks: bool
    """False: it was lost once and never joined anew, and the service looks at the others no more."""
    others: tuple[HostSeen, ...]
    """None if it does not look; else all other hosts that hold a lease; one that has left the lockspace holds none."""


class StorageLeases(Protocol):
    """The service that keeps this machine's leases on shared storage."""

    async def read_lockspace(self, lockspace: str) -> Lockspace:
        """As it is now: ages are of this moment, and not more than is true.

        Unavailable if the service does not answer in time or cannot be understood, or the lockspace is not joined.
        """
        ...


class StorageRecordWriter(Protocol):
    """The place where this node tells of its lease on shared storage."""

    async def write_record(self, record: StorageRecord) -> None:
        """It says so when this returns, and nothing else there has changed. LastcallError: whether it does is not known."""
        ...

    async def clear_record(self) -> None:
        """It says nothing of it when this returns. LastcallError: whether it does is not known."""
        ...
