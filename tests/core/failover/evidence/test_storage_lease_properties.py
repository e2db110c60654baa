"""Whatever happens to hosts, storage and messages: who is taken for dead by a lease on shared storage was reset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lastcall.errors import Unavailable
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot
from lastcall.failover.evidence.storage_leases import StorageLeaseReports
from lastcall.model.storage_lease import SanlockSettings, StorageRecord, to_annotations
from lastcall.storage.lease_record import storage_record
from lastcall_lab.fakes.sanlock import FakeLockspace

pytestmark = pytest.mark.timeout(120)

IO_TIMEOUT, HOSTS, STEP = 2, 3, 5
NODES = [f"n{number}" for number in range(1, HOSTS + 1)]
DEAD_AFTER = 8 * IO_TIMEOUT + 60
EVENTS = ("nothing", "leave", "rejoin", "die", "cut off", "slow", "connect", "unused", "mute", "speak")


class Host:
    """A machine with a watchdog behind its lease, and the agent that tells of it."""

    def __init__(self, storage, number):
        self.node, self.boot = f"n{number}", Boot(id=f"boot-{number}", system_uuid=f"m{number}", since=0.0)
        self.number, self._storage = number, storage
        self.daemon = storage.host(number, f"host{number}")
        self.daemon.watchdog = self.daemon.used = True
        self.word = self.speaks = self.member = True
        self.alive = True
        self.daemon.join()
        self.renewed = storage.now

    def suffer(self, event):
        """The administrator's word holds: the mark is cleared when the controller has been told (``obey``)."""
        if not self.alive:
            return
        if event == "die":
            self._end()
        elif event in ("cut off", "connect"):
            self.daemon.cut_off = event == "cut off"
            self.daemon.slow = False
        elif event == "slow":
            self.daemon.slow = True
        elif event in ("mute", "speak"):
            self.speaks = event == "speak"
        elif event == "leave" and self.member and not self.stalled:
            self.daemon.leave()
            self.member = False
        elif event == "rejoin" and not self.member and not self.stalled:
            self.daemon.join()
            self.member = True
        elif event == "unused":
            self.word = False

    def obey(self, told):
        """What the administrator has seen in the Lease."""
        if self.alive and not self.word and told is not None and told.dead_after_seconds is None:
            self.daemon.used = False

    def watch(self):
        """Its watchdog fires as late as it may."""
        self.renewed = max(self.renewed, self._storage.places[self.number].timestamp)
        silent = self._storage.now - self.renewed
        if self.alive and self.member and self.daemon.used and self.stalled and silent >= DEAD_AFTER:
            self._end()

    @property
    def stalled(self):
        return self.daemon.cut_off or self.daemon.slow

    def _end(self):
        self.alive = False
        self.daemon.die()

    def tells(self):
        """What its agent writes now; None if it writes nothing."""
        if not self.alive or not self.speaks:
            return None
        if not self.member:
            return StorageRecord(boot_id=self.boot.id, why="not joined")
        try:
            lockspace = found(self.daemon)
        except Unavailable as why:
            return StorageRecord(boot_id=self.boot.id, why=str(why))
        return storage_record(self.boot.id, SanlockSettings(lockspace="demo", resets_machine=self.word), lockspace)


def found(daemon):
    """Nothing is waited for in a fake."""
    try:
        daemon.read_lockspace("demo").send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError


STORY = st.lists(
    st.tuples(
        st.integers(1, HOSTS),
        st.sampled_from(EVENTS),
        st.integers(1, 30),  # steps that pass then
        st.sampled_from([0, 0, 0, 1, 3, 40]),  # steps for which messages of that host are on their way since
    ),
    max_size=12,
)


@settings(max_examples=120, deadline=None)
@given(STORY, st.randoms(use_true_random=False))
def test_who_is_taken_for_dead_was_reset(story, random):
    storage = FakeLockspace("demo", IO_TIMEOUT)
    hosts = [Host(storage, number) for number in range(1, HOSTS + 1)]
    known, late, old, way = StorageLeaseReports(), dict.fromkeys(range(1, HOSTS + 1), 0), [], []
    for number, event, steps, delay in [(1, "nothing", 3, 0), *story, (1, "nothing", 40, 0)]:
        hosts[number - 1].suffer(event)
        late[number] = delay
        for step in range(steps):
            storage.advance(STEP)
            for host in hosts:
                host.watch()
                if record := host.tells():
                    own = [one for one in way if one[1] == host.node]
                    arrives = storage.now + late[host.number] * STEP
                    way.append((max([arrives, *(one[0] for one in own)]), host.node, record))
            due = [one for one in way if one[0] <= storage.now]
            way = [one for one in way if one[0] > storage.now]
            old += due
            again = [random.choice(old)] if old and step == 0 else []
            for _, node, record in due:
                known.observe_lease(node, to_annotations(record), float(storage.now), revision=1)
            for _, node, record in again:  # a reading of a node arrives once more, but not its own word
                latest = known._records[node]
                known.observe_lease(
                    node, to_annotations(replace(latest, seen=record.seen)), float(storage.now), revision=1
                )
            for host in hosts:
                host.obey(known._records.get(host.node))
                fact = known.evidence_about(host.node, host.boot, NODES)
                if fact and assess(host.boot, [fact], float(storage.now)).state is BootState.DEAD:
                    assert not host.alive, f"{host.node} at {storage.now}"


@given(st.integers(100, 400), st.sampled_from(["die", "cut off", "slow"]))
@settings(max_examples=20, deadline=None)
def test_who_is_gone_is_taken_for_dead_in_the_end(lived, event):
    storage = FakeLockspace("demo", IO_TIMEOUT)
    hosts = [Host(storage, number) for number in (1, 2)]
    known = StorageLeaseReports()
    for second in range(0, lived + 200, STEP):
        if second >= lived:
            hosts[1].suffer(event)
            hosts[1].speaks = False
        storage.advance(STEP)
        for host in hosts:
            host.watch()
            if record := host.tells():
                known.observe_lease(host.node, to_annotations(record), float(storage.now), revision=1)
    fact = known.evidence_about("n2", hosts[1].boot, NODES)
    assert fact is not None
    assert assess(hosts[1].boot, [fact], float(storage.now)).state is BootState.DEAD


@settings(max_examples=150, deadline=None)
@given(st.integers(60, DEAD_AFTER - 1), st.integers(0, 8), st.integers(1, 8 * IO_TIMEOUT - 1))
def test_who_renews_in_the_last_moment_is_not_taken_for_dead(held_up, earlier, hang):
    """Its write hangs for nearly as long as it may, and that of its reader for some seconds after it has read."""
    storage = FakeLockspace("demo", IO_TIMEOUT)
    holder, reader = (Host(storage, number) for number in (1, 2))
    known, begin = StorageLeaseReports(), 40
    for second in range(begin + DEAD_AFTER + 40):
        if second == begin:
            holder.suffer("slow")
            holder.suffer("mute")
        if second == begin + held_up - earlier:
            reader.suffer("slow")
        if second == begin + held_up - earlier + hang:
            reader.suffer("connect")
        if second == begin + held_up:
            holder.suffer("connect")
        storage.advance(1)
        for host in (holder, reader):
            host.watch()
            if record := host.tells():
                known.observe_lease(host.node, to_annotations(record), float(storage.now), revision=1)
        fact = known.evidence_about(holder.node, holder.boot, NODES)
        assert holder.alive
        assert fact is None or assess(holder.boot, [fact], float(storage.now)).state is not BootState.DEAD
