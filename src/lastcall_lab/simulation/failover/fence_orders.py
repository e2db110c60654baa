"""The facts at the moment of each fence order, so that it can be judged afterwards (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall_lab.simulation.truth import FenceOrder

OVERLOOKED = 30.0
"""Seconds for which nobody is blamed that he has not noticed yet that a machine is silent."""


@dataclass(frozen=True, kw_only=True)
class MachineAtOrder:
    """``silence`` lasts now; ``lately`` is the longest of those that last, or that were over a moment ago.

    ``ready``: the boot of its node, if that is ready; ``held``: for how long more it has said that it goes down.
    """

    powered: bool
    boot_id: str
    silence: float
    lately: float
    ready: str = ""
    domain: str = ""
    held: float = 0.0
    emptied: bool = False
    """No pod that somebody would replace is bound to it any more."""


def describe_order(
    at: float,
    node: str,
    hit: str,
    *,
    machines: Mapping[str, MachineAtOrder],
    suspect_after: float,
    before: Sequence[FenceOrder],
) -> FenceOrder:
    """``before``: the orders until now."""
    this, others = machines[hit], {name: one for name, one in machines.items() if name != hit}
    told = {one.hit: one.boot_id for one in before}
    away = [name for name, one in others.items() if name in told and _is_away(one, told[name], suspect_after)]
    lost = [name for name, one in others.items() if one.silence > suspect_after + OVERLOOKED]
    return FenceOrder(
        at=at,
        node=node,
        hit=hit,
        powered=this.powered,
        boot_id=this.boot_id,
        silence=this.lately,
        away=tuple(sorted(name for name in away if _shares_domain(machines[name], this, told[name]))),
        healthy=len(others.keys() - set(away) - set(lost)),
        every=len(machines),
        held=this.held,
    )


def _shares_domain(machine: MachineAtOrder, this: MachineAtOrder, boot_id: str) -> bool:
    """Whether a machine that is away counts for the failure domain of another one.

    Machines without a domain have no such limit. One that is failed over leaves its domain no worse than it is: the
    boot that was told to switch off is over, though the next one may have begun, and nothing is left to be moved.
    """
    failed_over = machine.emptied and (not machine.powered or machine.boot_id != boot_id)
    return bool(this.domain) and machine.domain == this.domain and not failed_over


def _is_away(machine: MachineAtOrder, boot_id: str, suspect_after: float) -> bool:
    """It was told to switch off, and has not come back: its node is not ready, or ready as it was before, and silent."""
    return machine.silence >= suspect_after and machine.ready in ("", boot_id)
