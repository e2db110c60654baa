"""Ground truth: what really happened, reported by machines, actors and storage, never by lastcall itself."""

from collections.abc import Callable
from typing import NamedTuple

from lastcall.model.pods import Pod
from lastcall.ports.node import Clock
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
    programs: holder killed, logind restarted, and from ``X`` to ``X over``: no bus, no runtime, disk full.
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

    ``forgotten``: it is gone, and nobody has vouched for it that nothing of it runs.
    """

    at: float
    uid: str
    grace: float
    forgotten: bool = False


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
        self.restores: list[float] = []
        """When etcd was restored from a backup."""
        self.orders: list[FenceOrder] = []
        """Of the failover controller, to BMCs."""
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

    def record_restore(self) -> None:
        """Etcd is restored from a backup."""
        self.restores.append(self._clock.boottime())

    def record_termination_request(self, uid: str, grace: float, *, forgotten: bool) -> None:
        """A pod is to end."""
        self.asked.append(TerminationRequest(self._clock.boottime(), uid, grace, forgotten))

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
