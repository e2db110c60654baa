"""What is known of one boot of a node that does not answer: facts as they were observed, and nothing concluded from them.

Every time is in seconds on one clock, the observer's own, which is never set: a Lease counts from when its renewal was
seen, not from what stands in it. Each fact names the boot id that the Node showed, in a live read, when it was observed
(``status.nodeInfo.bootID``); so what is known of one boot never speaks of another.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.model.power import InstanceState, PowerState
from lastcall.model.watchdog import WatchdogTiming


@dataclass(frozen=True, kw_only=True)
class Boot:
    """One life of one machine, which the question is about. InvalidInput if it has no id: nothing could be proved of it."""

    id: str
    system_uuid: str
    """``status.nodeInfo.systemUUID`` as the Node showed it with this boot id."""
    since: float
    """When the Node was first seen with this boot id. It counts as a sign of life: who has just begun to observe cannot know
    how old what he sees is, and waits as long as after a renewal."""

    def __post_init__(self) -> None:
        if not self.id:
            raise InvalidInput("boot", ["id: empty: a node that has never reported a boot id can be proved nothing of"])


@dataclass(frozen=True, kw_only=True)
class NodeSeen:
    """The Node's kubelet has reported: its boot id, its machine and its condition Ready, when that was last written."""

    boot_id: str
    system_uuid: str
    ready: str
    """True, False or Unknown; empty if the Node has no such condition. Only what a kubelet wrote is a sign of life."""
    at: float


@dataclass(frozen=True, kw_only=True)
class LeaseSeen:
    """The node's Lease in ``kube-node-lease`` was seen to be renewed."""

    boot_id: str
    at: float


@dataclass(frozen=True, kw_only=True)
class PeerHeard:
    """Another node has heard the node's agent say this boot id. That others have not heard it is no fact.

    The agent says it while it has lost the API server: it is a sign of life, and none that the node is well.
    """

    boot_id: str
    peer: str
    question: int
    """Which one of those that this boot has asked: a later one has a higher number."""
    at: float
    """It was heard by then at the latest."""


@dataclass(frozen=True, kw_only=True)
class PowerSeen:
    """The answer of a fence device to the question for the status; ``why`` says what is wrong with UNKNOWN.

    That an ``off`` has succeeded is not such an answer, and still less that a ``reboot`` has.
    """

    boot_id: str
    source: str
    power: PowerState
    asked: float
    answered: float
    """The device has looked at some moment from ``asked`` to this one."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class InstanceSeen:
    """The answer of a cloud to the question for the state of the instance with the Node's providerID."""

    boot_id: str
    source: str
    state: InstanceState
    asked: float
    answered: float
    """As of a device."""


def seconds_apart(first: PowerSeen | InstanceSeen, second: PowerSeen | InstanceSeen) -> float:
    """How many seconds lay between the two looks at the machine at least: nobody knows when in its time each was."""
    return second.asked - first.answered


@dataclass(frozen=True, kw_only=True)
class StorageLease:
    """The node's own lease on shared storage, read from the storage itself at ``read``, as sanlock's host id is one."""

    boot_id: str
    source: str
    renewed: float
    read: float
    dead_after: float | None = None
    """So many seconds after a renewal a watchdog has surely reset its holder (sanlock: ``host_dead_seconds``, 140 s for
    an I/O timeout of 10 s: 8 of them and the 60 s of the watchdog); None if no watchdog stands behind the lease."""
    lived: float | None = None
    """When it had surely lived, if it was not surely at ``renewed``: that is when the renewal was read, or heard of."""


@dataclass(frozen=True, kw_only=True)
class NodesWithoutOutageReport:
    """Of ``nodes`` nodes ``calm`` have told no other one that the API server is lost to them, from ``since`` to ``until``.

    ``since`` is None if these are less than half, ``until`` if it is so by all that is seen, and not confirmed.
    """

    nodes: int
    calm: int
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class WatchdogSeen:
    """The agent held an armed watchdog, as its own Lease said that it renewed at ``renewed`` and nothing since.

    ``read`` is when that Lease was read last, live. The Lease says that the watchdog is armed for as long as it can be: an
    agent that stops cleanly says so there, and is answered, before it disarms.
    """

    boot_id: str
    settings: WatchdogTiming
    renewed: float
    read: float
    reachable: int
    """Nodes that the API server has heard from at every moment from ``renewed`` to ``read``: the fewest at a time."""
    nodes: int
    """All nodes of the cluster."""
    peers: NodesWithoutOutageReport | None = None
    """Of the nodes that its agent counts, if it pets by agreement with them; then what is said above of nodes is of no use."""

    @property
    def reset_at(self) -> float | None:
        """When it has reset for certain, if nothing follows; None if nobody can say."""
        return self.settings.reset_by(self.renewed, self.peers.since if self.peers else None)

    @property
    def is_expired(self) -> bool:
        """Whether that has been seen: nothing had followed by then, and it could not have agreed with others."""
        over = self.reset_at
        if over is None or self.read < over:
            return False
        return self.peers is None or (self.peers.until is not None and self.peers.until >= over)


@dataclass(frozen=True, kw_only=True)
class DeathAcknowledged:
    """A person says that the machine is dead, by a taint set by hand or by an acknowledgement, at ``at``."""

    boot_id: str
    how: str
    at: float


@dataclass(frozen=True, kw_only=True)
class ShutdownAnnounced:
    """What the node said of its own going down: a ``NodeShutdown``, seen as it is now at ``written``."""

    boot_id: str
    written: float
    new: bool = True
    """Whether it was seen to be written. What was there at the first look is no sign of life: nobody knows how old it is."""
    deadline: float
    """Until when it may take, as the node has stated."""
    cancelled: bool = False
    """The machine stays up after all."""
    gone: frozenset[str] = frozenset()
    """The UIDs of pods whose containers have all ended and whose volumes are unmounted."""


@dataclass(frozen=True, kw_only=True)
class RebootOrdered:
    """Somebody has told the machine to reboot. It proves nothing: it may not have happened, and the machine is on after."""

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
    """The record of this boot that was written last; None if it was cancelled: what had ended may run again."""
    words = [fact for fact in facts if isinstance(fact, ShutdownAnnounced) and fact.boot_id == boot.id]
    last = max(words, key=lambda one: (one.written, one.cancelled, one.deadline, sorted(one.gone)), default=None)
    return None if last is None or last.cancelled else last
