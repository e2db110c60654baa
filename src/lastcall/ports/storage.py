"""Ports for the node's lease on shared storage."""

from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.storage_lease import HostSeen, StorageRecord


class Lockspace(Facts, frozen=True):
    """A lockspace that this machine has joined: its own lease, and the leases of other hosts that it reads there."""

    host_id: int
    generation: int
    owner: str
    timestamp: int
    """The time of its own last renewal, as read from the storage."""
    interval: float
    """Seconds between two reads of the storage; each of them also renews the lease."""
    dead_after: float
    """Seconds after a renewal by which the watchdog has fired, if losing the lockspace triggers it."""
    watchdog: bool
    """The service that keeps the lease also keeps a watchdog."""
    used: bool
    """The lockspace is marked as used: nothing releases it, and with it the watchdog, before the machine is reset."""
    looks: bool
    """False: the lockspace was lost and never joined again, and the service does not monitor other hosts any more."""
    others: tuple[HostSeen, ...]
    """Empty if ``looks`` is false; else all other hosts that hold a lease. A host that left it holds none."""


class StorageLeases(Protocol):
    """The service that keeps this machine's leases on shared storage (sanlock)."""

    async def read_lockspace(self, lockspace: str) -> Lockspace:
        """The current state; ages are relative to now and never overstated.

        Unavailable if the service does not answer in time, its answer cannot be parsed, or the lockspace is not joined.
        """
        ...


class StorageRecordWriter(Protocol):
    """Publishes this node's lease on shared storage."""

    async def write_record(self, record: StorageRecord) -> None:
        """Publishes the record and changes nothing else. LastcallError: whether it was written is unknown."""
        ...

    async def clear_record(self) -> None:
        """Removes the record. LastcallError: whether it was removed is unknown."""
        ...
