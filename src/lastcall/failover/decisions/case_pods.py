"""The pods and volumes on a node, as a Case holds them (pure)."""

from collections.abc import Iterable, Mapping

from lastcall import names
from lastcall.failover.decisions.case import ApiRefusal, CaseAttachment, CasePod
from lastcall.failover.decisions.remaining import stay_reason
from lastcall.failover.evidence import lost_pods
from lastcall.failover.evidence.out_of_service_taint import OURS
from lastcall.failover.upstream import caution
from lastcall.failover.upstream.controller_manager_rules import FINISHED
from lastcall.model.observed import FailoverPod, LiveNode, WatchedAttachment
from lastcall.model.snapshot import DatedTaint
from lastcall.model.tolerations import FOR_EVER, tolerates

_OURS = DatedTaint(key=OURS.key, value=OURS.value, effect=OURS.effect)


def case_pod(
    found: FailoverPod,
    node: LiveNode,
    claims: Mapping[tuple[str, str], str],
    refusals: Mapping[str, ApiRefusal],
    wall: float,
) -> CasePod:
    """Builds a CasePod; ``claims`` maps claims (namespace, name) to the volumes attached to the node for them."""
    metadata = found.metadata
    tolerated, patient = _tolerance(found, node, wall)
    return CasePod(
        uid=metadata.uid,
        namespace=metadata.namespace,
        name=metadata.name,
        terminating=found.is_terminating,
        grace=metadata.deletion_grace_period_seconds,
        finished=found.status.phase in FINISHED,
        finalizers=metadata.finalizers,
        tolerates=tolerated,
        patient=patient,
        disabled=caution.is_force_disabled(metadata.annotations.get(names.FAILOVER_ANNOTATION)),
        mirror=names.MIRROR_ANNOTATION in metadata.annotations,
        volumes=tuple(claims[claim] for claim in found.claim_keys if claim in claims),
        refused=refusals.get(metadata.uid),
        lost=lost_pods.lost_pod(found, seen=node.metadata.last_written),
        made=metadata.creation_timestamp,
    )


def has_staying_volumes(found: Iterable[FailoverPod], node: LiveNode, wall: float) -> bool:
    """Whether a staying pod uses a claim. Its attached volumes must then be known."""
    return any(one.claim_keys and stay_reason(case_pod(one, node, {}, {}, wall)) for one in found)


def case_attachment(found: WatchedAttachment, refusals: Mapping[str, ApiRefusal]) -> CaseAttachment:
    """Builds a CaseAttachment from the watched object."""
    metadata = found.metadata
    return CaseAttachment(
        uid=metadata.uid,
        name=metadata.name,
        volume=found.spec.source.persistent_volume_name,
        deleting=bool(metadata.deletion_timestamp),
        finalizers=metadata.finalizers,
        refused=refusals.get(metadata.uid),
    )


def _tolerance(found: FailoverPod, node: LiveNode, wall: float) -> tuple[bool, bool]:
    """``CasePod.tolerates`` and ``patient``, for each out-of-service taint that the node has or will have."""
    there = [taint for taint in node.spec.taints if taint.key == names.OUT_OF_SERVICE]
    rest = min(
        (_remaining_toleration(found, taint, wall) for taint in there), default=_toleration_seconds(found, _OURS)
    )
    return rest > 0 if there else rest == FOR_EVER, 0 < rest < FOR_EVER


def _remaining_toleration(found: FailoverPod, taint: DatedTaint, wall: float) -> float:
    """Seconds from now for which the pod tolerates a taint; for ever if the taint's age is unknown."""
    time = _toleration_seconds(found, taint)
    if time <= 0 or taint.time_added is None:
        return FOR_EVER if time > 0 else 0.0
    return time - (wall - taint.time_added.timestamp())


def _toleration_seconds(found: FailoverPod, taint: DatedTaint) -> float:
    """Seconds for which the pod tolerates a taint in total; 0: not at all."""
    first = next((one for one in found.spec.tolerations if tolerates(one, taint)), None)
    if first is None:
        return 0.0
    return FOR_EVER if first.toleration_seconds is None else float(first.toleration_seconds)
