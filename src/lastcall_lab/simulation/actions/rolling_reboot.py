"""A careful rolling reboot: the next machines follow when the last ones are ready and no pod is missing."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lastcall.aio import OrderedTaskGroup
from lastcall_lab.simulation.actions.machines import reboot
from lastcall_lab.simulation.cluster import SimulatedCluster
from lastcall_lab.simulation.environment import LOOK_SECONDS
from lastcall_lab.simulation.scenario import ScenarioEvent


class RollingState(NamedTuple):
    """How far it is. ``before`` tells for each machine whose turn it is in which boot it was; ``ready`` is as it is now."""

    left: Sequence[str]
    before: Mapping[str, str]
    ready: Mapping[str, str]
    whole: bool


def nodes_to_reboot(facts: RollingState, at_once: int) -> Sequence[str]:
    """The next ones; none while one of the last is not ready again in another boot, or a workload has too few pods (pure)."""
    back = all(facts.ready.get(name, boot) != boot for name, boot in facts.before.items())
    return facts.left[:at_once] if back and facts.whole else ()


async def reboot_in_turn(cluster: SimulatedCluster, event: ScenarioEvent) -> None:
    """All machines of the event that are on, ``amount`` of them at a time, at least one."""
    left = [name for name in cluster.select_machines(event.nodes) if cluster.machines[name].is_powered]
    before, group = _ready_boots(cluster, ()), OrderedTaskGroup()
    at_once = max(1, int(event.amount))
    try:
        while left:
            facts = RollingState(left, before, cluster.standing.ready_boots(before), cluster.standing.is_complete)
            if turn := nodes_to_reboot(facts, at_once):
                before, left = _ready_boots(cluster, turn), left[len(turn) :]
                for name in turn:
                    group.start(reboot(cluster, event, name), f"reboot {name}")
            await cluster.clock.sleep(LOOK_SECONDS)
        await group.join()
    finally:
        await group.cancel()


def _ready_boots(cluster: SimulatedCluster, names: Collection[str]) -> Mapping[str, str]:
    """Empty for those that are not ready."""
    return {**dict.fromkeys(names, ""), **cluster.standing.ready_boots(names)}
