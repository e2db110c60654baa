"""Nodes that pet their watchdogs by agreement: an outage that all live through, partitions, and what the controller concludes."""

import asyncio

import pytest
from support.watchdog.peer_nodes import BOUND, SETTINGS, together

from lastcall import names
from lastcall.adapters.kube.resources import SECRETS

pytestmark = pytest.mark.timeout(120)

REPORT = SETTINGS.timing_with().report_after


def test_an_outage_of_the_api_server_that_all_have_resets_nobody():
    async def scene(cluster):
        await asyncio.sleep(60)
        cluster.outage()
        await asyncio.sleep(1000)
        assert [machine.resets for machine in cluster.machines.values()] == [[], [], []]
        told = cluster.machines["n1"].rounds[-1]
        assert told.nodes == 3
        assert told.sentence == (
            "the Lease could not be renewed for too long, and 3 of all 3 nodes report that they have lost the API server: "
            "this machine keeps running"
        )
        cluster.heal()
        await asyncio.sleep(200)
        assert [machine.resets for machine in cluster.machines.values()] == [[], [], []]
        assert cluster.proofs == {}

    together(scene)


def test_while_the_api_server_is_there_nobody_sends_anything():
    async def scene(cluster):
        await asyncio.sleep(300)
        assert cluster.network.sent == 0

    together(scene)


def test_a_node_that_is_cut_off_is_reset_in_the_bound_and_that_is_proved():
    async def scene(cluster):
        await asyncio.sleep(100)
        cut, machine = cluster.now, cluster.machines["n1"]
        machine.cut_off()
        await asyncio.sleep(200)
        assert len(machine.resets) == 1
        assert machine.resets[0] - cut < BOUND
        assert BOUND - 6 < cluster.proofs["boot-n1-0"] - cut < BOUND + 30
        assert list(cluster.proofs) == ["boot-n1-0"]

    together(scene)


def test_a_node_that_loses_the_api_server_alone_is_reset_though_it_hears_others():
    async def scene(cluster):
        await asyncio.sleep(100)
        machine = cluster.machines["n2"]
        machine.cut_off(peers=False)
        await asyncio.sleep(200)
        assert len(machine.resets) == 1
        assert list(cluster.proofs) == ["boot-n2-0"]
        assert cluster.machines["n1"].resets == cluster.machines["n3"].resets == []

    together(scene)


@pytest.mark.parametrize(
    ("parts", "reset", "proved"),
    [
        (("n1 n2 n3", "n4 n5"), "n4 n5", "n4 n5"),
        (("n1 n2", "n3 n4 n5"), "", ""),  # a majority lives on, and nobody can take it for dead
        (("n1", "n2 n3", "n4 n5"), "n2 n3 n4 n5", ""),  # that they are reset cannot be known
        (("n1 n2 n3 n4", "n5"), "n5", "n5"),
    ],
)
def test_partitions(parts, reset, proved):
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.split(*(part.split() for part in parts))
        await asyncio.sleep(400)
        assert [name for name, one in cluster.machines.items() if one.resets] == reset.split()
        assert sorted(cluster.proofs) == [f"boot-{name}-0" for name in proved.split()]

    together(scene, size=5)


def test_half_of_the_nodes_is_no_majority_and_the_other_half_knows_it():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.split(["n1", "n2"], ["n3", "n4"])
        await asyncio.sleep(400)
        assert [name for name, one in cluster.machines.items() if one.resets] == ["n3", "n4"]
        assert sorted(cluster.proofs) == ["boot-n3-0", "boot-n4-0"]

    together(scene, size=4)


def test_agents_whose_writes_arrive_and_are_not_answered_do_not_count_as_calm():
    """Their Leases look renewed, and they report that the API server is lost: n1 lives on by their word."""

    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.machines["n1"].cut_off(peers=False)
        for name in ("n2", "n3"):
            cluster.machines[name].line.deaf = True
        await asyncio.sleep(500)
        assert cluster.machines["n1"].resets == []
        assert cluster.proofs == {}

    together(scene)


def test_when_the_majority_is_back_who_stays_away_is_reset_and_proved():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.outage()
        await asyncio.sleep(300)
        for name in ("n2", "n3"):
            cluster.machines[name].line.cut = False
        back = cluster.now
        await asyncio.sleep(200)
        machine = cluster.machines["n1"]
        assert len(machine.resets) == 1
        assert machine.resets[0] - back < REPORT + 3 * 11
        assert cluster.proofs["boot-n1-0"] > machine.resets[0]

    together(scene)


def test_an_agent_that_is_killed_in_the_outage_does_not_come_back_to_pet():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.outage()
        await asyncio.sleep(100)
        machine = cluster.machines["n1"]
        machine.process.kill()
        await asyncio.sleep(100)
        assert len(machine.resets) == 1
        assert cluster.machines["n2"].resets == []

    together(scene, size=5)


def test_nodes_that_are_new_count_for_the_controller_as_the_agent_counted():
    """Two of three agree; the API server has nine nodes by then, most of which are well."""

    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.split(["n1"], ["n2", "n3"])
        for number in range(4, 10):
            await cluster.add_node(f"n{number}", "")
        await asyncio.sleep(400)
        assert cluster.machines["n2"].resets == cluster.machines["n3"].resets == []
        assert cluster.proofs == {}

    together(scene)


def test_a_controller_that_begins_afterwards_proves_it_later():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.machines["n1"].cut_off()
        await asyncio.sleep(60)
        cluster.controller()
        begun = cluster.now
        await asyncio.sleep(150)
        assert BOUND - 1 < cluster.proofs["boot-n1-0"] - begun < BOUND + 30

    together(scene)


def test_without_the_key_nobody_is_counted_and_the_agent_says_why():
    async def scene(cluster):
        await asyncio.sleep(30)
        await cluster.admin.delete(SECRETS, names.PEERS_SECRET, namespace=names.SYSTEM_NAMESPACE)
        machine = cluster.machines["n1"]
        machine.process.kill()
        await asyncio.sleep(60)
        told = machine.rounds[-1]
        assert (told.armed, told.nodes) == (True, 0)
        why = "and other nodes are not counted: Secret lastcall-system/lastcall-watchdog-peers is missing"
        assert told.sentence.endswith(why)
        cluster.outage()
        await asyncio.sleep(200)
        assert len(machine.resets) == 1
        assert cluster.machines["n2"].resets == cluster.machines["n3"].resets == []

    together(scene)
