"""The facts about a host that ``lastcall doctor`` checks: each one is known, or has the reason why it is not.

``adapters.doctor.host_facts`` gathers them, and ``doctor.all_checks`` judges them. Times are seconds; wall clock times
are seconds since 1970.
"""

from lastcall.model.base import Facts
from lastcall.model.controller_manager import ControllerManager
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.ports.node import DropIn, Inhibitor, PrioritySource


class UnknownFact(Facts, frozen=True):
    """An unknown fact, with the reason."""

    reason: str


class AttemptResult(Facts, frozen=True):
    """Whether an attempt works; ``message`` is its result, or why it failed."""

    works: bool
    message: str


class HostFile(Facts, frozen=True):
    """A file as read."""

    path: str
    data: bytes


class LogindState(Facts, frozen=True):
    """logind's own state; ``granted`` is InhibitDelayMaxSec, ``scheduled`` as in ``ports.node.LogindSession``."""

    granted: float
    preparing: bool
    scheduled: str
    inhibitors: tuple[Inhibitor, ...]


class ServiceUnit(Facts, frozen=True):
    """The settings of a service unit that decide what survives a restart of the service (systemd.service(5))."""

    name: str
    kill_mode: str
    stored_descriptors: int
    environment: tuple[str, ...] = ()


class KubeletFacts(Facts, frozen=True):
    """A kubelet's process, which has run since ``started`` (wall clock) with ``arguments``.

    ``config`` is the file of --config followed by those of --config-dir; empty if it has flags only. ``state`` is its
    graceful_node_shutdown_state, None if it has never written one.
    """

    pid: int
    started: float
    arguments: tuple[str, ...]
    config: tuple[HostFile, ...] | UnknownFact
    state: HostFile | UnknownFact | None = None


class StateDirFacts(Facts, frozen=True):
    """The agent's state directory; ``free_inodes`` is None if the file system does not count inodes.

    ``volatile``: the file system is empty after a reboot.
    """

    usable: AttemptResult
    free_bytes: int
    free_inodes: int | None
    volatile: bool


class WatchdogFacts(Facts, frozen=True):
    """A watchdog device as sysfs describes it, which does not start it; ``shortest``/``longest`` timeout or 0."""

    name: str
    identity: str
    nowayout: bool
    shortest: int = 0
    longest: int = 0


class SystemdWatchdogUse(Facts, frozen=True):
    """systemd's own use of watchdogs: its timeout while running, and at a reboot (0: unused).

    ``hidden``: the agent's unit has no access to devices.
    """

    running: float
    rebooting: float
    hidden: bool


class PeerFacts(Facts, frozen=True):
    """The basis of ``watchdog.peers``.

    ``nodes`` maps each Node to its internal address ("" if it has none). ``keys`` are the sizes of the keys in bytes;
    empty if no key can sign. ``promises`` are the promises in the agents' Leases, by node. ``here`` are the nodes whose
    address belongs to this machine, each with an attempt to bind the port there. ``host`` is this machine's name.
    """

    nodes: dict[str, str] | UnknownFact
    keys: tuple[int, ...] | UnknownFact
    promises: dict[str, WatchdogPromise] | UnknownFact
    here: dict[str, AttemptResult]
    host: str


class PolicyFacts(Facts, frozen=True):
    """A FencePolicy of the cluster, with the messages of its conditions that are False."""

    name: str
    unmet: tuple[str, ...] = ()


class GuardInstallation(Facts, frozen=True):
    """The guard's ValidatingWebhookConfiguration: the failure policies of its webhooks; empty if it has none.

    ``is_withdrawn``: the controller keeps its webhooks in an annotation.
    """

    is_installed: bool = False
    failure_policies: tuple[str, ...] = ()
    is_withdrawn: bool = False


class PriorityFacts(Facts, frozen=True):
    """Where an agent would find the priorities of the pods that run here.

    ``sources`` is by namespace/name. ``api`` is why the API does not tell them; None if it does.
    """

    sources: dict[str, PrioritySource]
    api: UnknownFact | None = None


class HostFacts(Facts, frozen=True):
    """The facts about one host, at one time.

    ``uid`` is the caller's. ``booted``: systemd runs the host. ``targets`` maps units to their LoadState. ``lock`` is
    an attempt to take a delay lock, ``drop_in`` one to write our drop-in, ``runtime`` a call of the CRI runtime.
    ``agent`` is the pid of the agent that uses the state directory (0: it runs, pid unknown; None: none runs).
    ``agent_unit`` is None if there is no such unit. ``manifests`` are the static pods'. ``watchdogs`` are all devices.
    ``static_webhooks`` are the files from which an API server here loads webhooks. ``controllers``, ``policies``,
    ``peers`` and ``guard`` come from the cluster; None if it was not asked. ``node_identity``
    and ``own_identity`` say why these identities for the API server do not suffice; None: there is none.
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
    guard: GuardInstallation | UnknownFact | None = None
    static_webhooks: tuple[HostFile, ...] | UnknownFact = ()
    priorities: PriorityFacts | UnknownFact = UnknownFact(reason="it was not asked for")
    node_identity: tuple[str, ...] | UnknownFact | None = UnknownFact(reason="it was not asked for")
    own_identity: tuple[str, ...] | UnknownFact | None = None
    watchdog_use: SystemdWatchdogUse | UnknownFact = UnknownFact(reason="it was not asked for")
