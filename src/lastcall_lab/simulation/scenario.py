"""What is rehearsed: machines, workloads, what happens when, and what must hold (pure facts; times are seconds)."""

import math
from enum import Enum
from typing import Any

import msgspec

from lastcall.graceful.config import AgentConfig
from lastcall.manifests.guard_webhooks import FAIL
from lastcall.model.base import Facts
from lastcall_lab.controllers.runner.rate_limit import KUBERNETES


class Verb(Enum):
    """What can happen. The value is how it is said; NODES, FOR and the like are told by the rest of an ``ScenarioEvent``."""

    REBOOT = "reboot"
    """The button is pressed; when the machine is off it stays so for ``lasts``, and is switched on."""
    SHUT_DOWN = "shut down"
    CANCEL = "cancel the shutdown of"
    POWER_CUT = "cut the power of"
    HANG = "hang"
    PARTITION = "cut off from the control plane"
    NO_STORAGE = "cut off from the storage"
    SPOT = "reclaim"
    """The button is pressed, and ``lasts`` later the power is cut, whatever runs."""
    ROLL = "reboot one after the other"
    """Each when the one before is ready again and every workload is whole; ``amount`` at a time."""
    DRAIN = "drain"
    """Cordoned, and its pods evicted until none is left, as ``kubectl drain`` does; ``lasts``: then uncordoned."""
    LASTCALL_DRAIN = "drain with lastcall"
    """``lastcall drain`` of all its nodes in one run; the last fields are its options."""
    KILL_DRAIN = "kill the drains"
    """Every run of ``lastcall drain``; the same command begins ``lasts`` later. An ``amount`` as of the next ones."""
    TAKE_RIGHT = "take a right from the drains"
    """The API server refuses every run of ``lastcall drain`` what needs ``right``, for ``lasts``."""
    KILL_GUARD = "kill the guard"
    """The replica of lastcall's guard that leads; started again after ``lasts``. An ``amount`` as of the others."""
    STOP_GUARDS = "stop the guards"
    """All replicas."""
    APPS_STALL = "stall the applications"
    """Of all guarded workloads, as the next ones: nothing that they prepare goes on."""
    APPS_SILENT = "silence the applications"
    APPS_SLOW = "delay the applications"
    """Each answer takes ``amount`` seconds."""
    APPS_FLAP = "have the applications flap"
    """They stall and go on by turns."""
    APPS_FORGET = "have the applications forget"
    """What they have prepared does not stand any more."""
    APPS_LIE = "have the applications lie"
    """They say that they are ready to lose a pod, and are not."""
    CORDON = "cordon"
    """``kubectl cordon``, and ``kubectl uncordon`` after ``lasts``."""
    UNCORDON = "uncordon"
    """``kubectl uncordon``."""
    OUT_OF_SERVICE = "taint out of service"
    KILL_AGENT = "kill the agent of"
    """SIGKILL for kubelet and agent, which are one process here; started again after ``lasts``.

    With an ``amount`` it dies after so many more steps of its own, between two awaits.
    """
    KILL_KUBELET = "kill the kubelet of"
    """SIGKILL; its unit starts it again 10 s later. Only beside an agent of its own process."""
    START_KUBELET = "start the kubelet of"
    """Somebody starts the kubelet's unit, whatever has been stopped for a reason. The same."""
    KILL_HOLDER = "kill the lock holder of"
    RESTART_LOGIND = "restart logind of"
    LOSE_BUS = "stop D-Bus of"
    RUNTIME_AWAY = "stop the runtime of"
    DISK_FULL = "fill the disk of"
    CLOCK_STEP = "step the clock of"
    """By ``amount`` seconds."""
    CLOCK_DRIFT = "let the clock drift of"
    """Its wall clock goes wrong little by little, by ``amount`` seconds in all, and is set right at the end."""
    DISK_SLOW = "slow the disk of"
    """Each write takes ``amount`` seconds until it is safe."""
    API_DOWN = "stop the API server"
    API_RESTART = "restart the API server"
    API_COMPACT = "compact the history"
    API_ERRORS = "refuse requests"
    """A part ``amount`` of them, with 409, 429, 500 or a broken connection."""
    REQUESTS_LOST = "lose requests"
    """All of them, on their way to the API server; watches that are open go on."""
    ANSWERS_LOST = "lose answers"
    """All of them, and all watch events: what is asked for is done, and who asked hears nothing."""
    STALE_LISTS = "serve old lists"
    """By a cache that is ``amount`` seconds behind, as one of several API servers may be."""
    STALE_STARTS = "serve old lists to what starts"
    """The same for a program's first lists in its life alone.

    A kubelet or a kube-controller-manager of Kubernetes before 1.35 begins so: it asks any API server for any state
    (``resourceVersion=0``), and later for none that is older than what it knows (kubernetes issue 59848).
    """
    ETCD_RESTORE = "restore etcd"
    """From a backup that is made now, ``lasts`` later; then all controllers of the control plane are started again."""
    API_SLOW = "delay answers"
    """By up to ``amount`` seconds."""
    API_TORN = "tear answers"
    """A part ``amount`` of them breaks off in the middle; what was asked for is done."""
    WATCH_LATE = "delay watches"
    """Each event by up to ``amount`` seconds."""
    WATCH_DOUBLE = "repeat watch events"
    WATCH_TORN = "tear watches"
    """A part ``amount`` of what they bring breaks off in the middle."""
    WATCH_LOST = "lose watch events"
    """A part ``amount`` of them never comes, and the watch stays open. At its end the API server starts again."""
    WATCH_SILENT = "silence watches"
    """They stay open, and nothing comes through any more."""
    KILL_CONTROLLERS = "kill the controllers"
    DATAGRAMS_DOUBLE = "repeat datagrams"
    """Of the watchdogs' peers: a part ``amount`` of them arrives twice, and they overtake each other."""
    PAUSE_CONTROLLERS = "freeze the controllers"
    """SIGSTOP, and SIGCONT after ``lasts``: they go on with what they knew."""
    PAUSE_FAILOVER = "freeze the failover controller"
    """The same for the one of lastcall's that leads."""
    CLOCK_FAILOVER = "step the clock of the failover controllers"
    """By ``amount`` seconds; the wall clock alone."""
    POLICY_SUSPECT = "have the policy suspect sooner or later"
    """After ``amount`` seconds; an administrator edits it, and takes it back."""
    POLICY_OBSERVE = "have the policy observe"
    """An administrator sets ``mode: Observe``: nothing is fenced any more."""
    KILL_FAILOVER = "kill the failover controller"
    """The one that leads; started again after ``lasts``. With an ``amount`` it dies after so many more of its steps."""
    STOP_FAILOVER = "stop the failover controllers"
    """All of them."""
    CUT_FAILOVER = "cut off the failover controller"
    """The one that leads, from the API server."""
    BMC_SAYS_ON = "have the BMC say that it is on"
    BMC_SAYS_OFF = "have the BMC say that it is off"
    BMC_DEAF = "have the BMC answer nobody"
    BMC_STUCK = "have the BMC switch nothing"
    BMC_LATE = "delay the BMC"
    """By ``amount`` seconds."""
    BMC_WIRED = "wire the BMC"
    """To the machine ``other``, of which it tells, and which it switches."""


class ScenarioEvent(Facts, frozen=True):
    """Something that happens at ``at``.

    ``nodes`` are selectors: a machine's name, ``all nodes``, ``half of the nodes``, or ``LABEL VALUE`` as in ``rack b``.
    ``lasts`` is when it is undone, ``None`` for never; ``amount`` means what its verb says.
    """

    at: float
    verb: Verb
    nodes: tuple[str, ...] = ()
    lasts: float | None = None
    amount: float = 0.0
    other: str = ""
    """The machine that a BMC is wired to."""
    on_timeout: str = ""
    """What ``lastcall drain`` does at the end of its time (``amount``); empty: it stops."""
    right: str = ""
    """VERB RESOURCE, as a role has it: ``create pods/eviction``."""
    surge: bool = False
    """Whether it gives workloads one more pod where a budget lets none go (``--surge``)."""


CAPACITY = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class NodeGroup(Facts, frozen=True):
    """Machines ``NAME-1`` to ``NAME-COUNT``. ``domains`` maps a label to values that are dealt out in turn.

    One that is not ``numbered`` is a single machine, called NAME.
    """

    name: str = "node"
    count: int = 3
    domains: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    capacity: dict[str, str] = msgspec.field(default_factory=lambda: dict(CAPACITY))
    control_plane: bool = False
    address: str = ""
    """Its InternalIP, if it is a single machine that has one already; the next two likewise."""
    architecture: str = "amd64"
    numbered: bool = True
    delay_limit: float = 0.0
    """What a drop-in of others limits logind's delay to, in seconds, whatever the agent asks for; 0: there is none."""

    @property
    def node_names(self) -> list[str]:
        """Of its machines, in order."""
        return [f"{self.name}-{number + 1}" for number in range(self.count)] if self.numbered else [self.name]


class ScenarioWorkloadKind(Enum):
    """Of workloads."""

    DEPLOYMENT = "Deployment"
    STATEFUL_SET = "StatefulSet"
    DAEMON_SET = "DaemonSet"
    JOB = "Job"
    REPLICA_SET = "ReplicaSet"
    """One that no Deployment owns: only in a cluster that was recorded, as the next one."""
    POD = "Pod"
    """Pods that nobody replaces, and those that a kubelet has from a file."""


class LeaderSettings(Facts, frozen=True):
    """One of the pods leads. It hands over within ``handover`` if its preStop hook runs; else it takes an election."""

    handover: float = 1.0
    election: float = 10.0


class ScenarioWorkload(Facts, frozen=True):
    """Pods of one kind, and what their only container does."""

    kind: ScenarioWorkloadKind
    name: str
    namespace: str = "default"
    replicas: int = 1
    priority_class: str = ""
    grace: int = 30
    starts: float = 1.0
    """From the order to start its container until it runs."""
    ready: float = 1.0
    """From then until its readiness probe succeeds."""
    pre_stop: float = 0.0
    """How long its preStop hook takes; 0: it has none."""
    ends: float = 1.0
    """From SIGTERM to its end; ``inf``: it ignores SIGTERM."""
    drains: bool = True
    """Whether it goes on answering requests between SIGTERM and its end."""
    requests: float = 0.0
    """A Service, and how many requests a second its clients make."""
    volume: bool = False
    writes: float = 0.0
    """Of each pod, to its volume, in a second."""
    min_available: str = ""
    """A PodDisruptionBudget: a number or percentage."""
    max_unavailable: str = ""
    leader: LeaderSettings | None = None
    cpu: str = "100m"
    memory: str = "64Mi"
    lives: float = math.inf
    """Of a Job: how long its pods work."""
    hooks: dict[str, float] = msgspec.field(default_factory=dict)
    """How long the preStop hooks of its containers take, by name, if its pods are recorded ones; else ``pre_stop`` counts."""
    service: str = ""
    """The name of its Service, if that is not its own."""
    nodes: tuple[str, ...] = ()
    """Of a DaemonSet: the machines that it is for, if these are not all."""
    prepares: float = 0.0
    """It is guarded: from the request for the end of a pod until its application has moved the pod's work; 0: it is not."""
    links: bool = True
    """Whether its container has the addresses of all Services of the namespace in its environment."""


class RecordedCluster(Facts, frozen=True):
    """A cluster as it was found at ``at`` (seconds since 1970), as the API server has it.

    ``away`` are the nodes whose machines are off. ``members`` tells by the uid of an owner or of a pod, or by the
    NAMESPACE/NAME of a static pod, to which workload a pod belongs, as NAMESPACE/NAME of this.
    """

    objects: tuple[dict[str, Any], ...]
    at: float
    away: tuple[str, ...] = ()
    members: dict[str, str] = msgspec.field(default_factory=dict)


class ScenarioShutdownManager(Enum):
    """Who ends the pods when a node goes down."""

    LASTCALL = "lastcall"
    """The lab's node: agent and kubelet are one process, and the agent tells the kubelet what it does."""
    BESIDE_KUBELET = "lastcall-beside-kubelet"
    """As on a real cluster: the agent has the kubelet's unit stopped, and writes the Node and the pods itself."""
    KUBELET = "kubelet"
    NONE = "none"


class FailoverSettings(Facts, frozen=True):
    """lastcall's failover controller: how many replicas there are, and its FencePolicy; times are seconds."""

    replicas: int = 1
    bmc: bool = True
    """Whether machines have BMCs; else nothing fences them."""
    suspect_after: float = 40.0
    power_on: bool = False
    """Whether a machine that it has switched off is switched on when nothing is left to force."""
    min_healthy: str = "51%"
    per_domain: int = 1
    per_hour: int = 3
    domain_label: str = "topology.kubernetes.io/zone"
    settle: float = 60.0


class GuardSettings(Facts, frozen=True):
    """lastcall's guard: how many replicas there are, and what becomes of a request that none of them answers."""

    replicas: int = 2
    failure_policy: str = FAIL
    """The webhooks' ``failurePolicy``: ``Fail`` or ``Ignore``."""


class Goal(Enum):
    """What can be expected of a workload, or of the end."""

    REQUESTS_LOST = "loses at most requests"
    DOWN_FOR = "is down for at most"
    WRITES_LOST = "loses at most writes"
    RUNS = "runs at the end"
    STUCK = "is stuck at the end"
    ENDED_IN_TIME = "every pod ended before the power went"
    ENDED_BY_ITSELF = "every pod ended by itself"
    FENCED = "fences at most machines"
    """lastcall, and nobody else: it is no workload's."""


class Expectation(Facts, frozen=True):
    """``subject`` is a workload's name, or empty for all. ``limit`` is the most that is allowed."""

    goal: Goal
    subject: str = ""
    limit: float = 0.0


class Scenario(Facts, frozen=True):
    """One rehearsal. Time 0 is when everything runs; ``lasts`` is its end."""

    name: str
    description: str = ""
    nodes: tuple[NodeGroup, ...] = (NodeGroup(),)
    workloads: tuple[ScenarioWorkload, ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    """Further objects of the Kubernetes API, created before the workloads."""
    recorded: RecordedCluster | None = None
    """The cluster that all begins with, instead of one of ``workloads`` and ``objects``; they and ``nodes`` tell of it."""
    agent: AgentConfig | None = None
    manager: ScenarioShutdownManager = ScenarioShutdownManager.LASTCALL
    failover: FailoverSettings | None = None
    """Whether a failover controller runs, and how."""
    guard: GuardSettings | None = None
    """Whether a guard runs, and how."""
    settled: bool = False
    """Whether the pods run already when the machines come up, as in a cluster that has been there for long."""
    propagation: float = 0.5
    """How many seconds after the API server a node's proxy knows of endpoints."""
    boot: float = 30.0
    """From power on to the kubelet's start."""
    qps: float = KUBERNETES.qps
    """Requests that each controller allows itself in a second (``--kube-api-qps``), and how many at once."""
    burst: int = KUBERNETES.burst
    timeline: tuple[ScenarioEvent, ...] = ()
    lasts: float = 600.0
    expect: tuple[Expectation, ...] = ()
