"""What the controller tells of itself: to the audit, to metrics, and to people by events; each listener picks its own.

None of it holds a secret.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import Step
from lastcall.failover.evidence.facts import InstanceSeen, PowerSeen
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.failover.limits.storms import Limit
from lastcall.failover.upstream.controller_manager_rules import RemovalReason


@dataclass(frozen=True, kw_only=True)
class StepDecided:
    """The next step of a node; told when it differs from the one before."""

    node: str
    uid: str
    step: Step
    mark: OwnerMark | None
    case: Case
    """What it was decided from."""
    would: bool = False
    """It would be failed over now, but its policy only observes."""


@dataclass(frozen=True, kw_only=True)
class FencingBlocked:
    """A lost node is not fenced, as no node is; nothing can be decided about it, since the API server does not answer."""

    node: str
    uid: str
    limit: Limit
    why: str


@dataclass(frozen=True, kw_only=True)
class FencerAnswered:
    """A fencer has answered."""

    node: str
    fact: PowerSeen | InstanceSeen


@dataclass(frozen=True, kw_only=True)
class CallReported:
    """A call that cannot be undone, or is about to be made (``ended`` None): what allowed it, and what came of it."""

    verb: str
    """off, on, taint, untaint, delete, force-delete, detach."""
    node: str
    boot_id: str
    policy: str
    why: str
    evidence: tuple[str, ...]
    began: float
    ended: float | None = None
    error: str = ""
    """Empty if it was carried out."""
    gone: bool = False
    """It was not carried out, as what it was about is gone: somebody else has done it."""
    fencer: str = ""
    namespace: str = ""
    name: str = ""
    """Of the pod or attachment."""
    uid: str = ""
    reason: RemovalReason | None = None


@dataclass(frozen=True, kw_only=True)
class StepExecuted:
    """A step was carried out, and took so many seconds."""

    node: str
    step: Step
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PodsRemoved:
    """Pods of a node were removed by force in one step: namespace, name and uid of each."""

    node: str
    pods: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class RemovalsRepeated:
    """Pods were removed by force from a node for so many times in a row."""

    node: str
    times: int


@dataclass(frozen=True, kw_only=True)
class NodeSettled:
    """A node is not looked at closely any more: it is well, or gone."""

    node: str


@dataclass(frozen=True, kw_only=True)
class ReconcilerFailed:
    """A mistake of this program has broken off what it did about a node; it is begun anew after a pause."""

    node: str
    error: Exception


@dataclass(frozen=True)
class LeadershipEnded:
    """This controller leads no more: what it had begun with any node is given up."""


Happening = (
    StepDecided
    | FencingBlocked
    | FencerAnswered
    | CallReported
    | StepExecuted
    | PodsRemoved
    | RemovalsRepeated
    | NodeSettled
    | ReconcilerFailed
    | LeadershipEnded
)
Listener = Callable[[Happening], None]
