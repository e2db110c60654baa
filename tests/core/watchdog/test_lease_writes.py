"""When an agent takes the word that its Lease says to others: after it knows what stands there, each time that it writes."""

import asyncio
from random import Random

from support.watchdog.peer_nodes import SETTINGS, Cluster
from support.watchdog.watchdog_node import Line

from lastcall import names
from lastcall.adapters.kube.client import MERGE, Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.model import watchdog_peer_reports
from lastcall.model.watchdog_lease import AgentLease, WatchdogPromise
from lastcall.model.watchdog_peer_reports import PeerReport
from lastcall.model.watchdog_peers import PeerTerms
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.server.in_process import InProcessTransport


async def at_a_server():
    """Somebody else's client, the agent's line, and what makes the Lease as each life of the agent has it."""
    clock = virtual.VirtualClock()
    server = ApiServer(clock, Random(1))
    admin, line = Client(InProcessTransport(server)), Line(InProcessTransport(server))
    await admin.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
    return admin, line, lambda: KubeWatchdogLease(Client(line), "n1", clock)


def test_what_is_said_is_asked_for_when_what_stands_there_is_known():
    async def scene():
        admin, line, of_a_life = await at_a_server()
        lease = of_a_life()

        def says():
            line.asked.append("says")
            terms = PeerTerms(nodes="x", calm=str(line.asked.count("says")))
            return WatchdogPromise.from_timing("b", SETTINGS.timing_with(), terms)

        await lease.write_promise(says)
        assert line.asked == ["GET", "POST", "says", "PATCH"]
        line.asked.clear()
        labels = {"metadata": {"labels": {"somebody": "else"}}}
        await admin.patch(LEASES, "n1", labels, namespace=names.NODES_NAMESPACE)
        await lease.write_promise(says)
        assert line.asked == ["says", "PATCH", "GET", "says", "PATCH"]
        found = (await admin.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)).promise
        assert (found.peers.calm, found.sequence) == ("2", 2)
        await lease.write_promise(says)
        assert line.asked[5:] == ["says", "PATCH"]
        await admin.patch(
            LEASES, "n1", {"metadata": {"annotations": None}}, namespace=names.NODES_NAMESPACE, kind=MERGE
        )
        await lease.write_promise(says)
        found = (await admin.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)).promise
        assert found.sequence == 4  # also if somebody has removed it

    virtual.run(scene())


def test_a_word_that_was_given_away_meanwhile_is_not_written():
    async def scene():
        async with Cluster() as cluster:
            await asyncio.sleep(30)
            machine = cluster.machines["n1"]
            written = machine.keeper._lease.write_promise
            said = []

            async def write(promise, heard):
                said.append(promise().peers.calm)
                machine.peers._calm = "another"
                said.append(promise().peers.calm)
                return await written(promise, heard)

            machine.keeper._lease.write_promise = write
            await asyncio.sleep(6)
            assert said[0] != said[1] == "another"

    virtual.run(scene())


def test_whom_it_has_heard_is_asked_for_right_before_each_write_and_goes_when_there_is_nobody():
    async def scene():
        admin, line, of_a_life = await at_a_server()
        lease = of_a_life()
        told = {"n2": PeerReport(boot_id="b2", asked=7, ago=0.5)}

        def heard():
            line.asked.append("heard")
            return told

        async def stands():
            found = await admin.get(LEASES.with_shape(AgentLease), "n1", namespace=names.NODES_NAMESPACE)
            return found.metadata.annotations

        def says():
            return WatchdogPromise(boot_id="b", why="no device")

        await lease.write_promise(says, heard)
        assert line.asked == ["GET", "POST", "heard", "PATCH"]
        assert watchdog_peer_reports.parse_annotation(await stands()) == told
        line.asked.clear()
        await admin.patch(LEASES, "n1", {"metadata": {"labels": {"a": "b"}}}, namespace=names.NODES_NAMESPACE)
        await lease.write_promise(says, heard)
        assert line.asked == ["heard", "PATCH", "GET", "heard", "PATCH"]
        await lease.write_promise(says, dict)
        assert (await stands()).keys() == {names.WATCHDOG}
        await of_a_life().write_promise(says, heard)
        await of_a_life().write_promise(says)
        assert (await stands()).keys() == {names.WATCHDOG}, "an agent that counts no others says nothing of them"

    virtual.run(scene())
