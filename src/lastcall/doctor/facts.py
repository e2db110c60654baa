"""What ``lastcall doctor`` looks at on a host: facts, each of them known or with the reason why it is not.

They are gathered by ``adapters.host_facts`` and judged by ``graceful.doctor``. Times are seconds; ``wall`` ones since 1970.
"""

from lastcall.model.base import Facts
from lastcall.model.controller_manager import ControllerManager
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.ports.node import DropIn, Inhibitor


class UnknownFact(Facts, frozen=True):
    """Why something is not known."""

    reason: str


class AttemptResult(Facts, frozen=True):
    """Whether something works that was tried; ``message`` says what was found, or why it does not work."""

    works: bool
    message: str


class HostFile(Facts, frozen=True):
    """A file as it was found."""

    path: str
    data: bytes


class LogindState(Facts, frozen=True):
    """What logind says of itself; ``granted`` is InhibitDelayMaxSec, ``scheduled`` as in ports.LogindSession."""

    granted: float
    preparing: bool
    scheduled: str
    inhibitors: tuple[Inhibitor, ...]


class ServiceUnit(Facts, frozen=True):
    """A service unit, as far as it decides what of the service survives a restart (systemd.service(5))."""

    name: str
    kill_mode: str
    stored_descriptors: int
    environment: tuple[str, ...] = ()


class KubeletFacts(Facts, frozen=True):
    """A kubelet's process, which has run since ``started`` (wall clock) with ``arguments``.

    ``config`` is the file of --config and those of --config-dir in their order; none if it has flags only. ``state`` is
    its graceful_node_shutdown_state, None if it has never written one.
    """

    pid: int
    started: float
    arguments: tuple[str, ...]
    config: tuple[HostFile, ...] | UnknownFact
    state: HostFile | UnknownFact | None = None


class StateDirFacts(Facts, frozen=True):
    """The agent's state directory; ``free_inodes`` is None where the file system counts none.

    ``volatile``: on a file system that is empty after a reboot.
    """

    usable: AttemptResult
    free_bytes: int
    free_inodes: int | None
    volatile: bool


class WatchdogFacts(Facts, frozen=True):
    """A watchdog device, as sysfs tells of it without starting it; ``shortest`` and ``longest`` timeout, 0 if not told."""

    name: str
    identity: str
    nowayout: bool
    shortest: int = 0
    longest: int = 0


class SystemdWatchdogUse(Facts, frozen=True):
    """What systemd does with watchdogs: for how long it lets one run, and one at a reboot (0: it leaves them alone).

    ``hidden``: the agent's unit is given no devices.
    """

    running: float
    rebooting: float
    hidden: bool


class PeerFacts(Facts, frozen=True):
    """What ``watchdog.peers`` has to work with.

    ``nodes`` has each Node's internal address ("" if it has none), ``keys`` the size of each key in bytes (none: there is
    none that signs), ``promises`` what the agents' Leases say, by node. ``here`` are the nodes whose address is one of this
    machine's, and whether the port could be bound there; it was given back. ``host`` is this machine's name.
    """

    nodes: dict[str, str] | UnknownFact
    keys: tuple[int, ...] | UnknownFact
    promises: dict[str, WatchdogPromise] | UnknownFact
    here: dict[str, AttemptResult]
    host: str


class PolicyFacts(Facts, frozen=True):
    """A FencePolicy of the cluster, and the messages of its conditions that are False."""

    name: str
    unmet: tuple[str, ...] = ()


class HostFacts(Facts, frozen=True):
    """One host, now.

    ``uid`` is who asks. ``booted``: systemd runs the host. ``targets`` maps units to their LoadState. ``lock`` tells
    whether a delay lock could be taken, ``drop_in`` whether our drop-in could be written, ``runtime`` whether the CRI
    runtime answers. ``agent`` is the pid of the agent that works with the state directory (0: known to run, its pid not);
    ``agent_unit`` is None if there is no such unit. ``manifests`` are those of static pods. ``watchdogs`` are all devices.
    ``controllers`` and ``policies`` are those of the cluster, and ``peers`` what is found there; None if it was not asked.
    """

    uid: int
    booted: bool
    systemd_version: str | UnknownFact
    targets: dict[str, str] | UnknownFact
    agent_unit: ServiceUnit | UnknownFact | None
    logind: LogindState | UnknownFact
    lock: AttemptResult | UnknownFact
    limit_files: tuple[DropIn, ...] | UnknownFact
    drop_in: AttemptResult | UnknownFact
    config: HostFile | UnknownFact
    state_dir: StateDirFacts | UnknownFact
    agent: int | UnknownFact | None
    runtime: AttemptResult | UnknownFact
    kubelet: KubeletFacts | UnknownFact | None
    manifests: tuple[HostFile, ...] | UnknownFact
    watchdogs: tuple[WatchdogFacts, ...] | UnknownFact = ()
    controllers: tuple[ControllerManager, ...] | UnknownFact | None = None
    policies: tuple[PolicyFacts, ...] | UnknownFact | None = None
    peers: PeerFacts | UnknownFact | None = None
    watchdog_use: SystemdWatchdogUse | UnknownFact = UnknownFact(reason="it was not asked for")
