"""What is left on a node, as a Case has it (pure)."""

from collections.abc import Iterable, Mapping

from lastcall import names
from lastcall.failover.deciding.case import AttachmentLeft, PodLeft, Refusal
from lastcall.failover.deciding.remaining import stays
from lastcall.failover.knowing import lost
from lastcall.failover.knowing.taints import OURS
from lastcall.failover.upstream import caution
from lastcall.failover.upstream.verdict import FINISHED
from lastcall.model.observed import LiveNode, LivePod, WatchedAttachment
from lastcall.model.snapshot import DatedTaint
from lastcall.model.tolerations import FOR_EVER, tolerates

MIRROR = "kubernetes.io/config.mirror"
_OURS = DatedTaint(key=OURS.key, value=OURS.value, effect=OURS.effect)


def pod(
    found: LivePod, node: LiveNode, claims: Mapping[tuple[str, str], str], refusals: Mapping[str, Refusal], wall: float
) -> PodLeft:
    """``claims``: the volumes that are attached to the node, by namespace and name of their claims."""
    metadata = found.metadata
    tolerated, patient = _tolerance(found, node, wall)
    return PodLeft(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        terminating=found.terminating,
        grace=metadata.deletion_grace_period_seconds,
        finished=found.status.phase in FINISHED,
        finalizers=metadata.finalizers,
        tolerates=tolerated,
        patient=patient,
        disabled=caution.spares(metadata.annotations.get(names.FAILOVER_ANNOTATION)),
        mirror=MIRROR in metadata.annotations,
        volumes=tuple(claims[claim] for claim in found.claims if claim in claims),
        refused=refusals.get(metadata.uid),
        lost=lost.of(found, seen=node.metadata.written),
        made=metadata.creation_timestamp,
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


def _tolerance(found: LivePod, node: LiveNode, wall: float) -> tuple[bool, bool]:
    """``PodLeft.tolerates`` and ``patient``, by every taint of that key that the node has, or will have."""
    there = [taint for taint in node.spec.taints if taint.key == names.OUT_OF_SERVICE]
    rest = min((_rest(found, taint, wall) for taint in there), default=_time(found, _OURS))
    return rest > 0 if there else rest == FOR_EVER, 0 < rest < FOR_EVER


def _rest(found: LivePod, taint: DatedTaint, wall: float) -> float:
    """How long it tolerates a taint from now on: for ever, if it is not known since when the taint is there."""
    time = _time(found, taint)
    if time <= 0 or taint.time_added is None:
        return FOR_EVER if time > 0 else 0.0
    return time - (wall - taint.time_added.timestamp())


def _time(found: LivePod, taint: DatedTaint) -> float:
    """How long it tolerates a taint in all; 0: not at all."""
    first = next((one for one in found.spec.tolerations if tolerates(one, taint)), None)
    if first is None:
        return 0.0
    return FOR_EVER if first.toleration_seconds is None else float(first.toleration_seconds)
