"""A fake of sanlock's leases on shared storage, by its rules but without storage, for tests of their users."""

from dataclasses import dataclass

from lastcall.errors import Unavailable
from lastcall.model.storage_lease import HostSeen
from lastcall.ports.storage import Lockspace


@dataclass
class _WrittenLease:
    """One host's entry on the storage. A ``timestamp`` of 0 is a released lease."""

    generation: int
    owner: str
    timestamp: int


@dataclass
class _ReadLease:
    """A host's copy of an entry, and when it first read just that."""

    written: _WrittenLease
    live: int


class FakeLockspace:
    """A lockspace, and the time of all its hosts in whole seconds."""

    def __init__(self, lockspace: str, io_timeout: int = 10) -> None:
        self.lockspace = lockspace
        self.io_timeout = io_timeout
        self.now = 1000
        self.places: dict[int, _WrittenLease] = {}
        self._hosts: list[FakeSanlock] = []

    def host(self, host_id: int, owner: str) -> "FakeSanlock":
        """Adds a daemon that has not joined."""
        host = FakeSanlock(self, host_id, owner)
        self._hosts.append(host)
        return host

    def advance(self, seconds: int) -> None:
        """Advances the time; each joined host renews and reads at each of its intervals."""
        for _ in range(seconds):
            self.now += 1
            for host in self._hosts:
                host.tick()


class FakeSanlock:
    """``ports.storage.StorageLeases`` of one machine, with faults to inject.

    A renewal reads all entries, writes its own, and then stores what it has read, as of that later time.
    """

    def __init__(self, storage: FakeLockspace, host_id: int, owner: str) -> None:
        self.watchdog = self.used = False
        self.cut_off = False
        """It can neither read nor write the storage; a write under way completes when it can."""
        self.slow = False
        """Its writes are delayed while this is set; reads are not."""
        self._storage = storage
        self._host_id = host_id
        self._owner = owner
        self._generation = 0
        self._renewed = 0
        self._running = True
        self._lost = False
        self._on_its_way: tuple[int, dict[int, _WrittenLease]] | None = None
        """The pending write, and what was read before it."""
        self._read: dict[int, _ReadLease] = {}

    def join(self) -> None:
        """Joins with a new lease of its own. It reads the others at its first renewal."""
        before = self._storage.places.get(self._host_id)
        self._generation = before.generation + 1 if before else 1
        self._lost, self._read, self._on_its_way = False, {}, None
        self._write_lease(self._storage.now)

    def leave(self) -> None:
        """Releases the lease."""
        self._storage.places[self._host_id] = _WrittenLease(self._generation, self._owner, 0)
        self._generation = 0

    def die(self) -> None:
        """Ends the daemon."""
        self._running = False

    def tick(self) -> None:
        """Renews, if due; after eight I/O timeouts without success it has lost its lease, and reads no more."""
        now, timeout = self._storage.now, self._storage.io_timeout
        if not self._running or not self._generation:
            return
        self._lost = self._lost or now - self._renewed >= 8 * timeout
        if not self._on_its_way and not self.cut_off and now - self._renewed >= 2 * timeout:
            self._on_its_way = now, dict(self._storage.places)
        if self._on_its_way and not self.cut_off and not self.slow:
            written, places = self._on_its_way
            self._on_its_way = None
            self._write_lease(written)
            if not self._lost:
                self._record_reads(places)

    def _write_lease(self, timestamp: int) -> None:
        self._storage.places[self._host_id] = _WrittenLease(self._generation, self._owner, timestamp)
        self._renewed = timestamp

    def _record_reads(self, places: dict[int, _WrittenLease]) -> None:
        now = self._storage.now
        for host_id, written in places.items():
            before = self._read.get(host_id)
            self._read[host_id] = _ReadLease(written, before.live if before and before.written == written else now)

    async def read_lockspace(self, lockspace: str) -> Lockspace:
        """``ports.storage.StorageLeases.read_lockspace``."""
        if not self._running:
            raise Unavailable("sanlock client status failed with 1")
        if lockspace != self._storage.lockspace or not self._generation:
            raise Unavailable(f"lockspace {lockspace} is not joined")
        mine = self._read.get(self._host_id)
        if mine is None or mine.written.generation != self._generation:
            raise Unavailable(f"lockspace {lockspace} has been joined, and its own lease has not been read yet")
        io_timeout, looked = self._storage.io_timeout, mine.written.timestamp
        held = () if self._lost else self._read.items()
        return Lockspace(
            host_id=self._host_id,
            generation=self._generation,
            owner=self._owner,
            timestamp=looked,
            interval=2.0 * io_timeout,
            dead_after=8.0 * io_timeout + 60,
            watchdog=self.watchdog,
            used=self.used,
            looks=not self._lost,
            others=tuple(
                self._host_seen(one, read, looked)
                for one, read in held
                if one != self._host_id and read.written.timestamp
            ),
        )

    def _host_seen(self, host_id: int, read: _ReadLease, looked: int) -> HostSeen:
        return HostSeen(
            host_id=host_id,
            generation=read.written.generation,
            owner=read.written.owner,
            timestamp=read.written.timestamp,
            renewed_ago=self._storage.now - read.live,
            looked_ago=self._storage.now - looked,
        )
