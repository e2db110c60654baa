"""A node that takes two minutes to shut down, whose agent renews its Lease while the kubelet is stopped."""

from random import Random

import pytest
from support.agents.face_cluster import FakeProxies
from support.agents.virtual_parts import RecordingNode
from support.failover.virtual_cluster import failing_over

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_objects import LEASE_NAMESPACE, KubeNodeObjects
from lastcall.adapters.kube.pod_endpoints import KubePodEndpoints
from lastcall.adapters.kube.pod_owners import KubePodOwners
from lastcall.adapters.kube.resources import LEASES, PODS
from lastcall.graceful.cluster import node_changes
from lastcall.graceful.cluster.cluster_node_face import SIGTERMS_FIRST_SECONDS, ClusterNodeFace
from lastcall.model.traffic import TrafficSettings
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.control_plane.identities import kubelet_identity
from lastcall_lab.controllers.objects.pods import condition_of
from lastcall_lab.fakes.node_volumes import FakeNodeVolumes

SHUTDOWN = 120.0


class Agent:
    """The agent's face on one node; its kubelet stops when the shutdown begins."""

    def __init__(self, world, node):
        self.world, self.node = world, node
        clock = world.cluster.clock
        client = Client(InProcessTransport(world.cluster.server, kubelet_identity(node)))
        self.objects = KubeNodeObjects(lambda: client, node, clock)
        self.face = ClusterNodeFace(
            RecordingNode(clock),
            self.objects,
            KubePodEndpoints(lambda: client, clock, Random(1)),
            FakeProxies(),
            KubePodOwners(lambda: client),
            volumes=FakeNodeVolumes(clock),
            find_pod=lambda _: None,
            boot_id=f"boot-{node}-1",
            traffic=TrafficSettings(),
            clock=clock,
            observe_withdrawal=lambda _: None,
        )

    async def begin(self):
        self.world.nodes.silent.add(self.node)
        await self.face.begin_shutdown(self.world.now + SHUTDOWN)

    async def power_off(self):
        self.world.nodes.pull(self.node)
        await self.face.close()

    def ready(self):
        return condition_of(self.world.node(self.node), "Ready")["status"]


async def watch_shutdown(world, agent):
    """The values of Ready that were seen until the end of the shutdown."""
    seen, end = {}, world.now + SHUTDOWN
    while world.now < end:
        seen[agent.ready()] = None
        await world.cluster.clock.sleep(1)
    return list(seen)


@failing_over
async def test_the_node_is_neither_unknown_nor_fenced_although_its_record_is_missing(world):
    """Without a NodeShutdown only the Lease says that the node lives."""
    world.start()
    node = world.place()
    agent = Agent(world, node)
    await agent.begin()
    await world.cluster.clock.sleep(2 * SIGTERMS_FIRST_SECONDS)  # until the Node is announced
    assert await watch_shutdown(world, agent) == ["False"]
    assert world.verbs() == []
    assert world.mark(node) is None
    assert world.fences[node].asked == []
    await agent.face.close()


@failing_over
async def test_it_would_be_unknown_and_fenced_without_the_renewals(world):
    """What the renewals are for: the same shutdown, and nobody renews."""
    world.start()
    node = world.place()
    agent = Agent(world, node)
    agent.objects.patch_lease = renew_nothing
    await agent.begin()
    seen = await watch_shutdown(world, agent)
    assert "Unknown" in seen
    assert world.verbs("off")
    await agent.face.close()


async def renew_nothing(patch):
    """A Lease that cannot be written."""


@failing_over
async def test_a_machine_that_dies_in_its_shutdown_is_failed_over_in_spite_of_its_last_renewals(world):
    world.start()
    node = world.place()
    agent = Agent(world, node)
    await world.says(node, seconds=SHUTDOWN)
    await agent.begin()
    await world.cluster.clock.sleep(60)
    await agent.power_off()
    died = world.now
    await world.until(lambda: world.place() not in (node, None), 600)
    assert "force-delete" in world.verbs()
    assert world.now > died


@pytest.mark.parametrize("late", [2.0, 30.0])
def test_a_renewal_that_arrives_after_the_proof_delays_the_failover_and_does_not_prevent_it(late):
    @failing_over
    async def scene(world):
        world.start()
        node = world.place()
        agent = Agent(world, node)
        await agent.begin()
        await world.cluster.clock.sleep(60)
        renewal = node_changes.lease_patch(world.cluster.clock.wall())
        await agent.power_off()
        await world.until(lambda: "off" in [what for what, _ in world.fences[node].asked], 120)
        await world.cluster.clock.sleep(late)
        await world.cluster.patch(LEASES, node, renewal, namespace=LEASE_NAMESPACE)
        await world.until(lambda: world.place() not in (node, None), 600)
        old = [one for one in world.cluster.all(PODS) if one["spec"].get("nodeName") == node]
        assert not [one for one in old if one["metadata"]["name"] == "db-0"]

    scene()
