"""What administrators do to the policy by which lastcall fences."""

from lastcall.adapters.kube.client import MERGE
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import Object
from lastcall.lab.simulation.cluster import Cluster
from lastcall.lab.simulation.deeds.doing import over
from lastcall.lab.simulation.failover.manifests import POLICY, policy
from lastcall.lab.simulation.scenario import Event
from lastcall.report.words import exactly


async def suspect_after(cluster: Cluster, event: Event) -> None:
    """Sooner or later than before; as the scenario has it when its time is over."""
    await _edit(cluster, event, {"suspectAfter": exactly(event.amount)})


async def observe(cluster: Cluster, event: Event) -> None:
    """Nothing is fenced until its time is over."""
    await _edit(cluster, event, {"mode": "Observe"})


async def _edit(cluster: Cluster, event: Event, spec: Object) -> None:
    if (settings := cluster.scenario.failover) is None:
        return
    cluster.truth.struck(event.verb.value, "the policy")
    await _write(cluster, spec)
    if await over(cluster, event):
        usual = policy(settings)["spec"]
        await _write(cluster, {field: usual[field] for field in spec})


async def _write(cluster: Cluster, spec: Object) -> None:
    await cluster.plane.admin.patch(POLICIES, POLICY, {"spec": spec}, kind=MERGE)
    cluster.failing_over.edited(spec)
