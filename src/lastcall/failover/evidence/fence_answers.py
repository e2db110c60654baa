"""What a fence has answered, as evidence (pure)."""

from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.model.power import InstanceState
from lastcall.ports.fences import FenceAnswer


def power_evidence(
    answer: FenceAnswer, *, boot_id: str, source: str, asked: float, answered: float
) -> PowerSeen | InstanceSeen:
    """``source`` is the fence's name, ``asked`` when the question was put, ``boot_id`` what the Node showed then.

    ``answered`` is when the answer had come. Of a cloud the instance's state is kept; where even that is not known, why.
    """
    if answer.instance in (None, InstanceState.UNKNOWN):
        return PowerSeen(
            boot_id=boot_id, source=source, power=answer.power, asked=asked, answered=answered, why=answer.why
        )
    return InstanceSeen(boot_id=boot_id, source=source, state=answer.instance, asked=asked, answered=answered)
