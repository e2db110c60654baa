"""Where lastcall is stricter than kube-controller-manager (pure): nothing is forced from a node that may be alive.

Each rule only removes actions that upstream would force.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from lastcall import names
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model import duration
from lastcall.model.snapshot import DatedTaint, Node, SnapshotPod
from lastcall.model.tolerations import Toleration, tolerates

SILENCE = timedelta(seconds=50)
"""A node with a more recent sign of life counts as alive (``--node-monitor-grace-period`` of Kubernetes 1.36)."""
ENABLED = "Enabled"
"""The annotation's value on a pod that means the same as no annotation."""


def force_objection(cluster: SnapshotIndex, name: str, now: datetime) -> str:
    """Why nothing may be forced from a node, as the end of a sentence about it; empty if there is no objection.

    A missing node has only lost its object: the machine may still run. Ready=False or Unknown may come from an
    unhealthy kubelet or a network partition, while containers still write.
    """
    node = cluster.nodes.get(name)
    if node is None:
        return "is missing, and a deleted Node is not a dead machine"
    if node.is_ready:
        return "is Ready"
    sign = cluster.last_sign_of_life(node)
    if sign is None or now - sign >= SILENCE:
        return ""
    ago = (now - sign).total_seconds()
    heard = f"{duration.format_elapsed(ago)} ago" if ago >= 0 else f"{duration.format_elapsed(-ago)} later"
    if -ago > SILENCE.total_seconds():  # more than clocks differ
        heard += " (is --now right?)"
    return f"is not Ready, but was heard of {heard}"


def is_force_disabled(word: str | None) -> bool:
    """Whether a pod's annotation (None: absent) forbids lastcall to force it.

    ``Disabled`` does, and so does an unknown or empty value, which can only be meant as a refusal.
    """
    return word not in (None, ENABLED)


def staying_reason(pod: SnapshotPod, node: Node, now: datetime, *, comparisons: bool = False) -> str:
    """Why a pod stays on an out-of-service node, as the end of a sentence about the node; empty if it does not stay."""
    if is_force_disabled(pod.metadata.annotations.failover):
        return f"is out of service, but the pod may not be forced, by its annotation {names.FAILOVER_ANNOTATION}"
    if tolerates_out_of_service(pod, node, now, comparisons=comparisons):
        return "is out of service, which the pod tolerates"
    return ""


def tolerates_out_of_service(pod: SnapshotPod, node: Node, now: datetime, *, comparisons: bool = False) -> bool:
    """Whether a pod stays on an out-of-service node (KEP-2268 promises that tolerations are respected).

    A toleration with ``tolerationSeconds`` applies until they have passed since the taint was added; if that time is
    unknown, it applies.
    """
    return all(
        _is_tolerated_now(pod.spec.tolerations, taint, now, comparisons=comparisons) for taint in node.out_of_service
    )


def _is_tolerated_now(
    tolerations: Sequence[Toleration], taint: DatedTaint, now: datetime, *, comparisons: bool
) -> bool:
    first = next((one for one in tolerations if tolerates(one, taint, comparisons=comparisons)), None)
    if first is None or first.toleration_seconds is None:
        return first is not None
    since = taint.time_added or now
    return (now - since).total_seconds() < first.toleration_seconds
