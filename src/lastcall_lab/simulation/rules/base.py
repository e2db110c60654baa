"""What is judged, and what comes out: the promises, a run's truth, and violations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from lastcall.model.pods import Pod
from lastcall.model.shutdown import PhasePlan
from lastcall_lab.simulation.rules.arithmetic import DEFAULT_GRACE
from lastcall_lab.simulation.scenario import FailoverSettings, ScenarioWorkload
from lastcall_lab.simulation.truth import (
    BudgetState,
    ContainerEvent,
    CordonState,
    FenceOrder,
    JobFailures,
    LeaseState,
    MachineEvent,
    NodeObjectState,
    Noted,
    PodState,
    RemovalRequest,
    TerminationRequest,
)
from lastcall_lab.volumes.volume_events import VolumeEvent

NEVER = math.inf

TRAFFIC_SECONDS = 2.0
"""The longest wait for Services where the configuration says nothing (docs/reference/configuration.md)."""


class Invariant(Enum):
    """The promises."""

    ONE_IDENTITY = "one live pod per StatefulSet identity"
    FORGOTTEN = "no pod is forgotten while it lives"
    ONE_WRITER = "no volume written by two"
    NO_DETACH_IN_USE = "no detach from a machine that may write"
    WRITES = "no acknowledged write is lost"
    UNASKED = "no pod is ended that nobody wants ended"
    PRE_STOP = "preStop honoured while time is left"
    KILL = "no SIGKILL before its time"
    ORDER = "no phase before the one below it is over"
    OVERRUN = "no pod has more than its grace, or than its phase"
    NO_START = "no pod started on a node that goes down"
    ONE_AGENT = "one agent on a machine"
    LOCK_LOST = "the lock is held when the machine goes down"
    LOCK_KEPT = "the lock is released when the pods have ended"
    TARGET = "only a machine that is lost is switched off"
    LIMITS = "no more machines are fenced than the policy allows"
    ENDS = "every operation ends, or says what it waits for"
    OTHERS = "nothing of others is changed"
    KUBELET_BACK = "the kubelet is always started again"
    UNDONE = "a node says of a shutdown what is so, and nothing afterwards"
    TRAFFIC = "no SIGTERM while Services send traffic, within the wait for that"
    BUDGET = "no drain takes more pods than a budget allows"
    ONE_OWNER = "no drain removes a pod of a node that it does not own"
    UNPLANNED = "no drain asks for a pod that it has not chosen, or by its name alone"
    CORDONED = "no drain removes a pod of a node that is not cordoned"
    STOPPED = "no drain asks for a pod after its time, if it is to stop then"
    GUARDED = "no drain removes a guarded pod before its application is ready, or its policy lets it go"
    FOREIGN_POD = "no drain removes a pod of other nodes, or of a DaemonSet"
    CORDON = "no drain takes back or claims the cordon of others"
    JOB = "no Job counts a pod as failed that a shutdown has ended, if its policy ignores that"


@dataclass(frozen=True)
class InvariantViolation:
    """When which promise was broken, and how, in words."""

    at: float
    rule: Invariant
    what: str


@dataclass(frozen=True)
class DrainTold:
    """What a drain was told: its nodes, and from when on it may delete past budgets at the earliest.

    ``stops_after``: so many seconds after it has the nodes it may ask for nothing any more. ``lacks_leases``: it was
    refused a right to Leases; then it drains without them.
    """

    nodes: Sequence[str]
    deletes_from: float = NEVER
    stops_after: float = NEVER
    lacks_leases: bool = False


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run's truth.

    ``plan``: the phases that somebody ends the pods of a machine in when it goes down, ascending; None: nobody does.
    ``hooks``: how many seconds the preStop hook of a pod takes, by uid. ``asked``: who is to end, by the API server's
    word. ``lost`` are sentences about acknowledged writes, ``left`` about what had not come to its end, ``changed``
    about what others had set and is gone.
    """

    happenings: Sequence[ContainerEvent]
    powers: Sequence[MachineEvent]
    records: Sequence[VolumeEvent]
    pods: Mapping[str, Pod]
    end: float
    plan: Sequence[PhasePlan] | None = ()
    hooks: Mapping[str, float] = field(default_factory=dict)
    asked: Sequence[TerminationRequest] = ()
    lost: Sequence[str] = ()
    left: Sequence[str] = ()
    changed: Sequence[str] = ()
    orders: Sequence[FenceOrder] = ()
    """To BMCs."""
    failover: FailoverSettings | None = None
    set_back: float = NEVER
    """When objects were first what they had been before: etcd was restored, or a program began with an old list."""
    old_lists: Sequence[Noted[float]] = ()
    """Which program (``who``) has begun with a list of which time (``what``)."""
    bounded: bool = True
    """Whether grace and phase also bound how long an end takes: lastcall promises that, a kubelet does not."""
    beside: bool = False
    """Whether kubelet and agent are two programs, so that the agent writes what follows; else it is empty."""
    node_objects: Sequence[Noted[NodeObjectState]] = ()
    cordons: Sequence[Noted[bool]] = ()
    endpoints: Sequence[Noted[bool]] = ()
    job_failures: Sequence[Noted[JobFailures]] = ()
    clear_network: Sequence[Noted[bool]] = ()
    drains: Mapping[str, DrainTold] = field(default_factory=dict)
    """By the names of their processes; if there are none, the next six are empty."""
    workloads: Sequence[ScenarioWorkload] = ()
    pod_states: Sequence[Noted[PodState]] = ()
    cordon_states: Sequence[Noted[CordonState]] = ()
    leases: Sequence[Noted[LeaseState]] = ()
    budget_states: Sequence[Noted[BudgetState]] = ()
    removal_requests: Sequence[Noted[RemovalRequest]] = ()
    traffic: float = TRAFFIC_SECONDS
    """The longest wait for Services, in seconds (``traffic.limitSeconds``)."""

    @property
    def requested_seconds(self) -> float:
        """What the phases ask for together, in seconds."""
        return float(sum(phase.seconds for phase in self.plan or ()))

    def grace_seconds(self, uid: str) -> float:
        """What a pod asks for, in seconds."""
        grace = self.pods[uid].spec.termination_grace_period_seconds
        return DEFAULT_GRACE if grace is None else float(grace)

    def pod_name(self, uid: str) -> str:
        """Namespace and name."""
        return self.pods[uid].key


SOON = 0.05
"""What takes no time takes no more seconds than this."""

MARGIN = 0.1
"""So many seconds before a phase is over SIGKILL goes out (``ActorRuntime``'s ``kill_seconds``)."""
