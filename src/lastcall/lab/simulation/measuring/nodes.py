"""How machines were over time, from what was done to them (pure)."""

from collections.abc import Iterable, Sequence

from lastcall.lab.simulation.outcome import NodeState
from lastcall.lab.simulation.spans import Between
from lastcall.lab.simulation.truth import Power

State = tuple[Between, NodeState]

UP = (NodeState.ON, NodeState.CUT_OFF, NodeState.NO_STORAGE, NodeState.HUNG)
"""The states in which a kubelet would keep pods running."""

_FAULTS = {
    "partition": NodeState.CUT_OFF,
    "storage": NodeState.NO_STORAGE,
    "hang": NodeState.HUNG,
    "mended": NodeState.ON,
}


def states(powers: Iterable[Power], boot: float, within: Between) -> Sequence[State]:
    """Of one machine, without a gap; ``boot``: seconds from power on to the kubelet's start, but for the first time."""
    changes: list[tuple[float, NodeState]] = []
    fault = NodeState.ON
    for one in powers:
        fault = _FAULTS.get(one.what, NodeState.ON if one.what == "off" else fault)
        if found := _next(one, boot, fault, changes):
            if changes and changes[-1][0] > one.at:  # it did not come to the kubelet's start
                changes.pop()
            changes += found
    return _spans(changes, within)


def _next(
    one: Power, boot: float, fault: NodeState, before: Sequence[tuple[float, NodeState]]
) -> Sequence[tuple[float, NodeState]]:
    """What it is from then on. A fault changes nothing of a machine that goes down."""
    if one.what == "on" and before:
        return (one.at, NodeState.STARTING), (one.at + boot, NodeState.ON)
    if one.what in ("on", "cancelled") or (one.what in _FAULTS and before[-1][1] is not NodeState.GOING_DOWN):
        return ((one.at, fault),)
    if one.what == "off":
        return ((one.at, NodeState.OFF),)
    if one.what in ("pressed", "pressed without a lock"):
        return ((one.at, NodeState.GOING_DOWN),)
    return ()


def up(found: Iterable[State]) -> list[Between]:
    """When it was so that pods are wanted there."""
    return [span for span, state in found if state in UP]


def _spans(changes: Sequence[tuple[float, NodeState]], within: Between) -> Sequence[State]:
    """Those of no length are left out, and those that follow each other with the same state are one."""
    found: list[State] = []
    ends = [at for at, _ in changes[1:]] + [within.end]
    for (at, state), until in zip(changes, ends, strict=True):
        begin, end = max(at, within.begin), min(until, within.end)
        if begin < end and found and found[-1][1] is state:
            found[-1] = (Between(found[-1][0].begin, end), state)
        elif begin < end:
            found.append((Between(begin, end), state))
    return found
