"""Controllers that hear late of what has happened, also of what they have done themselves."""

from random import Random

from support.lab_cluster import LabCluster
from support.lab_workloads import told, workload

from lastcall.adapters.kube.resources import PODS, REPLICA_SETS
from lastcall.aio import Group
from lastcall.lab import virtual
from lastcall.lab.controllers.cluster import ClusterClient
from lastcall.lab.controllers.replicasets import ReplicaSets
from lastcall.lab.controllers.runner import Runner


class Late(ClusterClient):
    """Every batch of changes comes a second late."""

    def __init__(self, cluster):
        super().__init__(cluster.client, cluster.clock, Random(1))
        self.clock = cluster.clock

    async def follow(self, *what):
        async for batch in super().follow(*what):
            await self.clock.sleep(1.0)
            yield batch


def test_nothing_is_done_twice_because_the_first_time_is_not_seen_yet():
    async def main():
        cluster, group = LabCluster(virtual.VirtualClock(), []), Group()
        await cluster.begin()
        group.start(Runner(Late(cluster), cluster.clock, [ReplicaSets()]).run(), "controllers")
        await cluster.settle(5)
        await cluster.create(REPLICA_SETS, workload(replicas=3))
        await cluster.settle(20)
        assert cluster.count(PODS) == len(told(cluster, "SuccessfulCreate")) == 3
        await group.cancel()

    virtual.run(main())
