"""The facts about one boot of a silent node, as they were observed, without conclusions.

All times are seconds on one clock, the observer's own, which is never set: a Lease counts from when its renewal was
seen, not from the time written in it. Each fact names the boot ID that the Node had, in a live read, when it was
observed (``status.nodeInfo.bootID``), so that no fact about one boot counts for another.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.model.power import InstanceState, PowerState
from lastcall.model.watchdog import WatchdogTiming


@dataclass(frozen=True, kw_only=True)
class Boot:
    """One boot of one machine, the subject of a verdict.

    InvalidInput without an ID: nothing could be proved about it.
    """

    id: str
    system_uuid: str
    """``status.nodeInfo.systemUUID`` as the Node reported it with this boot ID."""
    since: float
    """When the Node was first seen with this boot ID. It counts as a sign of life: a new observer cannot know how old
    the state is that it finds, and waits as long as after a renewal.
    """

    def __post_init__(self) -> None:
        if not self.id:
            raise InvalidInput("boot", ["id: empty: a node that has never reported a boot id can be proved nothing of"])


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """The Node's kubelet reported its boot ID, machine and Ready condition; ``at`` is when the change was seen."""

    boot_id: str
    system_uuid: str
    ready: str
    """True, False or Unknown; empty without the condition. Only a status that the kubelet writes is a sign of life."""
    at: float


@dataclass(frozen=True, kw_only=True)
class LeaseSeen:
    """The node's Lease in ``kube-node-lease`` was seen to be renewed."""

    boot_id: str
    at: float


@dataclass(frozen=True, kw_only=True)
class PeerHeard:
    """Another node received this boot ID from the node's agent. That others did not receive it is no fact.

    The agent sends it while it has lost the API server: it is a sign of life, but not of a healthy node.
    """

    boot_id: str
    peer: str
    question: int
    """The number of the boot's question; later questions have higher numbers."""
    at: float
    """It was received at this time at the latest."""


@dataclass(frozen=True, kw_only=True)
class PowerSeen:
    """A fence device's report of the power state; ``why`` explains UNKNOWN.

    The success of a power-off order is no such report, and even less that of a reboot.
    """

    boot_id: str
    source: str
    power: PowerState
    asked: float
    answered: float
    """The device read the state at some moment between ``asked`` and this time."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class InstanceSeen:
    """A cloud's report of the state of the instance with the Node's providerID."""

    boot_id: str
    source: str
    state: InstanceState
    asked: float
    answered: float
    """As for a device."""


def seconds_apart(first: PowerSeen | InstanceSeen, second: PowerSeen | InstanceSeen) -> float:
    """The least number of seconds between the two reads of the machine: each may be at any moment of its call."""
    return second.asked - first.answered


@dataclass(frozen=True, kw_only=True)
class StorageLease:
    """The node's own lease on shared storage, read from the storage at ``read``, such as a host ID lease of sanlock."""

    boot_id: str
    source: str
    renewed: float
    read: float
    dead_after: float | None = None
    """Seconds after a renewal by which a watchdog has certainly reset the holder (sanlock: ``host_dead_seconds``, 140 s
    for an I/O timeout of 10 s: 8 timeouts and the watchdog's 60 s); None without a watchdog behind the lease.
    """
    lived: float | None = None
    """When the holder was certainly alive, if not at ``renewed``, which is when the renewal was read or reported."""


@dataclass(frozen=True, kw_only=True)
class NodesWithoutOutageReport:
    """Of ``nodes`` nodes, ``calm`` reported no outage of the API server to any other, from ``since`` to ``until``.

    ``since`` is None if these are less than half; ``until`` is None if it is observed but not confirmed.
    """

    nodes: int
    calm: int
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class WatchdogSeen:
    """The agent had an armed watchdog, by its own Lease, which it renewed at ``renewed`` and not since then.

    ``read`` is when that Lease was last read live. The Lease says armed for as long as the watchdog can be: an agent
    that stops cleanly writes that first and disarms only after the API server has confirmed the write.
    """

    boot_id: str
    settings: WatchdogTiming
    renewed: float
    read: float
    reachable: int
    """The least number of nodes that the API server had contact with at any moment from ``renewed`` to ``read``."""
    nodes: int
    """All nodes of the cluster."""
    peers: NodesWithoutOutageReport | None = None
    """For an agent that pets by agreement with peers: the reports of the nodes that it counts. ``reachable`` and
    ``nodes`` are then unused.
    """

    @property
    def reset_at(self) -> float | None:
        """When the watchdog has certainly reset the machine if no renewal follows; None if unknown."""
        return self.settings.reset_by(self.renewed, self.peers.since if self.peers else None)

    @property
    def is_expired(self) -> bool:
        """Whether the reset is established: no renewal followed by then, and an agreement with peers is ruled out."""
        over = self.reset_at
        if over is None or self.read < over:
            return False
        return self.peers is None or (self.peers.until is not None and self.peers.until >= over)


@dataclass(frozen=True, kw_only=True)
class DeathAcknowledged:
    """A person declared the machine dead at ``at``, by a manual taint or by an acknowledgement."""

    boot_id: str
    how: str
    at: float


@dataclass(frozen=True, kw_only=True)
class ShutdownAnnounced:
    """The node's announcement of its own shutdown: a ``NodeShutdown``, seen in its current form at ``written``."""

    boot_id: str
    written: float
    new: bool = True
    """Whether it was seen to be written. An object found at the first look is no sign of life: its age is unknown."""
    deadline: float
    """The latest end of the shutdown, as the node stated."""
    cancelled: bool = False
    """The shutdown was cancelled: the machine stays up."""
    gone: frozenset[str] = frozenset()
    """The UIDs of pods whose containers have all ended and whose volumes are unmounted."""
    how: str = ""
    """The kind of the shutdown as logind named it; empty if unknown."""


@dataclass(frozen=True, kw_only=True)
class RebootOrdered:
    """A reboot was ordered. It proves nothing: it may not have happened, and the machine is on afterwards."""

    boot_id: str
    by: str
    at: float


Fact = (
    NodeSeen
    | LeaseSeen
    | PeerHeard
    | PowerSeen
    | InstanceSeen
    | StorageLease
    | WatchdogSeen
    | DeathAcknowledged
    | ShutdownAnnounced
    | RebootOrdered
)


def latest_announcement(boot: Boot, facts: Iterable[Fact]) -> ShutdownAnnounced | None:
    """The latest announcement of this boot; None if it was cancelled, because ended pods may run again."""
    words = [fact for fact in facts if isinstance(fact, ShutdownAnnounced) and fact.boot_id == boot.id]
    last = max(words, key=lambda one: (one.written, one.cancelled, one.deadline, sorted(one.gone)), default=None)
    return None if last is None or last.cancelled else last
