"""What the machines and the control plane of a rehearsal do as real ones do, whatever is rehearsed."""

from pathlib import Path

import pytest

from lastcall.adapters.kube.resources import NODES
from lastcall.errors import Unavailable
from lastcall_lab import virtual
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.machine.volume_driver import FLUSH_SECONDS, FlushingDriver
from lastcall_lab.simulation.scenario import NodeGroup, Scenario
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import InMemoryVolumes

POD, CLAIM, PATH = {"metadata": {"uid": "u"}}, {"spec": {"volumeName": "v"}}, Path("/v")


def in_virtual_time(test):
    """Runs a test with the clock of a loop of its own."""

    def run():
        virtual.run(test(virtual.VirtualClock()))

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_a_volume_can_be_written_until_what_was_written_is_at_the_storage(clock):
    storage = Storage(InMemoryVolumes(), clock)
    await storage.attach("v", "n1", shared=False)
    await storage.mount("v", "n1", "u", PATH)
    driver = FlushingDriver(storage, "n1", client=None, clock=clock)
    process = virtual.VirtualProcess("kubelet")
    process.start(driver.unmount(POD, CLAIM, PATH), "unmount")
    await clock.sleep(FLUSH_SECONDS - 0.1)
    await storage.write("v", "n1", "u", "f", b"still")
    await clock.sleep(0.2)
    with pytest.raises(Unavailable, match="not mounted"):
        await storage.write("v", "n1", "u", "f", b"no more")


@in_virtual_time
async def test_a_kubelet_that_dies_while_it_unmounts_leaves_the_volume_mounted(clock):
    storage = Storage(InMemoryVolumes(), clock)
    await storage.attach("v", "n1", shared=False)
    await storage.mount("v", "n1", "u", PATH)
    process = virtual.VirtualProcess("kubelet")
    process.start(FlushingDriver(storage, "n1", client=None, clock=clock).unmount(POD, CLAIM, PATH), "unmount")
    await clock.sleep(FLUSH_SECONDS / 2)
    process.kill()
    await clock.sleep(FLUSH_SECONDS)
    assert storage.mounts_of("n1") == [("v", "u")]
    await FlushingDriver(storage, "n1", client=None, clock=clock).unmount(POD, CLAIM, PATH)
    assert storage.mounts_of("n1") == []


@in_virtual_time
async def test_a_server_that_starts_again_knows_no_history(clock):
    cluster = SimulatedCluster(Scenario("restart", nodes=(NodeGroup(count=1),)), clock, "1")
    await cluster.start()
    admin = cluster.plane.admin
    _, before = await admin.list_raw(NODES)
    await admin.patch(NODES, "node-1", {"metadata": {"labels": {"a": "b"}}})
    watch = await admin.watch(NODES, before)
    assert b"ADDED" not in await anext(watch)
    await watch.aclose()
    cluster.plane.stop()
    cluster.plane.start()
    watch = await admin.watch(NODES, before)
    told = b"".join([one async for one in watch])
    assert (b'"code":410' in told, b"node-1" in told) == (True, False)
