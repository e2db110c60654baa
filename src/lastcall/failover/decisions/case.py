"""One node's failover as it stands: all that ``course.decide`` reads, gathered anew before each decision.

Times are seconds on the observer's monotonic clock, unless said otherwise. Nothing in it is a memory of what was decided:
a controller that has just begun gathers the same Case as one that has run for long, but for what was observed and asked.
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
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.tolerations import Taint


@dataclass(frozen=True, kw_only=True)
class NodeSnapshot:
    """The Node as it was read live for this decision."""

    boot_id: str
    """``status.nodeInfo.bootID``; empty if it has never reported one."""
    ready: str
    """The status of its condition Ready: True, False or Unknown; empty without one."""
    taints: tuple[Taint, ...] = ()
    mark_text: str = ""
    """The annotation ``lastcall.dev/failover``."""
    room: int = ROOM
    """Bytes that the pods that it has lost may have in it (``lost.room_beside``)."""

    @property
    def mark(self) -> OwnerMark | UnreadableMark | None:
        """None if there is none."""
        return parse_mark(self.mark_text)


@dataclass(frozen=True, kw_only=True)
class EffectivePolicy:
    """What holds for this node: its FencePolicy, and how the controller was started."""

    name: str
    mode: FailoverMode
    suspect_after: float
    power_on: bool = False
    """Switch on again when nothing is left to force, if lastcall has switched it off."""
    remove_by_hand: bool = False
    """When the node is back a taint out-of-service goes that somebody has set by hand too."""
    detach: bool = False
    """VolumeAttachments are deleted by lastcall, because kube-controller-manager's attach-detach controller is off."""
    fresh: float = 20.0
    """A node that was heard of more recently is awake (``proofs.Terms.fresh``, by the Lease of its kubelet)."""
    apart: float = 1.0
    """Between two answers OFF of one fencer that count as two (``proofs.Terms.apart``)."""
    linger: float = 60.0
    """So long after it is back and Ready a node is waited for to end what is still terminating; then our taint goes."""


@dataclass(frozen=True, kw_only=True)
class FencerCall:
    """One request to a fencer to switch off or on that is over; ``error`` is empty if it was accepted."""

    began: float
    ended: float
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class FencerState:
    """A fencer of the policy, and what it has been asked since this controller observes this boot of the node.

    ``fencing.choose(devices, *, boot_id, apart, now)`` says from these what is asked next.
    """

    name: str
    attempts: int = 2
    """So often it is told to switch off before the next one's turn comes."""
    delay: float = 0.0
    """From when its turn comes until it is told anything for the first time."""
    timeout: float = 30.0
    """For one request."""
    unchecked: bool = False
    """``targetCheck: Disabled``."""
    rival: str = ""
    """Why it is not used: another Node, which is heard of, may be on the same machine, or has the same device; empty if
    there is none."""
    trouble: str = ""
    """Why it cannot be used at all, such as a Secret that is missing; empty if it can."""
    again: float | None = None
    """When one that cannot be used is made anew; None if it can be, or if that is not known."""
    judgement: TargetJudgement | None = None
    """Whether the machine behind it is the node's; None while that has not been asked, or was not answered."""
    judged: float = 0.0
    """When it said so; its address may be another machine's since."""
    unanswered: tuple[FencerCall, ...] = ()
    """Questions for the target that it has not answered, the oldest first."""
    offs: tuple[FencerCall, ...] = ()
    """The oldest first."""
    forgotten: int = 0
    """So many older ones of these two are not there any more: they count as attempts all the same."""
    ons: tuple[FencerCall, ...] = ()
    answers: tuple[PowerSeen | InstanceSeen, ...] = ()
    """Its answers to the question for the status, about this boot, the oldest first."""


@dataclass(frozen=True, kw_only=True)
class ApiRefusal:
    """The API server has refused what was asked for last; not to be asked again before ``again``."""

    why: str
    again: float
    pause: float = 0.0
    """Seconds from the refusal until then."""


@dataclass(frozen=True, kw_only=True)
class CasePod:
    """A pod that is bound to the node, as it was listed live."""

    uid: str
    namespace: str
    name: str
    terminating: bool = False
    grace: int | None = None
    """``metadata.deletionGracePeriodSeconds``: 0 once it was removed by force."""
    finished: bool = False
    """Its phase is Succeeded or Failed: before it is removed by force it is made to be Failed."""
    finalizers: tuple[str, ...] = ()
    tolerates: bool = False
    """It tolerates the taint out-of-service with which the node is, or will be, tainted: it is to stay.

    A time for which it tolerates it begins with the taint: without one it goes, since nothing else brings the taint about.
    """
    patient: bool = False
    """It tolerates that taint for a time that is not over, or has not begun: until then it is not to go."""
    disabled: bool = False
    """Its annotation ``lastcall.dev/failover: Disabled``: lastcall never forces it."""
    mirror: bool = False
    """It stands for a static pod (annotation ``kubernetes.io/config.mirror``), which only its kubelet ends."""
    volumes: tuple[str, ...] = ()
    """The names of the PersistentVolumes that it uses."""
    refused: ApiRefusal | None = None
    lost: LostPod | None = None
    """What is followed when it has gone; None if nothing takes its place."""
    made: str = ""
    """When it was made, by the API server's clock (RFC 3339)."""

    @property
    def key(self) -> str:
        """Namespace and name, for people."""
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
    """All that is known of one node at one moment."""

    name: str
    me: str
    """The identity of this controller in its leader election."""
    leader: str
    """Who leads, by the election's Lease as it was read last."""
    wall: float
    """Seconds since 1970, for what people read."""
    node: NodeSnapshot | None
    """None: there is no Node of this name."""
    policy: EffectivePolicy | None
    """None: no FencePolicy holds for it."""
    observed: float
    """Since when this controller observes the node's kubelet without a break."""
    heard: float | None = None
    """When its kubelet was last heard of since then: its Lease was seen to be renewed, or a status that it wrote to change.
    What was there at the first look is no sign: nothing is concluded from old times. A live read counts before the
    decision that is made with it."""
    leads_since: float = float("-inf")
    """Since when this controller leads without a break. What others have asked fences before is not known to it; none of
    their orders is given any more, but a device may still carry one out."""
    no_policy: str = ""
    """Why no policy holds, if that is known (``policies.Choice.why``)."""
    boot: Boot | None = None
    """The boot that the Node has now; None if it has none."""
    verdict: BootVerdict | None = None
    """Of that boot (``evidence.assess``)."""
    held_until: float | None = None
    """Until when its own last word holds fencing back (``evidence.held_until``)."""
    gone: frozenset[str] = frozenset()
    """The pods that this boot has ended and unmounted, as it said itself (``evidence.gone``)."""
    storm: LimitAnswer | Callable[[], LimitAnswer] = field(
        default_factory=lambda: LimitAnswer(allowed=True, why="no limit stands against it")
    )
    """Whether it may be fenced now (``storms.may_fence``), or what says so: it is only called where a rule asks, since the
    limits look at all nodes. ``limit_answer`` is the answer."""
    devices: tuple[FencerState, ...] = ()
    """The policy's fencers, in its order."""
    pods: tuple[CasePod, ...] = ()
    """All that are bound to the node, listed live. They are needed as soon as the node is silent for as long as its policy
    says, or marked, or proved dead: a node on which nothing is left to fail over is not fenced."""
    attachments: tuple[CaseAttachment, ...] = ()
    """All of the node."""
    forced: ForcedRemovals = NEVER
    """How often this controller has removed pods by force after the boot was proved to be over."""
    replacements: Mapping[str, bool] = field(default_factory=dict)
    """What is to take the place of pods that the node has lost, by name, and whether it is Ready; for people."""
    removed: tuple[LostPod, ...] = ()
    """The pods that this controller has removed by force, also before there was a mark that could name them."""
    back_since: float | None = None
    """Since when the Node has been seen Ready with another boot than its mark's, without a break; None if it is not."""

    @cached_property
    def limit_answer(self) -> LimitAnswer:
        """``storm``, as it was answered when a rule has first asked."""
        return self.storm() if callable(self.storm) else self.storm

    @property
    def mark(self) -> OwnerMark | None:
        """Ours; None if there is none, or none that can be read."""
        found = self.node.mark if self.node else None
        return found if isinstance(found, OwnerMark) else None

    @property
    def quiet_since(self) -> float:
        """Since when nothing was heard of the kubelet, as far as this controller can know."""
        return self.observed if self.heard is None else max(self.observed, self.heard)

    @property
    def fence_calls_known_since(self) -> float:
        """Since when all that the fences were asked about this node is known."""
        return max(self.observed, self.leads_since)

    @property
    def is_boot_dead(self) -> bool:
        """Whether the boot that the Node has is proved to be over."""
        return self.verdict is not None and self.verdict.state is BootState.DEAD
