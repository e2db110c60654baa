"""How machines were over time, from what was done to them (pure)."""

from collections.abc import Iterable, Sequence

from lastcall_lab.simulation.outcome import MachineState
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.simulation.truth import MachineEvent

State = tuple[TimeSpan, MachineState]

UP = (MachineState.ON, MachineState.CUT_OFF, MachineState.NO_STORAGE, MachineState.HUNG)
"""The states in which a kubelet would keep pods running."""

_FAULTS = {
    "partition": MachineState.CUT_OFF,
    "storage": MachineState.NO_STORAGE,
    "hang": MachineState.HUNG,
    "mended": MachineState.ON,
}


def machine_states(powers: Iterable[MachineEvent], boot: float, within: TimeSpan) -> Sequence[State]:
    """Of one machine, without a gap; ``boot``: seconds from power on to the kubelet's start, but for the first time."""
    changes: list[tuple[float, MachineState]] = []
    fault = MachineState.ON
    for one in powers:
        fault = _FAULTS.get(one.what, MachineState.ON if one.what == "off" else fault)
        if found := _states_after(one, boot, fault, changes):
            if changes and changes[-1][0] > one.at:  # it did not come to the kubelet's start
                changes.pop()
            changes += found
    return _merge_states(changes, within)


def _states_after(
    one: MachineEvent, boot: float, fault: MachineState, before: Sequence[tuple[float, MachineState]]
) -> Sequence[tuple[float, MachineState]]:
    """What it is from then on. A fault changes nothing of a machine that goes down."""
    if one.what == "on" and before:
        return (one.at, MachineState.STARTING), (one.at + boot, MachineState.ON)
    if one.what in ("on", "cancelled") or (one.what in _FAULTS and before[-1][1] is not MachineState.GOING_DOWN):
        return ((one.at, fault),)
    if one.what == "off":
        return ((one.at, MachineState.OFF),)
    if one.what in ("pressed", "pressed without a lock"):
        return ((one.at, MachineState.GOING_DOWN),)
    return ()


def up_spans(found: Iterable[State]) -> list[TimeSpan]:
    """When it was so that pods are wanted there."""
    return [span for span, state in found if state in UP]


def _merge_states(changes: Sequence[tuple[float, MachineState]], within: TimeSpan) -> Sequence[State]:
    """Those of no length are left out, and those that follow each other with the same state are one."""
    found: list[State] = []
    ends = [at for at, _ in changes[1:]] + [within.end]
    for (at, state), until in zip(changes, ends, strict=True):
        begin, end = max(at, within.begin), min(until, within.end)
        if begin < end and found and found[-1][1] is state:
            found[-1] = (TimeSpan(found[-1][0].begin, end), state)
        elif begin < end:
            found.append((TimeSpan(begin, end), state))
    return found
