"""Derives the facts of a Case from what was read of one node (pure)."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from lastcall import names
from lastcall.failover.decisions.case import EffectivePolicy, NodeSnapshot
from lastcall.failover.evidence import proofs
from lastcall.failover.evidence.acknowledgement import acknowledgement_fact
from lastcall.failover.evidence.facts import DeathAcknowledged, Fact
from lastcall.failover.evidence.lost_pods import room_beside
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.evidence.storage_leases import StorageLeaseReports
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.model.drain_mark import read_drain_mark
from lastcall.model.fence_policy import FailoverMode, FencePolicy, PowerOn, RemoveTaint
from lastcall.model.observed import LiveNode

_CAUTION = (FailoverMode.OBSERVE, FailoverMode.TAINT_ONLY, FailoverMode.ENFORCE)


@dataclass(frozen=True, kw_only=True)
class ControllerTerms:
    """The options of this controller."""

    me: str
    """Its identity in the leader election."""
    mode: FailoverMode = FailoverMode.ENFORCE
    """The strongest mode that applies, whatever a policy says."""
    detach: bool = False
    """lastcall deletes VolumeAttachments: no attach-detach controller runs."""


def node_snapshot(node: LiveNode) -> NodeSnapshot:
    """The fields of the Node that decisions need."""
    return NodeSnapshot(
        boot_id=node.status.node_info.boot_id,
        ready=node.ready_condition.status,
        taints=node.spec.taints,
        mark_text=node.mark_text,
        drain=read_drain_mark(node.metadata.annotations),
        room=room_beside(node.metadata.annotations),
    )


def effective_policy(policy: FencePolicy, terms: ControllerTerms, fresh: float) -> EffectivePolicy:
    """The policy combined with the controller's options; ``fresh``: for how long a sign of life counts (seconds)."""
    spec = policy.spec
    return EffectivePolicy(
        name=policy.name,
        mode=min(spec.mode, terms.mode, key=_CAUTION.index),
        suspect_after=proofs.suspect_seconds(spec.suspect_after_seconds, fresh),
        power_on=spec.power_on is PowerOn.AFTER_FAILOVER,
        remove_by_hand=spec.remove_taint is RemoveTaint.ALWAYS,
        detach=terms.detach,
        fresh=fresh,
    )


def collect_facts(
    knot: TrackedNode, node: LiveNode, more: Sequence[Fact], storage: StorageLeaseReports, nodes: Container[str]
) -> Iterator[Fact]:
    """All evidence about the node's boot: observations, ``more``, storage reads by ``nodes``, and acknowledgements."""
    yield from knot.seen.all_facts()
    yield from more
    boot, said = knot.seen.boot, knot.seen.word
    if boot is None:
        return
    if stored := storage.evidence_about(knot.seen.name, boot, nodes):
        yield stored
    if said and (word := acknowledgement_fact(said[0], boot, seen=said[1], renewed=knot.seen.renewed)):
        yield word
    by_hand = [taint for taint in node.spec.taints if taint.key == names.OUT_OF_SERVICE]
    mark = node_snapshot(node).mark
    if by_hand and knot.seen.tainted is not None and not (isinstance(mark, OwnerMark) and mark.tainted):
        yield DeathAcknowledged(boot_id=boot.id, how=f"the taint {names.OUT_OF_SERVICE}", at=knot.seen.tainted)
