"""What ``ports_storage.StorageLeases`` promises: by real sanlock daemons on one lockspace in a file, and by the fake."""

import asyncio

import pytest
from support.storage import sanlock_daemons
from support.storage.sanlock_daemons import LOCKSPACE

from lastcall.errors import Unavailable

pytestmark = pytest.mark.timeout(180)

REAL = pytest.param(
    "real", marks=pytest.mark.skipif(bool(sanlock_daemons.missing), reason=str(sanlock_daemons.missing))
)


@pytest.fixture(params=["fake", REAL])
async def storage(request, tmp_path):
    async with sanlock_daemons.storage(request.param, tmp_path) as opened:
        yield opened


async def seen(storage, host, wanted):
    """What the host finds as soon as it is as wanted."""
    async with asyncio.timeout(120):
        while True:
            try:
                found = await host.leases.read_lockspace(LOCKSPACE)
            except Unavailable:
                found = None
            if found and wanted(found):
                return found
            await storage.wait()


def about(found, host_id):
    return next((one for one in found.others if one.host_id == host_id), None)


def generation(found, host_id):
    """One that had to join twice has begun more than one."""
    host = about(found, host_id)
    return host and host.generation


async def two(storage):
    hosts = [await storage.host(number) for number in (1, 2)]
    await asyncio.gather(*(host.join() for host in hosts))
    return hosts


async def test_two_hosts_read_each_others_renewals_and_one_that_dies_renews_no_more(storage):
    first, second = await two(storage)
    mine = await seen(storage, second, lambda found: about(found, 1))
    before = await seen(storage, first, lambda found: generation(found, 2) == mine.generation)
    await seen(storage, second, lambda found: generation(found, 1) == before.generation)
    assert (before.host_id, before.owner) == (1, "host1")
    assert (mine.host_id, mine.owner) == (2, "host2")
    assert min(before.generation, mine.generation) >= 1
    assert (before.interval, before.dead_after) == (2 * storage.io_timeout, 8 * storage.io_timeout + 60)
    assert (before.watchdog, before.used) == (False, False)
    assert [(one.host_id, one.generation, one.owner) for one in before.others] == [(2, mine.generation, "host2")]

    renewed = await seen(storage, first, lambda found: about(found, 2).timestamp > about(before, 2).timestamp)
    assert renewed.timestamp > before.timestamp
    await second.die()
    silent = await seen(storage, first, lambda found: _elapsed(about(found, 2)) > 2 * storage.io_timeout)
    later = await seen(storage, first, lambda found: _elapsed(about(found, 2)) > _elapsed(about(silent, 2)))
    assert about(later, 2).timestamp == about(silent, 2).timestamp
    assert later.timestamp > renewed.timestamp
    with pytest.raises(Unavailable, match="sanlock client status failed"):
        await second.leases.read_lockspace(LOCKSPACE)


async def test_one_that_leaves_holds_no_lease_and_has_another_one_when_it_comes_back(storage):
    first, second = await two(storage)
    before = await seen(storage, second, lambda found: found.others)
    await seen(storage, first, lambda found: generation(found, 2) == before.generation)
    await second.leave()
    await seen(storage, first, lambda found: not found.others)
    with pytest.raises(Unavailable, match="lockspace demo is not joined"):
        await second.leases.read_lockspace(LOCKSPACE)
    await second.join()
    mine = await seen(storage, second, lambda found: found.others)
    assert mine.generation > before.generation
    again = await seen(storage, first, lambda found: generation(found, 2) == mine.generation)
    assert about(again, 2).owner == "host2"


async def test_a_lockspace_that_is_marked_as_used(storage):
    host = await storage.host(1)
    with pytest.raises(Unavailable, match="lockspace demo is not joined"):
        await host.leases.read_lockspace(LOCKSPACE)
    await host.join()
    await seen(storage, host, lambda found: not found.used)
    with pytest.raises(Unavailable, match="lockspace dem is not joined"):
        await host.leases.read_lockspace("dem")
    await host.mark_used()
    await seen(storage, host, lambda found: found.used)


def _elapsed(host):
    """Between the first and the last look that read the same."""
    return host.renewed_ago - host.looked_ago
