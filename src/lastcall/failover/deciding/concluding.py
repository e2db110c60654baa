"""What is concluded from what was read of one node, for the Case that its next step is decided by (pure)."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from lastcall import names
from lastcall.failover.deciding.case import NodeNow, Policy
from lastcall.failover.knowing import proofs
from lastcall.failover.knowing.acknowledgement import acknowledged
from lastcall.failover.knowing.facts import Acknowledged, Fact
from lastcall.failover.knowing.lost import room_beside
from lastcall.failover.knowing.owner import OwnerMark
from lastcall.failover.knowing.storage_leases import StorageLeases
from lastcall.failover.limits.knot import Knot
from lastcall.model.fence_policy import FencePolicy, Mode, PowerOn, RemoveTaint
from lastcall.model.observed import LiveNode

_CAUTION = (Mode.OBSERVE, Mode.TAINT_ONLY, Mode.ENFORCE)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How the controller was started."""

    me: str
    """Its identity in the election."""
    mode: Mode = Mode.ENFORCE
    """The most that is done, whatever a policy says."""
    detach: bool = False
    """VolumeAttachments are ours to delete: no attach-detach controller runs."""


def node_now(node: LiveNode) -> NodeNow:
    """Of the Node, what decisions need."""
    return NodeNow(
        boot_id=node.status.node_info.boot_id,
        ready=node.ready.status,
        taints=node.spec.taints,
        mark_text=node.mark,
        room=room_beside(node.metadata.annotations),
    )


def rules(policy: FencePolicy, terms: Terms, fresh: float) -> Policy:
    """What the policy allows, as the controller was started; ``fresh`` is how old a sign of life may be (seconds)."""
    spec = policy.spec
    return Policy(
        name=policy.name,
        mode=min(spec.mode, terms.mode, key=_CAUTION.index),
        suspect_after=proofs.patience(spec.suspect_after_seconds, fresh),
        power_on=spec.power_on is PowerOn.AFTER_FAILOVER,
        remove_by_hand=spec.remove_taint is RemoveTaint.ALWAYS,
        detach=terms.detach,
        fresh=fresh,
    )


def facts(
    knot: Knot, node: LiveNode, more: Sequence[Fact], storage: StorageLeases, nodes: Container[str]
) -> Iterator[Fact]:
    """All that speaks for or against its boot: what was seen, ``more``, what ``nodes`` read on the storage, and a person."""
    yield from knot.seen.facts()
    yield from more
    boot, said = knot.seen.boot, knot.seen.word
    if boot is None:
        return
    if stored := storage.of(knot.seen.name, boot, nodes):
        yield stored
    if said and (word := acknowledged(said[0], boot, seen=said[1], renewed=knot.seen.renewed)):
        yield word
    by_hand = [taint for taint in node.spec.taints if taint.key == names.OUT_OF_SERVICE]
    mark = node_now(node).mark
    if by_hand and knot.seen.tainted is not None and not (isinstance(mark, OwnerMark) and mark.tainted):
        yield Acknowledged(boot_id=boot.id, how=f"the taint {names.OUT_OF_SERVICE}", at=knot.seen.tainted)
