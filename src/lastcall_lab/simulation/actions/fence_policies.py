"""What administrators do to the policy by which lastcall fences."""

from lastcall.adapters.kube.client import MERGE
from lastcall.adapters.kube.failover_cluster import POLICIES
from lastcall.adapters.kube.resources import Object
from lastcall.report.formatting import format_exact_duration
from lastcall_lab.simulation.actions.base import wait_for_end
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.failover.manifests import POLICY, fence_policy
from lastcall_lab.simulation.scenario import ScenarioEvent


async def set_suspect_after(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Sooner or later than before; as the scenario has it when its time is over."""
    await _edit_policy(cluster, event, {"suspectAfter": format_exact_duration(event.amount)})


async def set_observe_mode(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """Nothing is fenced until its time is over."""
    await _edit_policy(cluster, event, {"mode": "Observe"})


async def _edit_policy(cluster: SimulatedCluster, event: ScenarioEvent, spec: Object) -> None:
    if (settings := cluster.scenario.failover) is None:
        return
    cluster.truth.record_fault(event.verb.value, "the policy")
    await _write_policy(cluster, spec)
    if await wait_for_end(cluster, event):
        usual = fence_policy(settings)["spec"]
        await _write_policy(cluster, {field: usual[field] for field in spec})


async def _write_policy(cluster: SimulatedCluster, spec: Object) -> None:
    await cluster.plane.admin.patch(POLICIES, POLICY, {"spec": spec}, kind=MERGE)
    cluster.failing_over.note_policy_edit(spec)
