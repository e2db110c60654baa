"""What the agent tells of its node's lease on shared storage, at the lab's API server and beside a watchdog's keeper."""

import asyncio
import logging
from random import Random

import pytest
from support.virtual_time.worker import in_virtual_time
from support.watchdog.watchdog_node import NODE, on_watchdog

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.adapters.kube.storage_lease_annotation import KubeStorageAnnotation
from lastcall.aio import cancel_and_wait
from lastcall.errors import NotFound, Unavailable
from lastcall.failover.evidence.watchdog_observation import observe_lease
from lastcall.model.storage_lease import HostSeen, SanlockSettings, StorageRecord, parse_record, to_annotations
from lastcall.model.watchdog_lease import AgentLease
from lastcall.ports.storage import Lockspace
from lastcall.storage.lease_record import MOST_SEEN, doubt_about_reset, neighbour_hosts, storage_record
from lastcall.storage.lease_reporter import StorageLeaseReporter, retract_record
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.fakes.sanlock import FakeLockspace

RESETS = SanlockSettings(lockspace="demo", resets_machine=True)
_LEASES = LEASES.with_shape(AgentLease)


def seen(host_id, renewed_ago=1):
    return HostSeen(host_id=host_id, generation=1, owner="o", timestamp=7, renewed_ago=renewed_ago, looked_ago=0)


def lockspace(*, watchdog=True, used=True, others=(), looks=True):
    return Lockspace(
        host_id=3,
        generation=2,
        owner="me",
        timestamp=900,
        interval=20,
        dead_after=140,
        watchdog=watchdog,
        used=used,
        looks=looks,
        others=others,
    )


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("watchdog", [True, False])
@pytest.mark.parametrize("used", [True, False])
def test_that_its_loss_resets_the_machine_is_believed_only_if_all_say_so(resets, watchdog, used):
    settings = SanlockSettings(lockspace="demo", resets_machine=resets)
    record = storage_record("boot", settings, lockspace(watchdog=watchdog, used=used))
    assert (record.dead_after_seconds == 140) is (resets and watchdog and used)
    assert bool(record.why) is (record.dead_after_seconds is None)
    assert (record.host_id, record.generation, record.owner, record.timestamp) == (3, 2, "me", 900)
    assert parse_record(to_annotations(record)) == record


def test_why_it_is_not_believed():
    assert "resetsMachine" in doubt_about_reset(SanlockSettings(lockspace="demo"), lockspace())
    assert "use_watchdog=0" in doubt_about_reset(RESETS, lockspace(watchdog=False))
    assert "sanlock client set_config -s demo -u 1" in doubt_about_reset(RESETS, lockspace(used=False))


def test_each_host_is_told_of_by_as_many_as_any_other():
    hosts = range(1, 101)
    told = [one.host_id for me in hosts for one in neighbour_hosts(me, [seen(host) for host in hosts if host != me])]
    assert {told.count(host) for host in hosts} == {MOST_SEEN}
    assert [one.host_id for one in neighbour_hosts(3, [seen(host) for host in (9, 1, 4, 2)])] == [4, 9, 1, 2]


def test_ids_that_were_never_given_back_hide_nobody_and_are_told_of_too():
    hosts = range(1, 101)
    for gone in (range(20, 60), [50], range(2, 100)):
        others = [seen(host, 86400 if host in gone else 1) for host in hosts]
        told = [
            one.host_id
            for me in hosts
            if me not in gone
            for one in neighbour_hosts(me, [other for other in others if other.host_id != me])
        ]
        running = len(hosts) - len(gone)
        assert min(told.count(host) for host in hosts if host not in gone) >= min(MOST_SEEN // 2, running - 1), gone
        assert told.count(gone[0]) >= min(MOST_SEEN // 2, running - 1), gone


@pytest.mark.parametrize(
    "text",
    ["", "7", "{}", "[", '{"bootID":7}', '{"bootID":"b","deadAfterSeconds":0}', '{"bootID":"b","seen":[{}]}']
    + [f'{{"bootID":"b","intervalSeconds":{value}}}' for value in ("-1", "NaN", "1e999", '"1"')],
)
def test_what_cannot_be_read_says_nothing(text):
    assert parse_record({names.STORAGE_LEASE: text}) is None


class Place:
    """An API server with the namespace of agents; a storage with two hosts, of which the first one is told of."""

    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.admin = Client(InProcessTransport(ApiServer(self.clock, Random(1))), manager="agent")
        self.storage = FakeLockspace("demo")
        self.first, self.second = self.storage.host(1, "one"), self.storage.host(2, "two")

    async def begin(self):
        await self.admin.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
        self.first.join()
        self.second.join()
        self.storage.advance(30)

    def telling(self, word=None, leases=None):
        word = word or KubeStorageAnnotation(self.admin, NODE)
        return StorageLeaseReporter(RESETS, leases=leases or self.first, word=word, clock=self.clock, boot_id="boot")

    async def lease(self):
        return await self.admin.get(_LEASES, NODE, namespace=names.NODES_NAMESPACE)

    async def record(self):
        return parse_record((await self.lease()).metadata.annotations)


@in_virtual_time
async def test_it_is_told_and_taken_back_when_nothing_is_known_of_it_any_more():
    place = Place()
    await place.begin()
    place.first.watchdog = place.first.used = True
    running = asyncio.create_task(place.telling().run())
    await asyncio.sleep(1)
    record = await place.record()
    assert (record.boot_id, record.lockspace, record.host_id, record.dead_after_seconds) == ("boot", "demo", 1, 140)
    assert [one.host_id for one in record.seen] == [2]
    place.first.used = False
    await asyncio.sleep(10)
    assert (await place.record()).dead_after_seconds is None
    place.first.die()
    await asyncio.sleep(10)
    assert await place.record() == StorageRecord(boot_id="boot", why="sanlock client status failed with 1")
    await cancel_and_wait(running)


@in_virtual_time
async def test_one_that_was_lost_for_a_time_and_is_kept_tells_of_nobody_else_and_says_so():
    place = Place()
    await place.begin()
    place.first.watchdog = place.first.used = True
    place.first.slow = True
    place.storage.advance(90)
    place.first.slow = False
    place.storage.advance(30)
    telling = place.telling()
    running = asyncio.create_task(telling.run())
    await asyncio.sleep(1)
    record = await place.record()
    assert (record.host_id, record.dead_after_seconds, record.seen) == (1, 140, ())
    assert "does not show other hosts until this machine reboots" in telling._said
    await cancel_and_wait(running)


class Mistaken:
    """Leases of which a reading is a mistake of ours."""

    async def read_lockspace(self, _):
        raise ValueError("a mistake")


@in_virtual_time
async def test_a_mistake_takes_back_what_was_told():
    place = Place()
    await place.begin()
    place.first.watchdog = place.first.used = True
    word = KubeStorageAnnotation(place.admin, NODE)
    running = asyncio.create_task(place.telling().run())
    await asyncio.sleep(1)
    assert (await place.record()).dead_after_seconds == 140
    await cancel_and_wait(running)
    running = asyncio.create_task(place.telling(word, Mistaken()).run())
    await asyncio.sleep(1)
    assert await place.record() == StorageRecord(boot_id="boot", why="it could not be read")
    await cancel_and_wait(running)


class Broken:
    """A word that fails for a while, and then takes for ever."""

    def __init__(self):
        self.asked = 0

    async def write_record(self, _):
        self.asked += 1
        if self.asked < 3:
            raise Unavailable("no API server")
        if self.asked == 3:
            raise ValueError("a mistake")
        await asyncio.sleep(100_000)


async def faults():
    place, word = Place(), Broken()
    await place.begin()
    running = asyncio.create_task(place.telling(word).run())
    await asyncio.sleep(55)
    assert word.asked == 6
    await cancel_and_wait(running)


def test_faults_are_told_once_and_waited_out(caplog):
    caplog.set_level(logging.INFO, logger="lastcall.storage.lease_reporter")
    virtual.run(faults())
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "lease on lockspace demo: held as host 1, and it proves nothing: sanlock runs without a watchdog (use_watchdog=0)",
        "the lease on lockspace demo could not be reported: no API server",
        "the lease on shared storage could not be reported",
        "the lease on lockspace demo could not be reported: no answer in time",
    ]


@on_watchdog()
async def test_beside_a_watchdogs_keeper_it_renews_nothing_and_the_watchdog_goes_on(world):
    storage = FakeLockspace("demo")
    host = storage.host(1, "one")
    host.join()
    storage.advance(30)
    world.agent()
    await asyncio.sleep(30)
    word = KubeStorageAnnotation(world.admin, NODE)
    telling = StorageLeaseReporter(RESETS, leases=host, word=word, clock=world.clock, boot_id="boot-0")
    running = asyncio.create_task(telling.run())
    await asyncio.sleep(300)
    lease = await world.lease()
    assert parse_record(lease.metadata.annotations).host_id == 1
    assert lease.promise.armed
    assert (world.resets, world.rounds[-1].withheld) == ([], 0)
    assert world.rounds[-1].failed == 0
    await cancel_and_wait(running)

    world.line.cut = True
    before = await world.lease()
    await word.write_record(StorageRecord(boot_id="boot-0"))
    after = await world.lease()
    assert (after.spec, after.promise) == (before.spec, before.promise)
    assert after.metadata.annotations != before.metadata.annotations
    known = observe_lease(None, annotations=before.metadata.annotations, renewed=str(before.spec.renew_time), now=1)
    assert (
        observe_lease(known, annotations=after.metadata.annotations, renewed=str(after.spec.renew_time), now=2) is known
    )


@in_virtual_time
async def test_a_lease_that_is_missing_is_made_and_promises_nothing():
    place = Place()
    await place.begin()
    with pytest.raises(NotFound):
        await place.lease()
    await KubeStorageAnnotation(place.admin, NODE).write_record(StorageRecord(boot_id="boot"))
    lease = await place.lease()
    assert (await place.record()).boot_id == "boot"
    assert (lease.promise, lease.spec.renew_time) == (None, AgentLease().spec.renew_time)


@in_virtual_time
async def test_there_is_nothing_to_take_back_where_there_is_no_lease_and_none_is_made():
    place = Place()
    await place.begin()
    await retract_record(KubeStorageAnnotation(place.admin, NODE), place.clock)
    with pytest.raises(NotFound):
        await place.lease()


@in_virtual_time
async def test_a_write_that_arrives_after_it_was_taken_back_is_taken_back_too():
    place = Place()
    await place.begin()
    word = KubeStorageAnnotation(place.admin, NODE)
    await word.write_record(StorageRecord(boot_id="before"))
    running = asyncio.create_task(retract_record(word, place.clock))
    await asyncio.sleep(1)
    assert await place.record() is None
    await word.write_record(StorageRecord(boot_id="before"))
    await running
    assert await place.record() is None


class Away:
    """A word that has no API server for a while, and no answer then."""

    def __init__(self):
        self.asked = 0

    async def clear_record(self):
        self.asked += 1
        if self.asked < 3:
            raise Unavailable("no API server")
        if self.asked == 3:
            await asyncio.sleep(100_000)


async def took_back():
    word, clock = Away(), virtual.VirtualClock()
    await retract_record(word, clock)
    assert word.asked == 5


def test_it_is_tried_until_it_is_taken_back(caplog):
    virtual.run(took_back())
    before = "the record of a lease on shared storage could not be removed"
    assert [one.getMessage() for one in caplog.records] == [
        f"{before}: no API server",
        f"{before}: no answer in time",
    ]
