"""The controller's reports on itself, for the audit log, metrics and events; each listener picks its own.

None of them contains a secret.
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
    """The next step of a node; reported when it differs from the previous one."""

    node: str
    uid: str
    step: Step
    mark: OwnerMark | None
    case: Case
    """The decision's input."""
    would: bool = False
    """The node would be failed over now, but its policy is in mode Observe."""


@dataclass(frozen=True, kw_only=True)
class FencingBlocked:
    """A lost node is not fenced, as no node is; no decision is possible, because the API server does not answer."""

    node: str
    uid: str
    limit: Limit
    why: str


@dataclass(frozen=True, kw_only=True)
class FencerAnswered:
    """A fencer answered."""

    node: str
    fact: PowerSeen | InstanceSeen


@dataclass(frozen=True, kw_only=True)
class CallReported:
    """An irreversible call, completed or about to begin (``ended`` None): what allowed it, and its result."""

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
    """Empty if the call succeeded."""
    gone: bool = False
    """The call was not made, because its object is gone: another client removed it."""
    fencer: str = ""
    namespace: str = ""
    name: str = ""
    """The name of the pod or attachment."""
    uid: str = ""
    reason: RemovalReason | None = None


@dataclass(frozen=True, kw_only=True)
class StepExecuted:
    """A step was executed; ``seconds`` is its duration."""

    node: str
    step: Step
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PodsRemoved:
    """Pods of a node were force-deleted in one step: namespace, name and UID of each."""

    node: str
    pods: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, kw_only=True)
class RemovalsRepeated:
    """Pods of a node were force-deleted ``times`` times in a row."""

    node: str
    times: int


@dataclass(frozen=True, kw_only=True)
class NodeSettled:
    """A node needs no close look any more: it is healthy, or gone."""

    node: str


@dataclass(frozen=True, kw_only=True)
class ReconcilerFailed:
    """An internal error interrupted the reconciler of a node; it restarts after a pause."""

    node: str
    error: Exception


@dataclass(frozen=True)
class LeadershipEnded:
    """This controller leads no more: its running work on all nodes is abandoned."""


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
