"""Leases that renew themselves: what is computed must be what would have been written."""

import asyncio
import math

import pytest

from lastcall.adapters.kube.resources import LEASES, NODES
from lastcall.model.pods import Container, ObjectMetadata, Pod, PodSpec
from lastcall_lab import virtual
from lastcall_lab.apiserver.values.object_meta import micro_timestamp, parse_seconds, timestamp
from lastcall_lab.controllers.framework.view import ObjectRef, View
from lastcall_lab.controllers.nodes.node_health import LeaseRenewal
from lastcall_lab.controllers.nodes.node_lifecycle import LEASE_NAMESPACE, NodeLifecycleController
from lastcall_lab.controllers.nodes.node_lifecycle import LEASES as LEASE_RESOURCE
from lastcall_lab.fakes.actor_runtime import ActorRuntime, ContainerScript
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.scenario import NodeGroup, Scenario

KEY = ObjectRef("nodes", "", "n1")


def node(heartbeat):
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp(heartbeat)}
    metadata = {"name": "n1", "uid": "u", "resourceVersion": "1", "creationTimestamp": timestamp(0)}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [ready]}}


def lease(renewed):
    return {"metadata": {"name": "n1", "namespace": LEASE_NAMESPACE}, "spec": {"renewTime": micro_timestamp(renewed)}}


class Played:
    """A controller with one node, whose lease changes at given times; ``looks`` counts its decisions."""

    def __init__(self, controller):
        self.controller, self.view, self.looks = controller, View(), 0

    def until_silent(self, begun, writes, post=math.inf):
        """When it writes that the node is unknown; ``post``: when its kubelet posts the status once more."""
        known = node(begun)
        self.view.apply("nodes", known, None)
        before, due, writes = None, begun, list(writes)
        while True:
            now = min([due, post, *writes[:1]])
            wanted = now == due
            if now == post:
                new, post, wanted = node(now), math.inf, True
                self.view.apply("nodes", new, known)
            if writes and writes[0] == now:
                new = lease(writes.pop(0))
                self.view.apply(LEASE_RESOURCE, new, before)
                wanted, before = (
                    wanted or list(self.controller.affected_keys(LEASE_RESOURCE, new, self.view)) == [KEY],
                    new,
                )
            if wanted:
                self.looks += 1
                decision = self.controller.decide(KEY, self.view, now)
                if any("status" in getattr(one, "subresource", "") for one in decision.actions):
                    return now
                due = now + decision.again_in


@pytest.mark.parametrize("phase", [0.0, 0.3, 2.5, 4.9, 7.1, 9.99])
@pytest.mark.parametrize("count", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("post", [math.inf, -20.0, -7.0, -2.0, 1.0])
def test_a_node_falls_silent_at_the_same_beat_whether_its_renewals_are_written_or_computed(phase, count, post):
    """``post``: when the status is posted, from the last renewal on."""
    period, begun = 10.2, 1000.0
    first = begun + phase
    times = [first + number * period for number in range(count)]

    written = Played(NodeLifecycleController())
    post = max(begun + 1, times[-1] + post)
    expected = written.until_silent(begun, times, post)

    computed = Played(None)
    clock = {"now": begun}

    def last(_):
        past = [at for at in times[1:] if at <= clock["now"]]
        return LeaseRenewal(micro_timestamp(past[-1]), past[-1]) if past else None

    class Told(NodeLifecycleController):
        def decide(self, key, view, now):
            clock["now"] = now
            return super().decide(key, view, now)

    computed.controller = Told(renewals=last)
    writes = [times[0], times[-1]] if count > 1 else times  # at the end, the last one is written down
    assert computed.until_silent(begun, writes, post) == pytest.approx(expected)
    if count == 40 and post == math.inf:
        assert computed.looks < written.looks / 5


def renewed(cluster, name):
    found = next(one for one in cluster.list_objects(LEASES) if one["metadata"]["name"] == name)
    return parse_seconds(found["spec"]["renewTime"])


def status(cluster, name):
    found = next(one for one in cluster.list_objects(NODES) if one["metadata"]["name"] == name)
    return next(one["status"] for one in found["status"]["conditions"] if one["type"] == "Ready")


def in_cluster(test):
    """Runs a test with a cluster of two nodes in virtual time."""

    def run():
        async def main():
            cluster = SimulatedCluster(Scenario("leases", nodes=(NodeGroup(count=2),)), virtual.VirtualClock(), "1")
            await cluster.start()
            await test(cluster)

        virtual.run(main())

    run.__name__ = test.__name__
    return run


@in_cluster
async def test_in_a_quiet_hour_no_lease_is_written_and_who_reads_them_finds_them_fresh(cluster):
    await cluster.clock.sleep(30)
    before = cluster.plane.server.store.revision
    await cluster.clock.sleep(250)
    assert cluster.plane.server.store.revision == before
    assert cluster.clock.wall() - renewed(cluster, "node-1") < 11
    await cluster.clock.sleep(20)
    read = await cluster.plane.admin.get(LEASES, "node-2", namespace=LEASE_NAMESPACE)
    assert cluster.clock.wall() - parse_seconds(read["spec"]["renewTime"]) < 11


@in_cluster
async def test_a_node_that_is_cut_off_is_unknown_within_a_minute_and_comes_back(cluster):
    await cluster.clock.sleep(1000)
    await cluster.machines["node-1"].turn(PowerSwitch.PARTITIONED)
    cut = cluster.clock.wall()
    assert cut - 11 < renewed(cluster, "node-1") <= cut
    await cluster.clock.sleep(39)
    assert status(cluster, "node-1") == "True"
    await cluster.clock.sleep(22)
    assert (status(cluster, "node-1"), status(cluster, "node-2")) == ("Unknown", "True")
    assert renewed(cluster, "node-1") <= cut
    await cluster.machines["node-1"].turn(PowerSwitch.ON)
    await cluster.clock.sleep(30)
    assert status(cluster, "node-1") == "True"
    assert renewed(cluster, "node-1") > cut + 60


@in_cluster
async def test_the_lease_of_a_kubelet_that_is_killed_is_as_old_as_its_last_renewal(cluster):
    await cluster.clock.sleep(500)
    await cluster.hosts["node-1"].stop_kubelet()
    killed = cluster.clock.wall()
    await cluster.clock.sleep(45)
    assert killed - 11 < renewed(cluster, "node-1") <= killed
    await cluster.clock.sleep(20)
    assert status(cluster, "node-1") == "Unknown"


@in_cluster
async def test_while_the_server_is_down_nothing_is_renewed(cluster):
    await cluster.clock.sleep(500)
    cluster.plane.stop()
    down = cluster.clock.wall()
    await cluster.clock.sleep(30)
    assert renewed(cluster, "node-1") <= down
    cluster.plane.start()
    await cluster.clock.sleep(12)
    assert renewed(cluster, "node-1") > down + 30


@in_cluster
async def test_a_clock_that_goes_back_shows_in_the_lease(cluster):
    await cluster.clock.sleep(500)
    cluster.hosts["node-1"].clock.skew = -300.0
    await cluster.clock.sleep(100)
    assert 290 < cluster.clock.wall() - renewed(cluster, "node-1") < 312


def test_an_actor_tells_when_its_probes_may_answer_otherwise():
    async def main():
        clock = virtual.VirtualClock()
        runtime = ActorRuntime(clock, script=lambda *_: ContainerScript(ready_after=3, healthy_for=10))
        pod = Pod(ObjectMetadata(name="p", namespace="n", uid="u"), PodSpec(containers=[Container(name="c")]))
        await runtime.start_pod(pod)
        heard = []
        for _ in range(2):
            await runtime.wait_for_probe_change("u/c")
            heard.append(clock.boottime())
        asked = asyncio.ensure_future(runtime.wait_for_probe_change("u/c"))
        await clock.sleep(5)
        assert not asked.done()
        runtime.away = True
        await asked
        return [*heard, clock.boottime()]

    assert virtual.run(main()) == [3, 10, 15]
