"""When an agent takes the word that its Lease says to others: after it knows what stands there, each time that it writes."""

import asyncio
from random import Random

from support.watchdog_peers import SETTINGS, Cluster
from support.watchdogs import Line

from lastcall import names
from lastcall.adapters.kube.client import MERGE, Client
from lastcall.adapters.kube.resources import LEASES, NAMESPACES
from lastcall.adapters.kube.watchdog_lease import KubeWatchdogLease
from lastcall.lab import virtual
from lastcall.lab.apiserver import ApiServer
from lastcall.lab.apiserver.inprocess import InProcess
from lastcall.model.watchdog_lease import AgentLease, Promise
from lastcall.model.watchdog_peers import PeerTerms


def test_what_is_said_is_asked_for_when_what_stands_there_is_known():
    async def scene():
        clock = virtual.VirtualClock()
        server = ApiServer(clock, Random(1))
        admin, line = Client(InProcess(server)), Line(InProcess(server))
        await admin.create(NAMESPACES, {"metadata": {"name": names.NODES_NAMESPACE}})
        lease = KubeWatchdogLease(Client(line), "n1", clock)

        def says():
            line.asked.append("says")
            terms = PeerTerms(nodes="x", calm=str(line.asked.count("says")))
            return Promise.of("b", SETTINGS.armed(), terms)

        await lease.write(says)
        assert line.asked == ["GET", "POST", "says", "PATCH"]
        line.asked.clear()
        labels = {"metadata": {"labels": {"somebody": "else"}}}
        await admin.patch(LEASES, "n1", labels, namespace=names.NODES_NAMESPACE)
        await lease.write(says)
        assert line.asked == ["says", "PATCH", "GET", "says", "PATCH"]
        found = (await admin.get(LEASES.read_as(AgentLease), "n1", namespace=names.NODES_NAMESPACE)).promise
        assert (found.peers.calm, found.sequence) == ("2", 2)
        await lease.write(says)
        assert line.asked[5:] == ["says", "PATCH"]
        await admin.patch(
            LEASES, "n1", {"metadata": {"annotations": None}}, namespace=names.NODES_NAMESPACE, kind=MERGE
        )
        await lease.write(says)
        found = (await admin.get(LEASES.read_as(AgentLease), "n1", namespace=names.NODES_NAMESPACE)).promise
        assert found.sequence == 4  # also if somebody has removed it

    virtual.run(scene())


def test_a_word_that_was_given_away_meanwhile_is_not_written():
    async def scene():
        async with Cluster() as cluster:
            await asyncio.sleep(30)
            machine = cluster.machines["n1"]
            written = machine.keeper._lease.write
            said = []

            async def write(promise):
                said.append(promise().peers.calm)
                machine.peers._calm = "another"
                said.append(promise().peers.calm)
                return await written(promise)

            machine.keeper._lease.write = write
            await asyncio.sleep(6)
            assert said[0] != said[1] == "another"

    virtual.run(scene())
