"""What really happened, told by machines, actors and storage; never by lastcall's own word."""

from collections.abc import Callable
from typing import NamedTuple

from lastcall.lab.actors import ActorRuntime, Delivery
from lastcall.lab.power import Switch
from lastcall.model.pods import Pod
from lastcall.ports import Clock


class Happening(NamedTuple):
    """Something that reached a container: ``what`` is order (to start it), start, hook, hook over, TERM, KILL or exit.

    ``began``: of a hook that is over, when that one had begun.
    """

    at: float
    node: str
    uid: str
    container: str
    what: str
    began: float | None = None


class Power(NamedTuple):
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


class Fault(NamedTuple):
    """A fault that has struck: ``kind`` is what was done, ``step`` what it has hit."""

    at: float
    kind: str
    step: str


class Asked(NamedTuple):
    """From ``at`` on a pod is to end, as the API server has it: it is deleted with so many seconds, or gone, or over.

    ``forgotten``: it is gone, and nobody has vouched for it that nothing of it runs.
    """

    at: float
    uid: str
    grace: float
    forgotten: bool = False


class Notice(NamedTuple):
    """What others make of a machine, in words: the control plane of its node, an administrator who drains it."""

    at: float
    node: str
    what: str


class Order(NamedTuple):
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
    """Grows by what its sources tell. Times are boottime, in seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.happenings: list[Happening] = []
        self.powers: list[Power] = []
        self.faults: list[Fault] = []
        self.pods: dict[str, Pod] = {}
        """Every pod of which a container was started, by uid."""
        self.nodes: dict[str, str] = {}
        """Where that was, by uid."""
        self.asked: list[Asked] = []
        self.notices: list[Notice] = []
        self.restores: list[float] = []
        """When etcd was restored from a backup."""
        self.orders: list[Order] = []
        """Of the failover controller, to BMCs."""
        self.listeners: list[Callable[[Happening | Power], None]] = []
        """Hear everything at once."""

    def watch_runtime(self, node: str, runtime: ActorRuntime) -> None:
        """What reaches its containers."""
        runtime.on_delivery = lambda one: self._delivered(node, one)

    def ordered(self, node: str, pod: Pod, container: str) -> None:
        """A container of it is being started there."""
        uid = pod.metadata.uid
        self.pods[uid] = pod
        self.nodes[uid] = node
        self.happenings.append(Happening(self._clock.boottime(), node, uid, container, "order"))

    def power_on(self, node: str) -> None:
        """The machine boots."""
        self._power(node, "on")

    def power_off(self, node: str) -> None:
        """Nothing runs on it any more."""
        self._power(node, "off")

    def pressed(self, node: str, granted: float, *, locked: bool) -> None:
        """A shutdown begins; ``locked``: somebody holds a lock."""
        self._power(node, "pressed" if locked else "pressed without a lock", granted)

    def cancelled(self, node: str) -> None:
        """And is taken back."""
        self._power(node, "cancelled")

    def goes_down(self, node: str) -> None:
        """Nothing holds a shutdown up any more."""
        self._power(node, "down")

    def agent_started(self, node: str) -> None:
        """Kubelet and agent begin a life."""
        self._power(node, "agent started")

    def agent_killed(self, node: str) -> None:
        """Kubelet and agent are dead, in the middle of whatever they did."""
        self._power(node, "agent killed")

    def harmed(self, node: str, fault: Switch) -> None:
        """One of the faults, or ``ON``: there is none any more."""
        self._power(node, "mended" if fault is Switch.ON else fault.value)

    def met(self, node: str, what: str) -> None:
        """What has become of a program or a disk of the machine: see ``Power``."""
        self._power(node, what)

    def struck(self, kind: str, step: str) -> None:
        """A fault has hit something."""
        self.faults.append(Fault(self._clock.boottime(), kind, step))

    def restored(self) -> None:
        """Etcd is restored from a backup."""
        self.restores.append(self._clock.boottime())

    def wanted_ended(self, uid: str, grace: float, *, forgotten: bool) -> None:
        """A pod is to end."""
        self.asked.append(Asked(self._clock.boottime(), uid, grace, forgotten))

    def noticed(self, node: str, what: str) -> None:
        """What others make of it."""
        self.notices.append(Notice(self._clock.boottime(), node, what))

    def _delivered(self, node: str, one: Delivery) -> None:
        happening = Happening(one.at, node, one.uid, one.container, one.what, one.began)
        self.happenings.append(happening)
        self._tell(happening)

    def _power(self, node: str, what: str, amount: float = 0.0) -> None:
        power = Power(self._clock.boottime(), node, what, amount)
        self.powers.append(power)
        self._tell(power)

    def _tell(self, one: Happening | Power) -> None:
        for listener in self.listeners:
            listener(one)
