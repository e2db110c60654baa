"""The scheduler's messages for a pod that fits no node (pure): ``framework.FitError`` and preemption's addition."""

from collections import Counter
from collections.abc import Collection, Iterable

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.scheduling.scheduling_nodes import NodeRejection

NO_NODES = "no nodes available to schedule pods"

_HOPELESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def unfit_message(pod: Object, rejections: Collection[NodeRejection]) -> str:
    """Why no node fits, from one rejection per node. The lab never preempts a pod, whatever its priority."""
    why = _count_reasons(reason for one in rejections for reason in one.reasons)
    if pod["spec"].get("preemptionPolicy") == "Never":
        preemption = "not eligible due to preemptionPolicy=Never."
    else:
        chances = _count_reasons(_NO_VICTIMS if one.others else _HOPELESS for one in rejections)
        preemption = f"0/{len(rejections)} nodes are available: {chances}."
    return f"0/{len(rejections)} nodes are available: {why}. no new claims to deallocate, preemption: {preemption}"


def hopeless_message(nodes: int, why: str) -> str:
    """Why no node needs to be checked. Kubernetes 1.36 appends these two words of an internal error."""
    return f"0/{nodes} nodes are available: {why}. not found"


def _count_reasons(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
