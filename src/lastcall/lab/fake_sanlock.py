"""Leases on shared storage with the rules of sanlock's, without storage: for tests of what stands above them."""

from dataclasses import dataclass

from lastcall.errors import Unavailable
from lastcall.model.storage_lease import HostSeen
from lastcall.ports_storage import Lockspace


@dataclass
class _Written:
    """One host's place on the storage. A ``timestamp`` of 0 is a lease that was given back."""

    generation: int
    owner: str
    timestamp: int


@dataclass
class _Read:
    """What a host has read there, and when it first and last read just that."""

    written: _Written
    live: int
    check: int


class FakeStorage:
    """A lockspace, and the time of all its hosts in whole seconds."""

    def __init__(self, lockspace: str, io_timeout: int = 10) -> None:
        self.lockspace = lockspace
        self.io_timeout = io_timeout
        self.now = 1000
        self.places: dict[int, _Written] = {}
        self._hosts: list[FakeSanlock] = []

    def host(self, host_id: int, owner: str) -> "FakeSanlock":
        """A daemon that has not joined."""
        host = FakeSanlock(self, host_id, owner)
        self._hosts.append(host)
        return host

    def advance(self, seconds: int) -> None:
        """Time passes; each host that has joined renews and reads at each of its intervals."""
        for _ in range(seconds):
            self.now += 1
            for host in self._hosts:
                host.tick()


class FakeSanlock:
    """``ports_storage.StorageLeases`` of one machine, and what may happen to it there."""

    def __init__(self, storage: FakeStorage, host_id: int, owner: str) -> None:
        self.watchdog = self.used = False
        self.cut_off = False
        """It can neither read nor write the storage."""
        self._storage = storage
        self._host_id = host_id
        self._owner = owner
        self._generation = 0
        self._due = 0
        self._running = True
        self._read: dict[int, _Read] = {}

    def join(self) -> None:
        """It holds its lease, which is another one than it held before, and has read all."""
        before = self._storage.places.get(self._host_id)
        self._generation = before.generation + 1 if before else 1
        self._due = self._storage.now
        self.tick()

    def leave(self) -> None:
        """The lease is given back."""
        self._storage.places[self._host_id] = _Written(self._generation, self._owner, 0)
        self._generation = 0

    def die(self) -> None:
        """Nothing of it runs any more."""
        self._running = False

    def tick(self) -> None:
        """Renews and reads, if that is due."""
        now = self._storage.now
        if not self._running or not self._generation or self.cut_off or now < self._due:
            return
        self._due = now + 2 * self._storage.io_timeout
        self._storage.places[self._host_id] = _Written(self._generation, self._owner, now)
        for host_id, written in self._storage.places.items():
            before = self._read.get(host_id)
            live = before.live if before and before.written == written else now
            self._read[host_id] = _Read(written, live, now)

    async def look(self, lockspace: str) -> Lockspace:
        """``ports_storage.StorageLeases.look``."""
        if not self._running:
            raise Unavailable("sanlock client status failed with 1")
        if lockspace != self._storage.lockspace or not self._generation:
            raise Unavailable(f"lockspace {lockspace} is not joined")
        io_timeout = self._storage.io_timeout
        return Lockspace(
            host_id=self._host_id,
            generation=self._generation,
            owner=self._owner,
            timestamp=self._read[self._host_id].written.timestamp,
            interval=2.0 * io_timeout,
            dead_after=8.0 * io_timeout + 60,
            watchdog=self.watchdog,
            used=self.used,
            others=tuple(
                self._seen(one, read)
                for one, read in self._read.items()
                if one != self._host_id and read.written.timestamp
            ),
        )

    def _seen(self, host_id: int, read: _Read) -> HostSeen:
        return HostSeen(
            host_id=host_id,
            generation=read.written.generation,
            owner=read.written.owner,
            timestamp=read.written.timestamp,
            renewed_ago=self._storage.now - read.live,
            checked_ago=self._storage.now - read.check,
        )
