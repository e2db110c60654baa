"""What tells external load balancers that a node leaves (pure): a label and a taint, set by option and taken back if ours.

The label has the service controller take the node out of all load balancers (``service_controller.go``), as Karpenter
does before it drains. The taint has kube-proxy's ``/healthz`` answer 503, so that load balancers that probe it send no
new connections, while established ones stay (KEP-3836). Cluster-autoscaler sets the same taint, with its time as value.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from lastcall.model.snapshot import DatedTaint
from lastcall.model.tolerations import NO_SCHEDULE
from lastcall.names import BALANCER_EXCLUSION, BALANCER_MARKS, TO_BE_DELETED


class BalancerMark(Enum):
    """What a drain may set; the values are those of its option and of the annotation."""

    LABEL = "label"
    TAINT = "taint"


class MarkedNode(NamedTuple):
    """The parts of a Node that decide; its taints keep their times, since a merge patch replaces the list."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Sequence[DatedTaint]
    resource_version: str


def mark_patch(node: MarkedNode, wanted: Collection[BalancerMark], *, at: int) -> Mapping[str, Any] | None:
    """The merge patch that sets the wanted marks, and an annotation that says which are ours; None if nothing changes.

    A mark of somebody else stays, and does not become ours. ``at`` is the time in seconds since 1970. The patch has the
    resourceVersion, because a merge patch replaces the list of taints: a Conflict asks for another look.
    """
    missing = [one for one in BalancerMark if one in wanted and not _has_mark(node, one)]
    if not missing:
        return None
    ours = [one for one in BalancerMark if one in missing or one in owned_marks(node.annotations)]
    metadata: dict[str, Any] = {
        "resourceVersion": node.resource_version,
        "annotations": {BALANCER_MARKS: ",".join(one.value for one in ours)},
    }
    patch: dict[str, Any] = {"metadata": metadata}
    if BalancerMark.LABEL in missing:
        metadata["labels"] = {BALANCER_EXCLUSION: "true"}
    if BalancerMark.TAINT in missing:
        # NoSchedule, as cluster-autoscaler's: the node is cordoned anyway, and no pod is evicted by it.
        taint = DatedTaint(key=TO_BE_DELETED, value=str(at), effect=NO_SCHEDULE)
        patch["spec"] = {"taints": [*node.taints, taint]}
    return patch


def unmark_patch(node: MarkedNode) -> Mapping[str, Any] | None:
    """The merge patch that takes back what the annotation says is ours; None if it says nothing.

    The annotation decides, because it is written and removed together with the marks.
    """
    if BALANCER_MARKS not in node.annotations:
        return None
    ours = owned_marks(node.annotations)
    metadata: dict[str, Any] = {
        "resourceVersion": node.resource_version,
        "annotations": {BALANCER_MARKS: None},
    }
    patch: dict[str, Any] = {"metadata": metadata}
    if BalancerMark.LABEL in ours and BALANCER_EXCLUSION in node.labels:
        metadata["labels"] = {BALANCER_EXCLUSION: None}
    if BalancerMark.TAINT in ours and _has_mark(node, BalancerMark.TAINT):
        patch["spec"] = {"taints": [one for one in node.taints if one.key != TO_BE_DELETED]}
    return patch


def owned_marks(annotations: Mapping[str, str]) -> Sequence[BalancerMark]:
    """The marks that are ours by the annotation; what it says besides is ignored."""
    said = annotations.get(BALANCER_MARKS, "").split(",")
    return [one for one in BalancerMark if one.value in said]


def _has_mark(node: MarkedNode, mark: BalancerMark) -> bool:
    """The label counts with any value, as for the service controller."""
    if mark is BalancerMark.LABEL:
        return BALANCER_EXCLUSION in node.labels
    return any(one.key == TO_BE_DELETED for one in node.taints)
