"""What drains have left behind: additional pods, and themselves."""

from collections.abc import Iterator

from lastcall.adapters.kube.resources import DEPLOYMENTS
from lastcall_lab.simulation.cluster import SimulatedCluster


def describe_leftovers(cluster: SimulatedCluster) -> Iterator[str]:
    """Sentences. A drain ends by its time at the latest.

    What a run leaves that was killed, its next run puts back, or says that it does not.
    """
    drains = cluster.drains
    yield from (f"{one.name} is under way, and its time has long been over" for one in drains.under_way if one.is_late)
    if not drains.all or drains.under_way or any(one.has_given_up or one.has_left_surges for one in drains.all):
        return
    wanted = {(one.namespace, one.name): one.replicas for one in cluster.scenario.workloads}
    for one in cluster.list_objects(DEPLOYMENTS):
        place, found = (one["metadata"]["namespace"], one["metadata"]["name"]), one["spec"]["replicas"]
        if found != wanted.get(place, found):
            yield f"deployment {'/'.join(place)} has {found} replicas, and {wanted[place]} are wanted"
