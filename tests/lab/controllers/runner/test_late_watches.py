"""Controllers that hear late of what has happened, also of what they have done themselves."""

from random import Random

from support.lab.controller_cluster import LabCluster
from support.lab.workloads import told, workload

from lastcall.adapters.kube.resources import PODS, REPLICA_SETS
from lastcall.aio import OrderedTaskGroup
from lastcall_lab import virtual
from lastcall_lab.controllers.runner.api_client import ClusterApiClient
from lastcall_lab.controllers.runner.controller_runner import ControllerRunner
from lastcall_lab.controllers.workloads.replica_sets import ReplicaSetController

BUSY = {"name": "main", "image": "busy"}


class Late(ClusterApiClient):
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
        cluster, group = LabCluster(virtual.VirtualClock(), []), OrderedTaskGroup()
        await cluster.begin()
        group.start(ControllerRunner(Late(cluster), cluster.clock, [ReplicaSetController()]).run(), "controllers")
        await cluster.settle(5)
        await cluster.create(REPLICA_SETS, workload(replicas=3))
        await cluster.settle(20)
        assert cluster.count(PODS) == len(told(cluster, "SuccessfulCreate")) == 3
        await group.cancel()

    virtual.run(main())


def test_what_a_new_list_does_not_show_any_more_is_known_to_be_gone_by_then():
    """Who waits for the view to show his own deletion waits for its revision, which only the list tells."""

    async def main():
        cluster = LabCluster(virtual.VirtualClock(), [])
        await cluster.begin()
        made = await cluster.create(PODS, {"metadata": {"name": "db-0"}, "spec": {"containers": [BUSY]}})
        batches = ClusterApiClient(cluster.client, cluster.clock, Random(1)).follow("pods")
        assert [one.now["metadata"]["name"] for one in (await anext(batches)).changes] == ["db-0"]
        await cluster.delete(PODS, "db-0", grace=0)
        gone = cluster.server.store.revision
        cluster.server.store.compact(gone)
        batch = await anext(batches)
        assert [one.before["metadata"]["uid"] for one in batch.changes] == [made["metadata"]["uid"]]
        assert (await anext(batches)).revision >= gone
        await batches.aclose()

    virtual.run(main())
