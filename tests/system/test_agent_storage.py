"""``lastcall agent`` with a lease on shared storage in its configuration: real sanlock daemons, at a lab's API server."""

import asyncio
import contextlib

import pytest
from support.agents.agent_process import ended, running
from support.lab.up_process import LabProcess
from support.storage import sanlock_daemons

from lastcall import names
from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import NotFound, Unavailable
from lastcall.model.storage_lease import parse_record
from lastcall.model.watchdog_lease import AgentLease

pytestmark = [
    pytest.mark.timeout(270),
    pytest.mark.skipif(bool(sanlock_daemons.missing), reason=str(sanlock_daemons.missing)),
]

CONFIG = "storageLease: {sanlock: {lockspace: demo, resetsMachine: true}}\n"


@pytest.fixture
def lab(tmp_path):
    lab = LabProcess(tmp_path / "lab")
    try:
        lab.start()
        yield lab
    finally:
        lab.kill()


@pytest.fixture
async def hosts(tmp_path):
    async with sanlock_daemons.storage("real", tmp_path) as storage:
        found = [await storage.host(number) for number in (1, 2)]
        await asyncio.gather(*(host.join() for host in found))
        yield found


async def generation(host):
    """Of its own lease, as soon as it has read that; one that had to join twice has begun more than one."""
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(Unavailable):
                return (await host.leases.read_lockspace("demo")).generation
            await asyncio.sleep(0.2)


async def until(client, wanted):
    """What is told as soon as it is as wanted."""
    async with asyncio.timeout(120):
        while True:
            try:
                lease = await client.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)
                record = parse_record(lease.metadata.annotations)
            except NotFound:
                record = None
            if record and wanted(record):
                return record
            await asyncio.sleep(0.2)


async def test_it_tells_in_its_lease_what_sanlock_knows(lab, hosts, tmp_path):
    async with running(lab, tmp_path, CONFIG, hosts[0].environment) as (process, client):
        first, second = [await generation(host) for host in hosts]
        record = await until(client, lambda record: [one.generation for one in record.seen] == [second])
        assert (record.lockspace, record.host_id, record.generation, record.owner) == ("demo", 1, first, "host1")
        assert [(one.host_id, one.owner) for one in record.seen] == [(2, "host2")]
        assert (record.dead_after_seconds, record.why) == (None, "sanlock runs without a watchdog (use_watchdog=0)")
        await hosts[0].die()
        await until(client, lambda record: record.why.startswith("sanlock client status failed"))
        said = await ended(process)
    assert "lease on lockspace demo: held as host 1, and it proves nothing" in said
