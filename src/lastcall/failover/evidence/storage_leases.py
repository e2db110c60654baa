"""Converts nodes' reports on shared storage leases to a fact about one boot (pure).

Each node reports in its Lease which storage lease its boot holds, and how long ago it read the leases of others and
their last renewals (``model.storage_lease``). The delay of a write is unknown, and the state at the first look, or a
repeated one, may be of any age. So no proof depends on when a report arrives:

- The time without a renewal is measured on one reader's own clock, from when it noted the last renewal until it began
  its last
read of the storage. A reader with stalled storage reads no more; and an expiry that it once saw stays true.
- Which of two readers saw the later renewal is decided by the holder's timestamp. A reader that saw an earlier one than
another reader, or than the holder itself, counts for nothing: it lags behind, or reads another storage.
- Of two reads of one Lease the higher revision is later, in whatever order they arrive. An older one is ignored; until
  the
newest is seen again, as after an etcd restore, nothing follows from the node's report on itself.
- All fields of a lease must match: lockspace, host ID, generation and owner. A restarted daemon has another generation.
- The holder's clock never goes back. If an earlier renewal is reported as new after a later one, these are two leases
  even if
all fields match: the lockspace was recreated, or its storage restored. Then nothing follows.
- A node without a Node object is ignored: the Leases of removed nodes may be of any age.

Renewals are dated only for output and to weigh signs of life: not too early (``renewed_at``), and not too late
(``alive_at``). A renewal outweighs a proof only if its reader reported another one before: the first state may be of
any age.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lastcall.failover.evidence.facts import Boot, StorageLease
from lastcall.model.storage_lease import HostSeen, StorageRecord, parse_record

DRIFT = 0.01
"""The greatest relative drift between the clocks of reader and holder, the watchdog's default."""

SLACK = 1.0
"""Seconds: sanlock reports whole ones."""

_MOMENT = 0.001

Place = tuple[str, int]
"""A lockspace and a host ID."""


@dataclass(frozen=True, kw_only=True)
class StorageReading:
    """A reader's report on a lease, received at ``at``; it reads every ``interval`` seconds unless it is late."""

    reader: str
    host: HostSeen
    interval: float
    at: float
    first: float = math.inf
    """When this reader first reported this renewal."""
    advanced: bool = False
    """The reader reported another renewal of this lease before."""

    @property
    def elapsed_seconds(self) -> float:
        """The least number of seconds without a renewal, on the reader's clock."""
        return self.host.renewed_ago - self.host.looked_ago - SLACK

    @property
    def renewed_at(self) -> float:
        """A time at or after the first read of the renewal."""
        return self.at - self.host.renewed_ago

    @property
    def alive_at(self) -> float:
        """A time at or before the holder's renewal: the read before this one did not show it.

        A reader that has not lost its own lease takes at most four intervals (``8 * io_timeout``) from the start of
        that read until it notes this one; one more is allowed for a busy main loop.
        """
        return self.renewed_at - 5 * self.interval - SLACK

    def with_previous(self, before: "StorageReading | None") -> "StorageReading":
        """The same report, related to this reader's previous one about the place."""
        if before is None or _lease_identity(before.host) != _lease_identity(self.host):
            return replace(self, first=self.at)
        if before.host.timestamp == self.host.timestamp:
            return replace(self, first=before.first, advanced=before.advanced)
        return replace(self, first=self.at, advanced=True)


def storage_evidence(boot: Boot, record: StorageRecord, readings: Iterable[StorageReading]) -> StorageLease | None:
    """The evidence about the lease that this boot claims, from others' reports; None if there is none.

    An observer that began after the expiry counts the lease as expired since it began, not earlier.
    """
    if record.boot_id != boot.id or not record.lockspace:
        return None
    every = [one for one in readings if is_same_lease(record, one.host)]
    own = [one for one in every if one.host.timestamp >= record.timestamp]
    newest = max((one.host.timestamp for one in own), default=0)
    last = [one for one in own if one.host.timestamp == newest]
    if not last or _renewal_went_back(every, min(one.first for one in last), newest):
        return None
    best = max(last, key=lambda one: (one.elapsed_seconds, one.reader))
    renewed, dead_after = min(one.renewed_at for one in last), reset_bound(record)
    if dead_after is not None:
        renewed = max(renewed, boot.since - dead_after + _MOMENT)
    return StorageLease(
        boot_id=boot.id,
        source=f"lockspace {record.lockspace} (read by node {best.reader})",
        renewed=renewed,
        read=min(renewed + max(0.0, best.elapsed_seconds), max(boot.since + _MOMENT, *(one.at for one in last))),
        dead_after=dead_after,
        lived=min((one.alive_at for one in last if one.advanced), default=boot.since),
    )


def reset_bound(record: StorageRecord) -> float | None:
    """Seconds on any clock after which a watchdog has reset the holder; None without a watchdog."""
    dead_after = record.dead_after_seconds
    return None if dead_after is None else dead_after * (1 + DRIFT)


def is_same_lease(record: StorageRecord, host: HostSeen) -> bool:
    """Whether it is this lease, and not an earlier or later one at the same place."""
    return (record.host_id, record.generation, record.owner) == _lease_identity(host)


def _lease_identity(host: HostSeen) -> tuple[int, int, str]:
    return host.host_id, host.generation, host.owner


def _renewal_went_back(readings: Iterable[StorageReading], heard: float, newest: int) -> bool:
    """Whether a renewal older than the newest, which was first ``heard`` then, was reported as new since."""
    return any(one.advanced and one.host.timestamp < newest and one.first >= heard for one in readings)


class StorageLeaseReports:
    """The last reports of all nodes' Leases."""

    def __init__(self) -> None:
        self._records: dict[str, StorageRecord] = {}
        self._revisions: dict[str, int] = {}
        self._behind: set[str] = set()
        """Nodes whose last received report is older than a known one."""
        self._holders: dict[Place, set[str]] = {}
        self._readings: dict[Place, dict[str, StorageReading]] = {}

    def observe_lease(self, node: str, annotations: Mapping[str, str], now: float, *, revision: int) -> Sequence[str]:
        """Records a Lease as received at ``now``; returns the nodes whose storage lease it newly shows as expired."""
        if revision < self._revisions.get(node, 0):
            self._behind.add(node)
            return ()
        self._behind.discard(node)
        self._revisions[node] = revision
        record, before = parse_record(annotations), self._records.get(node)
        if record == before:
            return ()
        goes_on = before is not None and record is not None and before.lockspace == record.lockspace
        earlier = {one.host.host_id: one for one in self._readings_of(node, before)} if before and goes_on else {}
        self._drop_record(node)
        if record is None:
            return ()
        self._records[node] = record
        if record.lockspace:
            self._holders.setdefault((record.lockspace, record.host_id), set()).add(node)
        found = list[str]()
        for host in record.seen:
            told = earlier.get(host.host_id)
            reading = StorageReading(reader=node, host=host, interval=record.interval_seconds, at=now).with_previous(
                told
            )
            self._readings.setdefault((record.lockspace, host.host_id), {})[node] = reading
            found += self._newly_expired(record.lockspace, reading, told)
        return found

    def forget_node(self, node: str) -> None:
        """Its Lease is gone; the next one counts as a first look."""
        self._revisions.pop(node, None)
        self._behind.discard(node)
        self._drop_record(node)

    def _drop_record(self, node: str) -> None:
        record = self._records.pop(node, None)
        if record is None:
            return
        self._holders.get((record.lockspace, record.host_id), set()).discard(node)
        for host in record.seen:
            self._readings.get((record.lockspace, host.host_id), {}).pop(node, None)

    def evidence_about(self, node: str, boot: Boot, nodes: Container[str]) -> StorageLease | None:
        """The evidence about a node's current boot, from the reports of ``nodes``: those with a Node object.

        None if two of them claim the same lease.
        """
        record = self._records.get(node)
        if record is None or node in self._behind:
            return None
        place = (record.lockspace, record.host_id)
        others = [one for one in self._holders.get(place, ()) if one != node and one in nodes]
        if any(self._holds_same_lease(record, other) for other in others):
            return None
        readings = self._readings.get(place, {}).values()
        return storage_evidence(boot, record, [one for one in readings if one.reader != node and one.reader in nodes])

    def _holds_same_lease(self, record: StorageRecord, other: str) -> bool:
        theirs = self._records[other]
        return (record.generation, record.owner) == (theirs.generation, theirs.owner)

    def _readings_of(self, node: str, record: StorageRecord) -> Iterable[StorageReading]:
        for host in record.seen:
            reading = self._readings.get((record.lockspace, host.host_id), {}).get(node)
            if reading:
                yield reading

    def _newly_expired(self, lockspace: str, now: StorageReading, before: StorageReading | None) -> Iterable[str]:
        """The holders of a lease that is expired by this report and was not by the previous one."""
        for holder in self._holders.get((lockspace, now.host.host_id), ()):
            dead_after = reset_bound(self._records[holder])
            if (
                dead_after is not None
                and now.elapsed_seconds >= dead_after
                and not (before and before.elapsed_seconds >= dead_after)
            ):
                yield holder
