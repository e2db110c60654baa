"""What nodes say in their Leases of leases on shared storage, as a fact about one boot (pure).

Each node says which lease its boot holds, and how long ago it has read the leases of others, and their last renewals
(``model.storage_evidence``). How long a write was on its way nobody knows, and what is there at the first look, or comes once
more, may be of any age. So nothing is proved by when something is heard:

- That a lease was not renewed for long enough is by one reader's own clock, from when it noted the last renewal until it
  began its last look at the storage. A reader whose storage stands still looks no more; and what it once saw to be over is over
  whenever that is heard.
- Which of two readers has read the later renewal is by what the holder wrote there. Who has read an earlier one than another
  reader, or than the holder itself, says nothing: it lags behind, or reads another storage.
- Of two looks at one Lease that of the higher revision is later, whichever arrives last. An older one says nothing; and until
  the newest is heard again, as after an etcd was restored from a backup, nothing follows from what its node said of itself.
- Of a lease all must be equal: lockspace, host id, generation and owner. A daemon that begins anew has another generation.
- The holder's clock never goes back. Where an earlier renewal is told of as a new one, after a later one was heard of, all
  may be equal and these are two leases for all that: the lockspace was made anew, or its storage restored. Then nothing follows.
- Who has no Node is not heard: the Leases of nodes that are gone may be of any age.

Only for people, and for what it outweighs, is a renewal dated: not before it was (``renewed_at``), and not after (``alive_at``). It
outweighs something only where its reader had told of another one before: what is there at a first look may be of any age.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lastcall.failover.evidence.facts import Boot, StorageLease
from lastcall.model.storage_lease import HostSeen, StorageRecord, parse_record

DRIFT = 0.01
"""By which part the clocks of reader and holder differ at most, as for a watchdog by default."""

SLACK = 1.0
"""Seconds: sanlock tells whole ones."""

_MOMENT = 0.001

Place = tuple[str, int]
"""A lockspace and a host id."""


@dataclass(frozen=True, kw_only=True)
class StorageReading:
    """What a node has read of a lease, heard at ``at``. Between two of its looks lie ``interval`` seconds, if none is late."""

    reader: str
    host: HostSeen
    interval: float
    at: float
    first: float = math.inf
    """When it was first heard from this reader that it has read this renewal."""
    advanced: bool = False
    """It had told of another renewal of this lease before."""

    @property
    def elapsed_seconds(self) -> float:
        """So many seconds at least the lease was not renewed, by the reader's clock."""
        return self.host.renewed_ago - self.host.looked_ago - SLACK

    @property
    def renewed_at(self) -> float:
        """When the renewal was read first, or later."""
        return self.at - self.host.renewed_ago

    @property
    def alive_at(self) -> float:
        """When the holder renewed, or earlier: one look before nothing was to be seen of it.

        From the beginning of that look until this one was noted a reader that has not lost its own lease takes four intervals
        (``8 * io_timeout``) at the most; one more is allowed for its main loop, which may be busy.
        """
        return self.renewed_at - 5 * self.interval - SLACK

    def with_previous(self, before: "StorageReading | None") -> "StorageReading":
        """The same, with what it was that this reader told of the place before."""
        if before is None or _lease_identity(before.host) != _lease_identity(self.host):
            return replace(self, first=self.at)
        if before.host.timestamp == self.host.timestamp:
            return replace(self, first=before.first, advanced=before.advanced)
        return replace(self, first=self.at, advanced=True)


def storage_evidence(boot: Boot, record: StorageRecord, readings: Iterable[StorageReading]) -> StorageLease | None:
    """What others have read of the lease that this boot says it holds; None if that is nothing.

    An observer who has begun after the lease was over counts it as over since then: no earlier.
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
    """Seconds on anybody's clock after which a watchdog has reset the holder; None if nobody can say."""
    dead_after = record.dead_after_seconds
    return None if dead_after is None else dead_after * (1 + DRIFT)


def is_same_lease(record: StorageRecord, host: HostSeen) -> bool:
    """Whether it is this lease, and not one that was held at its place before or after."""
    return (record.host_id, record.generation, record.owner) == _lease_identity(host)


def _lease_identity(host: HostSeen) -> tuple[int, int, str]:
    return host.host_id, host.generation, host.owner


def _renewal_went_back(readings: Iterable[StorageReading], heard: float, newest: int) -> bool:
    """Whether an earlier renewal than the newest, which was first ``heard`` of then, was told of as a new one since."""
    return any(one.advanced and one.host.timestamp < newest and one.first >= heard for one in readings)


class StorageLeaseReports:
    """Of all nodes, as their Leases say last."""

    def __init__(self) -> None:
        self._records: dict[str, StorageRecord] = {}
        self._revisions: dict[str, int] = {}
        self._behind: set[str] = set()
        """Nodes of which something older than what is known was heard last."""
        self._holders: dict[Place, set[str]] = {}
        self._readings: dict[Place, dict[str, StorageReading]] = {}

    def observe_lease(self, node: str, annotations: Mapping[str, str], now: float, *, revision: int) -> Sequence[str]:
        """A Lease as it was read, or told, at ``now``; the nodes whose lease has become over by what it says anew."""
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
        """Its Lease is gone: the next one is looked at for the first time."""
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
        """About the boot that the node shows, by what ``nodes`` say, which are all that have a Node.

        Nothing follows from a lease that two of them say they hold.
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
        """The holders of what is over by this reading, and was not by the one before."""
        for holder in self._holders.get((lockspace, now.host.host_id), ()):
            dead_after = reset_bound(self._records[holder])
            if (
                dead_after is not None
                and now.elapsed_seconds >= dead_after
                and not (before and before.elapsed_seconds >= dead_after)
            ):
                yield holder
