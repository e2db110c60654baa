"""What is left on a node, as a Case has it (pure)."""

from collections.abc import Iterable, Mapping

from lastcall import names
from lastcall.failover.deciding.case import AttachmentLeft, PodLeft, Refusal
from lastcall.failover.deciding.remaining import stays
from lastcall.failover.knowing.taints import OURS
from lastcall.failover.upstream import caution
from lastcall.failover.upstream.verdict import FINISHED
from lastcall.model.observed import LiveNode, LivePod, WatchedAttachment
from lastcall.model.snapshot import DatedTaint
from lastcall.model.tolerations import tolerates

MIRROR = "kubernetes.io/config.mirror"
_OURS = DatedTaint(key=OURS.key, value=OURS.value, effect=OURS.effect)


def pod(
    found: LivePod, node: LiveNode, claims: Mapping[tuple[str, str], str], refusals: Mapping[str, Refusal], wall: float
) -> PodLeft:
    """``claims``: the volumes that are attached to the node, by namespace and name of their claims."""
    metadata = found.metadata
    return PodLeft(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        terminating=found.terminating,
        grace=metadata.deletion_grace_period_seconds,
        finished=found.status.phase in FINISHED,
        finalizers=metadata.finalizers,
        tolerates=_tolerates(found, node, wall),
        disabled=caution.spares(metadata.annotations.get(names.FAILOVER_ANNOTATION, "")),
        mirror=MIRROR in metadata.annotations,
        volumes=tuple(claims[claim] for claim in found.claims if claim in claims),
        refused=refusals.get(metadata.uid),
    )


def volumes_stay(found: Iterable[LivePod], node: LiveNode, wall: float) -> bool:
    """Whether a pod that stays uses a claim: which volumes are attached for it has to be known then."""
    return any(one.claims and stays(pod(one, node, {}, {}, wall)) for one in found)


def attachment(found: WatchedAttachment, refusals: Mapping[str, Refusal]) -> AttachmentLeft:
    """As it is known by the watch."""
    metadata = found.metadata
    return AttachmentLeft(
        uid=metadata.uid,
        name=metadata.name,
        volume=found.spec.source.persistent_volume_name,
        deleting=bool(metadata.deletion_timestamp),
        finalizers=metadata.finalizers,
        refused=refusals.get(metadata.uid),
    )


def _tolerates(found: LivePod, node: LiveNode, wall: float) -> bool:
    """Whether it is to stay, by every taint of that key that the node has, or will have.

    A toleration with a time holds until that has passed since the taint was added; if that is not known, it holds.
    """
    there = [taint for taint in node.spec.taints if taint.key == names.OUT_OF_SERVICE]
    return all(_holds(found, taint, wall) for taint in there or [_OURS])


def _holds(found: LivePod, taint: DatedTaint, wall: float) -> bool:
    first = next((one for one in found.spec.tolerations if tolerates(one, taint)), None)
    if first is None or first.toleration_seconds is None:
        return first is not None
    since = taint.time_added.timestamp() if taint.time_added else wall
    return wall - since < first.toleration_seconds
