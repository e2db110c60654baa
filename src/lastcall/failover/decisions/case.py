"""The state of one node's failover: all facts that ``decision_table.decide`` reads, collected before each decision.

Times are seconds on the observer's monotonic clock, unless said otherwise. A Case holds no memory of earlier decisions:
a new leader builds the same Case as a long-running one, except for its own observations and fencer calls.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lastcall.failover.decisions.removal_backoff import NEVER, ForcedRemovals
from lastcall.failover.evidence.assessment import BootState, BootVerdict
from lastcall.failover.evidence.facts import Boot, InstanceSeen, PowerSeen
from lastcall.failover.evidence.lost_pods import ROOM, LostPod
from lastcall.failover.evidence.owner_mark import OwnerMark, UnreadableMark, parse_mark
from lastcall.failover.limits.fence_targets import TargetJudgement
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.model.drain_mark import DrainMark
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.tolerations import Taint


@dataclass(frozen=True, kw_only=True)
class NodeSnapshot:
    """The Node, read live for this decision."""

    boot_id: str
    """``status.nodeInfo.bootID``; empty if the node never reported one."""
    ready: str
    """The status of its Ready condition: True, False or Unknown; empty without one."""
    taints: tuple[Taint, ...] = ()
    mark_text: str = ""
    """The annotation ``lastcall.dev/failover``."""
    drain: DrainMark | None = None
    """The mark of ``lastcall drain``, which leaves a node under failover; None without one."""
    room: int = ROOM
    """Bytes available in the mark for lost pods (``lost_pods.room_beside``)."""

    @property
    def mark(self) -> OwnerMark | UnreadableMark | None:
        """The parsed mark; None without one."""
        return parse_mark(self.mark_text)


@dataclass(frozen=True, kw_only=True)
class EffectivePolicy:
    """The policy as it applies to this node: its FencePolicy combined with the controller's options."""

    name: str
    mode: FailoverMode
    suspect_after: float
    power_on: bool = False
    """Power the machine on again when nothing is left to force, if lastcall powered it off."""
    remove_by_hand: bool = False
    """When the node is back, also remove an out-of-service taint that a person set."""
    detach: bool = False
    """lastcall deletes VolumeAttachments, because kube-controller-manager's attach-detach controller is disabled."""
    fresh: float = 20.0
    """A node with a more recent sign of life is awake (``proofs.ProofTerms.fresh``, from its kubelet's Lease)."""
    apart: float = 1.0
    """Seconds between two OFF answers of one fencer that count as two (``proofs.ProofTerms.apart``)."""
    linger: float = 60.0
    """Seconds that a node which is back and Ready gets to end its terminating pods, before our taint is removed."""


@dataclass(frozen=True, kw_only=True)
class FencerCall:
    """A completed request to a fencer to power off or on; ``error`` is empty if the fencer accepted it."""

    began: float
    ended: float
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class FencerState:
    """A fencer of the policy, with the calls made to it since this controller observes this boot of the node.

    ``fencer_choice.choose_action`` selects the next call from these.
    """

    name: str
    attempts: int = 2
    """The number of attempts to power off before the next fencer's turn."""
    delay: float = 0.0
    """Seconds from the start of its turn to its first attempt."""
    timeout: float = 30.0
    """The limit of one request, in seconds."""
    unchecked: bool = False
    """``targetCheck: Disabled``."""
    rival: str = ""
    """Why it is not used: another live Node may be on the same machine, or has the same device; empty if none is."""
    trouble: str = ""
    """Why it cannot be used at all, such as a missing Secret; empty if it can."""
    again: float | None = None
    """When an unusable fencer is created again; None if it is usable, or if the time is unknown."""
    judgement: TargetJudgement | None = None
    """Whether the machine behind it is the node's; None while that is not read or not answered."""
    judged: float = 0.0
    """When it was judged; its address may belong to another machine since."""
    unanswered: tuple[FencerCall, ...] = ()
    """Target reads that it did not answer, the oldest first."""
    offs: tuple[FencerCall, ...] = ()
    """Orders to power off, the oldest first."""
    forgotten: int = 0
    """The number of older entries of these two lists that were dropped; they still count as attempts."""
    ons: tuple[FencerCall, ...] = ()
    answers: tuple[PowerSeen | InstanceSeen, ...] = ()
    """Its reports of the power state during this boot, the oldest first."""


@dataclass(frozen=True, kw_only=True)
class ApiRefusal:
    """The last request was refused by the API server; do not repeat it before ``again``."""

    why: str
    again: float
    pause: float = 0.0
    """Seconds from the refusal to ``again``."""


@dataclass(frozen=True, kw_only=True)
class CasePod:
    """A pod bound to the node, from a live list."""

    uid: str
    namespace: str
    name: str
    terminating: bool = False
    grace: int | None = None
    """``metadata.deletionGracePeriodSeconds``: 0 after a forced deletion."""
    finished: bool = False
    """Its phase is Succeeded or Failed. A pod in another phase is set to Failed before it is force-deleted."""
    finalizers: tuple[str, ...] = ()
    tolerates: bool = False
    """It tolerates the out-of-service taint that the node has or will have, so it stays.

    A toleration with ``tolerationSeconds`` counts only once the taint exists: without the taint its time would never
    begin.
    """
    patient: bool = False
    """It tolerates that taint for a time that is not over or has not begun; until then it must not be removed."""
    disabled: bool = False
    """It has the annotation ``lastcall.dev/failover: Disabled``: lastcall never forces it."""
    mirror: bool = False
    """It mirrors a static pod (annotation ``kubernetes.io/config.mirror``), which only its kubelet can end."""
    volumes: tuple[str, ...] = ()
    """The names of its PersistentVolumes."""
    refused: ApiRefusal | None = None
    lost: LostPod | None = None
    """The record by which its replacement is found later; None if no replacement is expected."""
    made: str = ""
    """Its creation time on the API server's clock (RFC 3339)."""

    @property
    def key(self) -> str:
        """Namespace and name, for display."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class CaseAttachment:
    """A VolumeAttachment of the node."""

    uid: str
    name: str
    volume: str
    """The name of its PersistentVolume; empty if it has none."""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    refused: ApiRefusal | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """All facts about one node at one moment."""

    name: str
    me: str
    """This controller's identity in the leader election."""
    leader: str
    """The current leader, from the election's Lease as last read."""
    wall: float
    """Seconds since 1970, for output only."""
    node: NodeSnapshot | None
    """None: no Node of this name exists."""
    policy: EffectivePolicy | None
    """None: no FencePolicy applies to the node."""
    observed: float
    """The time since which this controller observes the node's kubelet without interruption."""
    heard: float | None = None
    """The last sign of life of the kubelet since then: a renewal of its Lease, or a change of a status that it writes.
    State found at the first look is no sign: old timestamps prove nothing. A live read counts before the decision that
    it is made for.
    """
    leads_since: float = float("-inf")
    """The time since which this controller leads without interruption. It does not know the fencer calls of earlier
    leaders. They give no more orders, but a device may still carry one out.
    """
    no_policy: str = ""
    """Why no policy applies, if known (``policy_choice.PolicyChoice.why``)."""
    boot: Boot | None = None
    """The Node's current boot; None if it reported none."""
    verdict: BootVerdict | None = None
    """The verdict on that boot (``assessment.assess``)."""
    held_until: float | None = None
    """Until when the node's own shutdown notice holds back fencing (``assessment.fencing_held_until``)."""
    gone: frozenset[str] = frozenset()
    """The pods that this boot reported as ended and unmounted (``assessment.ended_pod_uids``)."""
    storm: LimitAnswer | Callable[[], LimitAnswer] = field(
        default_factory=lambda: LimitAnswer(allowed=True, why="no limit stands against it")
    )
    """Whether the limits allow fencing now (``storms.may_fence``), or a function that answers it.

    It is called only if a rule asks, because the limits look at all nodes. ``limit_answer`` is the answer.
    """
    devices: tuple[FencerState, ...] = ()
    """The policy's fencers, in its order."""
    pods: tuple[CasePod, ...] = ()
    """All pods bound to the node, from a live list. Needed once the node is silent for as long as its policy says,
    marked, or proved dead: a node without anything to fail over is not fenced.
    """
    attachments: tuple[CaseAttachment, ...] = ()
    """All VolumeAttachments of the node."""
    forced: ForcedRemovals = NEVER
    """How often this controller force-deleted pods after the boot was proved to be over."""
    replacements: Mapping[str, bool] = field(default_factory=dict)
    """The expected replacements of lost pods by name, and whether each is Ready; for output only."""
    removed: tuple[LostPod, ...] = ()
    """The pods that this controller force-deleted, including those before a mark could record them."""
    back_since: float | None = None
    """Since when the Node is seen Ready with another boot than its mark's, without interruption; else None."""

    @cached_property
    def limit_answer(self) -> LimitAnswer:
        """The result of ``storm``, computed when a rule first asks."""
        return self.storm() if callable(self.storm) else self.storm

    @property
    def mark(self) -> OwnerMark | None:
        """The mark that lastcall set; None if there is none or it cannot be read."""
        found = self.node.mark if self.node else None
        return found if isinstance(found, OwnerMark) else None

    @property
    def quiet_since(self) -> float:
        """The time since which this controller has seen no sign of life of the kubelet."""
        return self.observed if self.heard is None else max(self.observed, self.heard)

    @property
    def fence_calls_known_since(self) -> float:
        """The time since which this controller knows all fencer calls about this node."""
        return max(self.observed, self.leads_since)

    @property
    def is_boot_dead(self) -> bool:
        """Whether the Node's current boot is proved to be over."""
        return self.verdict is not None and self.verdict.state is BootState.DEAD
