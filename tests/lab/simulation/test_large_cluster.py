"""A hundred nodes with three thousand pods, rebooted in turn."""

import gc
from collections import Counter

import pytest

from lastcall.adapters.kube.resources import PODS
from lastcall_lab import virtual
from lastcall_lab.simulation.actions.rolling_reboot import RollingState, nodes_to_reboot
from lastcall_lab.simulation.fleet import fleet_scenario
from lastcall_lab.simulation.rehearsal import Rehearsal

NODES, AT_ONCE = 100, 10


@pytest.fixture
def swept():
    """What the test leaves is collected in its own time, not in that of the next one."""
    yield
    gc.collect()


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("swept")
def test_a_hundred_nodes_are_rebooted_ten_at_a_time_and_nothing_is_missing_in_the_end():
    async def main():
        rehearsal = Rehearsal(fleet_scenario(NODES, at_once=AT_ONCE, lasts=900), 1)
        await rehearsal.run()
        cluster = rehearsal.cluster
        pods = cluster.list_objects(PODS)
        return cluster.is_complete(), cluster.are_nodes_ready(), pods, cluster.truth

    whole, ready, pods, truth = virtual.run(main())
    assert whole
    assert ready
    running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
    assert len(running) == 30 * NODES
    counts = Counter((power.node, power.what) for power in truth.powers)
    names = [f"node-{number + 1}" for number in range(NODES)]
    assert all(counts[name, "on"] == 2 for name in names)
    assert all(counts[name, "pressed"] == counts[name, "off"] == 1 for name in names)
    down, most = set(), 0
    for power in truth.powers:
        if power.what == "pressed":
            down.add(power.node)
        elif power.what == "on":
            down.discard(power.node)
        most = max(most, len(down))
    assert most == AT_ONCE


def test_the_next_machines_come_when_the_last_are_back_in_another_boot_and_nothing_is_missing():
    before = {"a": "boot 1", "b": "boot 1"}
    left = ["c", "d", "e"]
    back = {"a": "boot 2", "b": "boot 2"}
    assert nodes_to_reboot(RollingState(left, before, back, whole=True), 2) == ["c", "d"]
    assert not nodes_to_reboot(RollingState(left, before, back, whole=False), 2)
    assert not nodes_to_reboot(RollingState(left, before, {"a": "boot 2"}, whole=True), 2)
    assert not nodes_to_reboot(RollingState(left, before, {**back, "b": "boot 1"}, whole=True), 2)
    assert nodes_to_reboot(RollingState(left, {}, {}, whole=True), 2) == ["c", "d"]
