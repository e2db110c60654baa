"""A rolling reboot, as careful administrators do it: the next machines when the last ones are back and nothing is missing."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lastcall.aio import Group
from lastcall.lab.simulation.cluster import LOOK_SECONDS, Cluster
from lastcall.lab.simulation.deeds.machines import reboot
from lastcall.lab.simulation.scenario import Event


class Facts(NamedTuple):
    """How far it is. ``before`` tells for each machine whose turn it is in which boot it was; ``ready`` is as it is now."""

    left: Sequence[str]
    before: Mapping[str, str]
    ready: Mapping[str, str]
    whole: bool


def next_to_reboot(facts: Facts, at_once: int) -> Sequence[str]:
    """The next ones; none while one of the last is not ready again in another boot, or a workload has too few pods (pure)."""
    back = all(facts.ready.get(name, boot) != boot for name, boot in facts.before.items())
    return facts.left[:at_once] if back and facts.whole else ()


async def roll(cluster: Cluster, event: Event) -> None:
    """All machines of the event that are on, ``amount`` of them at a time, at least one."""
    left = [name for name in cluster.chosen(event.nodes) if cluster.machines[name].powered]
    before, group = _boots(cluster, ()), Group()
    at_once = max(1, int(event.amount))
    try:
        while left:
            facts = Facts(left, before, cluster.standing.boots(before), cluster.standing.whole)
            if turn := next_to_reboot(facts, at_once):
                before, left = _boots(cluster, turn), left[len(turn) :]
                for name in turn:
                    group.start(reboot(cluster, event, name), f"reboot {name}")
            await cluster.clock.sleep(LOOK_SECONDS)
        await group.join()
    finally:
        await group.cancel()


def _boots(cluster: Cluster, names: Collection[str]) -> Mapping[str, str]:
    """Empty for those that are not ready."""
    return {**dict.fromkeys(names, ""), **cluster.standing.boots(names)}
