"""Converts a fence's answers to evidence (pure)."""

from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.model.power import InstanceState
from lastcall.ports.fences import FenceAnswer


def power_evidence(
    answer: FenceAnswer, *, boot_id: str, source: str, asked: float, answered: float
) -> PowerSeen | InstanceSeen:
    """``source``: the fence's name; ``asked``: when the call began; ``boot_id``: the Node's boot ID at that time.

    ``answered``: when the answer arrived. For a cloud, the state of the instance is kept; if that is unknown, the
    reason.
    """
    if answer.instance in (None, InstanceState.UNKNOWN):
        return PowerSeen(
            boot_id=boot_id, source=source, power=answer.power, asked=asked, answered=answered, why=answer.why
        )
    return InstanceSeen(boot_id=boot_id, source=source, state=answer.instance, asked=asked, answered=answered)
