"""What the scheduler says when a pod fits nowhere (pure): ``framework.FitError`` and what preemption adds to it."""

from collections import Counter
from collections.abc import Collection, Iterable

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.scheduling.scheduling_nodes import NodeRejection

NO_NODES = "no nodes available to schedule pods"

_HOPELESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


def unfit_message(pod: Object, rejections: Collection[NodeRejection]) -> str:
    """Why no node does; one rejection for each node. The lab preempts no pod, whatever its priority."""
    why = _count_reasons(reason for one in rejections for reason in one.reasons)
    if pod["spec"].get("preemptionPolicy") == "Never":
        preemption = "not eligible due to preemptionPolicy=Never."
    else:
        chances = _count_reasons(_NO_VICTIMS if one.others else _HOPELESS for one in rejections)
        preemption = f"0/{len(rejections)} nodes are available: {chances}."
    return f"0/{len(rejections)} nodes are available: {why}. no new claims to deallocate, preemption: {preemption}"


def hopeless_message(nodes: int, why: str) -> str:
    """What makes looking at any node useless. Kubernetes 1.36 ends it with these two words, an internal error's."""
    return f"0/{nodes} nodes are available: {why}. not found"


def _count_reasons(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
