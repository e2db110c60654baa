"""Ground truth: what really happened, reported by machines, actors and storage, never by lastcall itself."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from lastcall.model.pods import Pod
from lastcall.ports.node import Clock
from lastcall_lab import virtual
from lastcall_lab.fakes.actor_runtime import ActorRuntime, Delivery
from lastcall_lab.machines.power import PowerSwitch


class ContainerEvent(NamedTuple):
    """Something that reached a container: ``what`` is order (to start it), start, hook, hook over, TERM, KILL or exit.

    ``began``: of a hook that is over, when that one had begun.
    """

    at: float
    node: str
    uid: str
    container: str
    what: str
    began: float | None = None


class MachineEvent(NamedTuple):
    """Of a machine: on, off, agent started, agent killed, and what becomes of shutdowns.

    These are pressed (``amount``: what logind grants) or pressed without a lock, cancelled, and down: logind waits no
    more, and the machine goes off.

    Faults: hang, partition, storage, and mended when one is taken back; power off ends one without a word. Those of
    programs: holder killed, logind restarted, kubelet started, stopped and killed (beside the agent), and from ``X`` to ``X over``: no bus, no runtime, disk full.
    """

    at: float
    node: str
    what: str
    amount: float = 0.0


class InjectedFault(NamedTuple):
    """A fault that has struck: ``kind`` is what was done, ``step`` what it has hit."""

    at: float
    kind: str
    step: str


class TerminationRequest(NamedTuple):
    """From ``at`` on a pod is to end, as the API server has it: it is deleted with so many seconds, or gone, or over.

    ``forgotten``: it is gone, and nobody has vouched for it that nothing of it runs. ``by``: the process that wrote it.
    """

    at: float
    uid: str
    grace: float
    forgotten: bool = False
    by: str = ""


class NodeObjectState(NamedTuple):
    """What a Node says: whether it is cordoned, has the mark of the agent, which conditions of a shutdown are True."""

    unschedulable: bool
    marked: bool
    conditions: tuple[str, ...]
    is_not_ready: bool


class JobFailures(NamedTuple):
    """So many failed pods (``failed``) a Job counts."""

    uid: str
    name: str
    failed: int


T = TypeVar("T")


class Noted(NamedTuple, Generic[T]):
    """That something of ``who`` (a node's name or a uid) is ``what`` from ``at`` on."""

    at: float
    who: str
    what: T


class PodState(NamedTuple):
    """What the API server has of a pod, and the process that wrote it. ``is_evicted``: by the Eviction API.

    ``is_finished``: its containers have ended for good. ``is_held``: its guard says on it that its application is not
    ready to lose it. When it begins to end, ``had_work`` is the truth about that, and ``is_unanswered`` says that no
    guard was there to answer, and its policy let it go then.
    """

    uid: str
    name: str
    app: str
    node: str
    is_ready: bool
    is_evicted: bool
    is_ending: bool
    is_gone: bool
    by: str
    is_finished: bool = False
    is_held: bool = False
    had_work: bool = False
    is_unanswered: bool = False


class CordonState(NamedTuple):
    """Of a Node, and the process that wrote it. ``claims_cordon``: what the mark of a drain says; None: it has none."""

    is_cordoned: bool
    claims_cordon: bool | None
    by: str


class LeaseState(NamedTuple):
    """Who has a node by its Lease of drains; empty: nobody."""

    holder: str
    by: str


class BudgetState(NamedTuple):
    """How many pods of a PodDisruptionBudget are healthy by its status (``currentHealthy``), and who wrote that."""

    healthy: int
    by: str


class RemovalRequest(NamedTuple):
    """What a run of a drain asks the API server for, whether it arrives or not.

    ``uid`` is its precondition; empty: none. ``evicts``: by the Eviction API; else it is a deletion.
    """

    name: str
    uid: str
    evicts: bool


class NodeNotice(NamedTuple):
    """What others make of a machine, in words: the control plane of its node, an administrator who drains it."""

    at: float
    node: str
    what: str


class FenceOrder(NamedTuple):
    """That a BMC was told to switch off, through the BMC of ``node``; the machine behind it is ``hit``.

    ``silence``: for how long the API server had not heard of that machine. ``away`` are others of its failure domain that
    were told so and are not ready; ``healthy`` of ``every`` machines remain without all of these and it.
    """

    at: float
    node: str
    hit: str
    powered: bool
    boot_id: str
    silence: float
    away: tuple[str, ...]
    healthy: int
    every: int
    held: float = 0.0
    """For how many seconds more it has said itself that it goes down."""
    suspect_after: float = 0.0
    """The least that the policy has said lately; 0: what the scenario says."""
    forbidden: float = 0.0
    """For how many seconds the policy has said that nothing is to be fenced."""


class Truth:
    """Collects the events of its sources. Times are boottime, in seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.happenings: list[ContainerEvent] = []
        self.powers: list[MachineEvent] = []
        self.faults: list[InjectedFault] = []
        self.pods: dict[str, Pod] = {}
        """Every pod of which a container was started, by uid."""
        self.nodes: dict[str, str] = {}
        """Where that was, by uid."""
        self.asked: list[TerminationRequest] = []
        self.notices: list[NodeNotice] = []
        self.old_lists: list[Noted[float]] = []
        """A program has begun with a list of that time."""
        self.restores: list[float] = []
        """When etcd was restored from a backup."""
        self.orders: list[FenceOrder] = []
        """Of the failover controller, to BMCs."""
        self.node_objects: list[Noted[NodeObjectState]] = []
        """Each change of what a Node says."""
        self.cordons: list[Noted[bool]] = []
        """What administrators wanted: cordoned, or not any more."""
        self.endpoints: list[Noted[bool]] = []
        """Whether an EndpointSlice names a pod (its uid) as ready."""
        self.job_failures: list[Noted[JobFailures]] = []
        self.clear_network: list[Noted[bool]] = []
        """Whether there was no fault between any program and the API server."""
        self.pod_states: list[Noted[PodState]] = []
        """Each change of a pod, by uid; this and the next four if there are drains."""
        self.cordon_states: list[Noted[CordonState]] = []
        self.leases: list[Noted[LeaseState]] = []
        """Of drains, by node."""
        self.budget_states: list[Noted[BudgetState]] = []
        """By the budget's name, which is that of its workload."""
        self.removal_requests: list[Noted[RemovalRequest]] = []
        """By the run that asks: the name of its process and the number of its life."""
        self.mistakes: list[str] = []
        """Programs that have ended by a mistake of their own, in words."""
        self.listeners: list[Callable[[ContainerEvent | MachineEvent], None]] = []
        """Hear everything at once."""

    def watch_runtime(self, node: str, runtime: ActorRuntime) -> None:
        """What reaches its containers."""
        runtime.on_delivery = lambda one: self._record_delivery(node, one)

    def record_start_order(self, node: str, pod: Pod, container: str) -> None:
        """A container of it is being started there."""
        uid = pod.metadata.uid
        self.pods[uid] = pod
        self.nodes[uid] = node
        self.happenings.append(ContainerEvent(self._clock.boottime(), node, uid, container, "order"))

    def record_power_on(self, node: str) -> None:
        """The machine boots."""
        self._record_machine_event(node, "on")

    def record_power_off(self, node: str) -> None:
        """Nothing runs on it any more."""
        self._record_machine_event(node, "off")

    def record_shutdown(self, node: str, granted: float, *, locked: bool) -> None:
        """A shutdown begins; ``locked``: somebody holds a lock."""
        self._record_machine_event(node, "pressed" if locked else "pressed without a lock", granted)

    def record_cancel(self, node: str) -> None:
        """The shutdown is cancelled."""
        self._record_machine_event(node, "cancelled")

    def record_going_down(self, node: str) -> None:
        """Nothing holds a shutdown up any more."""
        self._record_machine_event(node, "down")

    def record_agent_start(self, node: str) -> None:
        """Kubelet and agent begin a life."""
        self._record_machine_event(node, "agent started")

    def record_agent_kill(self, node: str) -> None:
        """Kubelet and agent are dead, in the middle of whatever they did."""
        self._record_machine_event(node, "agent killed")

    def record_machine_fault(self, node: str, fault: PowerSwitch) -> None:
        """One of the faults, or ``ON``: there is none any more."""
        self._record_machine_event(node, "mended" if fault is PowerSwitch.ON else fault.value)

    def record_machine_event(self, node: str, what: str) -> None:
        """What has become of a program or a disk of the machine: see ``MachineEvent``."""
        self._record_machine_event(node, what)

    def record_fault(self, kind: str, step: str) -> None:
        """A fault has hit something."""
        self.faults.append(InjectedFault(self._clock.boottime(), kind, step))

    def record_old_list(self, program: str, since: float) -> None:
        """The first list of a program tells of nothing that came after that time."""
        self.old_lists.append(Noted(self._clock.boottime(), program, since))

    def record_restore(self) -> None:
        """Etcd is restored from a backup."""
        self.restores.append(self._clock.boottime())

    def record_termination_request(self, uid: str, grace: float, *, forgotten: bool) -> None:
        """A pod is to end; the process whose step this is has written that."""
        process = virtual.current_process()
        by = process.name if process else ""
        self.asked.append(TerminationRequest(self._clock.boottime(), uid, grace, forgotten, by))

    def record_node_object(self, node: str, state: NodeObjectState) -> None:
        """A Node says something else."""
        self.node_objects.append(Noted(self._clock.boottime(), node, state))

    def record_cordon(self, node: str, *, cordoned: bool) -> None:
        """An administrator cordons a node, or uncordons it."""
        self.cordons.append(Noted(self._clock.boottime(), node, cordoned))

    def record_endpoint(self, uid: str, *, ready: bool) -> None:
        """A pod is named as ready from now on, or no longer."""
        self.endpoints.append(Noted(self._clock.boottime(), uid, ready))

    def record_job_failure(self, job: JobFailures) -> None:
        """A Job counts more failed pods."""
        self.job_failures.append(Noted(self._clock.boottime(), job.uid, job))

    def record_network(self, *, clear: bool) -> None:
        """The network to the API server, and the server itself, are without a fault, or not."""
        if not self.clear_network or self.clear_network[-1].what != clear:
            self.clear_network.append(Noted(self._clock.boottime(), "", clear))

    def record_pod_state(self, state: PodState) -> None:
        """A pod has become another."""
        self.pod_states.append(Noted(self._clock.boottime(), state.uid, state))

    def record_cordon_state(self, node: str, state: CordonState) -> None:
        """A Node is cordoned, or marked by a drain, or not any more."""
        self.cordon_states.append(Noted(self._clock.boottime(), node, state))

    def record_lease(self, node: str, state: LeaseState) -> None:
        """A drain has written the Lease of a node."""
        self.leases.append(Noted(self._clock.boottime(), node, state))

    def record_budget_state(self, name: str, state: BudgetState) -> None:
        """The status of a budget says something else."""
        self.budget_states.append(Noted(self._clock.boottime(), name, state))

    def record_removal_request(self, run: str, request: RemovalRequest) -> None:
        """A run of a drain asks for a pod."""
        self.removal_requests.append(Noted(self._clock.boottime(), run, request))

    def record_mistake(self, what: str) -> None:
        """A program has ended as it never should."""
        self.mistakes.append(what)

    def record_notice(self, node: str, what: str) -> None:
        """Records a notice about a node."""
        self.notices.append(NodeNotice(self._clock.boottime(), node, what))

    def _record_delivery(self, node: str, one: Delivery) -> None:
        happening = ContainerEvent(one.at, node, one.uid, one.container, one.what, one.began)
        self.happenings.append(happening)
        self._notify_listeners(happening)

    def _record_machine_event(self, node: str, what: str, amount: float = 0.0) -> None:
        power = MachineEvent(self._clock.boottime(), node, what, amount)
        self.powers.append(power)
        self._notify_listeners(power)

    def _notify_listeners(self, one: ContainerEvent | MachineEvent) -> None:
        for listener in self.listeners:
            listener(one)
