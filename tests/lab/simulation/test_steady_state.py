"""A cluster that runs already has its pods before its controllers start, those of DaemonSets too."""

from lastcall_lab import virtual
from lastcall_lab.simulation.fleet import PODS_PER_NODE, fleet_scenario
from lastcall_lab.simulation.rehearsal import Rehearsal

NODES = 3


async def begun():
    rehearsal = Rehearsal(fleet_scenario(NODES, at_once=1, lasts=1.0), 1)
    await rehearsal.run()
    made = [one for one in rehearsal.cluster.plane.server.audit.records if one.verb == "create"]
    by = {one.user for one in made if (one.resource, one.subresource) == ("pods", "")}
    return by, rehearsal.cluster.plane.server.store.count("pods")


def test_no_controller_has_to_make_a_pod():
    by, pods = virtual.run(begun())
    assert pods == NODES * PODS_PER_NODE
    assert by == {"kubernetes-admin"}
