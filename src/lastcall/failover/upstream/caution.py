"""Where lastcall is stricter than kube-controller-manager (pure): nothing is forced from a node that may be alive.

Each rule only ever takes away from what upstream would force.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from lastcall import names
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model import duration
from lastcall.model.snapshot import DatedTaint, Node, SnapshotPod
from lastcall.model.tolerations import Toleration, tolerates

SILENCE = timedelta(seconds=50)
"""A node that was heard of more recently counts as alive (``--node-monitor-grace-period`` of Kubernetes 1.36)."""
ENABLED = "Enabled"
"""The word of the annotation on a pod that says nothing else than that it is not there."""


def force_objection(cluster: SnapshotIndex, name: str, now: datetime) -> str:
    """Why nothing may be forced from a node, as the end of a sentence about it; empty if nothing speaks against it.

    A node that is missing has only lost its object: the machine may run on. A condition Ready of False or Unknown may
    come from a kubelet that has trouble, or from a network that is cut, while containers go on writing.
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
    """Whether a pod's annotation, None if it has none, keeps lastcall from ever forcing it.

    ``Disabled`` does, and so does a word that nobody knows, or an empty one, which can only have been meant so.
    """
    return word not in (None, ENABLED)


def staying_reason(pod: SnapshotPod, node: Node, now: datetime, *, comparisons: bool = False) -> str:
    """Why a pod stays on a node that is out of service, as the end of a sentence about the node; empty if it does not."""
    if is_force_disabled(pod.metadata.annotations.failover):
        return f"is out of service, but the pod may not be forced, by its annotation {names.FAILOVER_ANNOTATION}"
    if tolerates_out_of_service(pod, node, now, comparisons=comparisons):
        return "is out of service, which the pod tolerates"
    return ""


def tolerates_out_of_service(pod: SnapshotPod, node: Node, now: datetime, *, comparisons: bool = False) -> bool:
    """Whether a pod is to stay on a node that is out of service (KEP-2268 promises that this is read).

    A toleration with a time holds until that time has passed since the taint was added; if that is not known, it holds.
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
