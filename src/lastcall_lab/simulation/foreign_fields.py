"""Fields that other programs set on nodes, and whether lastcall changed them."""

from collections.abc import Sequence

from lastcall.adapters.kube.client import MERGE
from lastcall.adapters.kube.resources import NODES
from lastcall_lab.simulation.cluster import SimulatedCluster

_KEY = "example.com/theirs"
_TAINT = {"key": _KEY, "value": "kept", "effect": "PreferNoSchedule"}


async def plant_foreign_fields(cluster: SimulatedCluster) -> None:
    """A taint, a label and an annotation on every node, as other programs have them."""
    for name in cluster.machines:
        node = await cluster.plane.admin.get(NODES, name)
        body = {
            "metadata": {"labels": {_KEY: "kept"}, "annotations": {_KEY: "kept"}},
            "spec": {"taints": [*(node["spec"].get("taints") or ()), _TAINT]},
        }
        await cluster.plane.admin.patch(NODES, name, body, kind=MERGE)


def changed_fields(cluster: SimulatedCluster) -> Sequence[str]:
    """The fields that changed or disappeared, as sentences."""
    found = []
    for node in cluster.list_objects(NODES):
        name, metadata = node["metadata"]["name"], node["metadata"]
        if (node["spec"].get("taints") or []).count(_TAINT) != 1:
            found.append(f"the taint {_KEY} of {name} is not as it was")
        found += [
            f"the {what} {_KEY} of {name} is not as it was"
            for what, place in (("label", "labels"), ("annotation", "annotations"))
            if (metadata.get(place) or {}).get(_KEY) != "kept"
        ]
    return found
