"""Ports of a node's programs, one narrow Protocol each; ``adapters`` implement them, programs know only the protocols.

Fences are in ``ports.fences``, the watchdog in ``ports.watchdog``, shared storage in ``ports.storage``.

Times are in seconds. ``boottime`` is CLOCK_BOOTTIME: it never jumps, and it is the same for every process of one boot.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.pods import LifecycleHandler, Pod
from lastcall.model.shutdown import ShutdownRecord


class Clock(Protocol):
    """The source of time; tests and the simulation replace it."""

    def boottime(self) -> float:
        """Seconds since boot, including suspend; for every budget and deadline."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 UTC; only for output that people read."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits; zero or less only yields to other tasks."""
        ...


# -- logind ------------------------------------------------------------------------------------------------------------


class Inhibitor(Facts, frozen=True):
    """One entry of logind's ListInhibitors."""

    what: str
    who: str
    why: str
    mode: str
    uid: int
    pid: int


class LogindChange(Enum):
    """A notification from logind. It is a reason to read the properties again, never evidence by itself."""

    PREPARING = "PrepareForShutdown(true)"
    CANCELLED = "PrepareForShutdown(false)"
    RESTARTED = "logind has another owner on the bus"
    SCHEDULED = "ScheduledShutdown changed"


class LogindSession(Protocol):
    """A connection to the system bus on which logind answers, with its signals already subscribed.

    Every method raises ``Unavailable`` after the bus is lost or if logind does not answer. Such a session cannot be
    used again; close it. A lock outlives its session, because the lock is the file descriptor.
    """

    async def is_preparing(self) -> bool:
        """Reads the property PreparingForShutdown."""
        ...

    async def max_delay(self) -> float:
        """Reads the property InhibitDelayMaxUSec, in seconds; ``inf`` if unlimited."""
        ...

    async def take_lock(self, why: str) -> int:
        """Takes a new delay lock on shutdown; returns a descriptor (close-on-exec) that the caller owns.

        ShutdownUnderWay while logind prepares a shutdown; NotPermitted without the permission.
        """
        ...

    async def list_inhibitors(self) -> Sequence[Inhibitor]:
        """The locks of all programs."""
        ...

    async def scheduled_shutdown(self) -> str:
        """The type of the shutdown that is scheduled or under way ("poweroff", "reboot", ...), or ""."""
        ...

    async def reload(self) -> None:
        """Makes systemd send SIGHUP to logind (KillUnit), so that logind reads its drop-ins again."""
        ...

    async def next_change(self) -> LogindChange:
        """The next notification, in order; none is lost between two calls. Unavailable if the bus is lost."""
        ...

    async def wait_for_change(self) -> None:
        """Returns when properties may have changed or the bus is lost; immediately if changes cannot be observed."""
        ...

    def close(self) -> None:
        """Leaves the bus; locks remain. May be called twice."""
        ...


class Logind(Protocol):
    """systemd-logind on this machine's system bus."""

    async def open(self) -> LogindSession:
        """Opens a session with its signals subscribed. Unavailable says what is missing."""
        ...


class LockKeeper(Protocol):
    """Keeps a delay lock so that it outlives this process, and closes every copy on release.

    "Released" means that logind sees the end of the lock: no process holds a copy any more.
    """

    @property
    def is_held(self) -> bool:
        """Whether this process or an earlier one keeps a lock now."""
        ...

    async def recover(self) -> bool:
        """Takes over the lock of an earlier process; returns True if a lock is held now."""
        ...

    async def keep_lock(self, descriptor: int) -> None:
        """Takes over the descriptor and stores a duplicate where it survives this process.

        The previous lock is released afterwards, so that one is held at all times.
        """
        ...

    async def set_deadline(self, boottime: float) -> None:
        """Makes the duplicate close itself at this time, whatever happens to this process."""
        ...

    async def release(self) -> None:
        """Closes every copy before it returns. No effect if no lock is held.

        Unavailable if the process that holds the duplicate does not answer: the lock counts as held until a later call
        succeeds.
        """
        ...


class DropIn(Facts, frozen=True):
    """A logind configuration file that sets InhibitDelayMaxSec."""

    path: str
    value: str


class DelayLimitFiles(Protocol):
    """The configuration files from which logind reads InhibitDelayMaxSec."""

    def write_limit(self, seconds: int) -> bool:
        """Writes the limit to our drop-in (zz-lastcall.conf), atomically; False if it was set already.

        NotPermitted names the path.
        """
        ...

    def list_drop_ins(self) -> Sequence[DropIn]:
        """Every file that sets the limit, in the order in which systemd reads them; the last one takes effect."""
        ...

    async def wait_for_change(self) -> None:
        """Returns when a file that may set the limit has changed since the last call, within about a second.

        The first call waits for a change from then on. Changes by ``write_limit`` do not count. logind itself applies a
        change only when it reads its files again.
        """
        ...


# -- pods --------------------------------------------------------------------------------------------------------------


class PrioritySource(Enum):
    """Where a pod's priority comes from, in the order in which sources count."""

    WATCH = "Watch"  # the API, as last seen by this process
    CHECKPOINT = "Checkpoint"  # the API, as an earlier run of the agent has kept it on the disk
    MANIFEST = "Manifest"  # a static pod's
    RUNTIME = "Runtime"  # an annotation that the container runtime keeps
    DEFAULT = "Default"  # no source knows it, so that it counts as 0


class RunningPod(Facts, frozen=True):
    """A pod on this node with its running containers.

    ``containers`` maps the names of the containers that run now (sidecars too) to the runtime's ids.
    """

    pod: Pod
    containers: dict[str, str]
    sandbox: str = ""
    priority_source: PrioritySource = PrioritySource.DEFAULT

    @property
    def is_spec_known(self) -> bool:
        """Whether the pod is described by the API, the checkpoint or a manifest, and not by the runtime alone."""
        return self.priority_source not in (PrioritySource.RUNTIME, PrioritySource.DEFAULT)


class ApplicationReadiness(Facts, frozen=True):
    """Whether the application of a guarded pod can do without the pod; ``message`` says to a person why not."""

    is_ready: bool
    message: str = ""


class HookResult(Facts, frozen=True):
    """The outcome of a preStop hook. ``ok`` is False also if it exceeded its limit (``timed_out``)."""

    ok: bool
    timed_out: bool = False
    message: str = ""


class PodRuntime(Protocol):
    """The runtime of the pods: containerd through CRI, or plain processes. Only the methods that end pods.

    Unavailable if the runtime cannot be reached. Unknown and removed containers and pods count as ended.
    """

    async def list_pods(self) -> Sequence[RunningPod]:
        """The pods with at least one running container, now or within the last few seconds; cheap."""
        ...

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """The same, read again from the runtime."""
        ...

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """The pod's current state, read by its sandbox: the containers that run. None if none runs."""
        ...

    async def ping(self) -> None:
        """Returns as soon as the runtime answers; cheap, and independent of the state of its containers."""
        ...

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs a preStop hook for at most ``limit`` seconds; no part of it runs on afterwards. Never raises."""
        ...

    def reserve_stop(self) -> float:
        """Seconds after which ``stop_container`` may follow, a quarter of one at most; each call takes one turn.

        A request that is sent earlier delays those before it, and its own SIGTERM comes no sooner.
        """
        ...

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """Sends SIGTERM and waits until the container ends; returns its exit code, None if unknown.

        A container receives SIGTERM once, however often and from whichever process this is called, as far as the
        runtime can know. The runtime sends SIGKILL no later than the next whole second after ``grace``; the caller can
        kill earlier with ``kill_container``.
        """
        ...

    async def kill_container(self, container_id: str) -> None:
        """Sends SIGKILL; returns when it is sent. A running ``stop_container`` returns when the container has ended."""
        ...

    async def forget_container(self, container_id: str) -> None:
        """Removes an ended container with its exit code, so that it counts as one that has never run.

        A running container is left alone. LastcallError if it cannot be removed.
        """
        ...

    async def tear_down_pod(self, live: RunningPod) -> None:
        """Removes what remains of a pod (its sandbox) after its last container has ended.

        A pod with a running container is left alone, even if ``live`` does not list that container.
        """
        ...

    def kill_seconds(self, containers: int) -> float:
        """Seconds to send and confirm this many kills: SIGKILL is sent that long before the end of a phase."""
        ...


class PodStarter(Protocol):
    """Starts pods; only the lab's node does. The same object as its PodRuntime."""

    async def start_pod(self, pod: Pod) -> RunningPod:
        """Starts all containers (sidecars first, init containers to completion); returns when they run.

        InvalidInput for a feature that this runtime lacks, Unavailable if it cannot be reached.
        """
        ...

    async def remove_pod(self, uid: str) -> None:
        """Kills what still runs of a pod and forgets the pod."""
        ...

    async def next_ended(self) -> tuple[str, str, int | None]:
        """The next container that ended, in order: pod UID, container name, exit code."""
        ...


class NodeFace(Protocol):
    """The node's state as the cluster sees it. The lab's node writes all of it; on a real node the kubelet does.

    ``begin_shutdown`` and ``mark_ready`` never run concurrently: the superseded one is cancelled first. ``mark_ready``
    is retried if it raises; errors of the other methods are logged, and the shutdown continues.
    """

    def refuse_pods(self) -> None:
        """Refuses new pods from now on. Immediate, no I/O."""
        ...

    async def begin_shutdown(self, deadline: float) -> None:
        """Steps before the first kill: Ready=False, "node is shutting down"; beside a kubelet, stop the kubelet.

        Returns when they are done. ``deadline`` (boottime) is the latest time of the lock's release. A restarted agent
        that resumes the shutdown calls this again.
        """
        ...

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Names the namespaces of the pods that will be terminated, before the first ``begin_pod``. Immediate.

        Called beside ``begin_shutdown``, and again after it.
        """
        ...

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Waits for the application of a guarded pod, whose termination has not begun; None at once for any other pod.

        Returns when the application can do without the pod, or when ``until()`` (boottime) has passed.
        """
        ...

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Announces that the termination of a pod with ``grace`` seconds begins; its hooks start at the same time.

        Returns when the pod may get SIGTERM, because no traffic is sent to it any more, or at ``until`` (boottime)
        at the latest. Also called for a pod whose termination an earlier process began, and again after a hook: a
        kubelet that was started meanwhile may have made the pod ready. True if nothing was done that a
        cancellation does not take back, so that the pod may be left alone then.
        """
        ...

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Writes the pod's final status: Failed, unless it has Succeeded already.

        Returns whether all of its volumes are known to be unmounted; False also if no source reports that.
        """
        ...

    async def report_finished(self) -> None:
        """After the last pod: returns when the node's final reports are delivered, or cannot be.

        The caller waits only briefly for it before the machine may go down.
        """
        ...

    def take_notes(self) -> Sequence[str]:
        """What the report shall say of these steps, one sentence each, since the last call. Immediate."""
        ...

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Called when logind has answered that no shutdown is in progress, if none was cancelled in this boot.

        ``last`` is the newest shutdown, which is over; ``last.returned`` is set if it was before this boot. Begins to
        undo what that shutdown left, and to report what could not be reported then; returns at once.
        """
        ...

    async def mark_ready(self) -> None:
        """After a cancelled shutdown: reports Ready and admits pods again. Also called without ``begin_shutdown``."""
        ...


class KubeletFace(NodeFace, Protocol):
    """The part of a node's face that stops and starts its kubelet."""

    async def wait_until_ending(self) -> None:
        """Beside ``begin_shutdown``: returns when the kubelet has its SIGTERM, or none is going to be stopped.

        Some milliseconds pass until its process is gone, in which it has no time to react to a container's end.
        """
        ...

    async def wait_until_stopped_again(self) -> None:
        """Returns when a kubelet that somebody started during the shutdown is next stopped again.

        It has written its own status of the node and the pods.
        """
        ...


# -- disk --------------------------------------------------------------------------------------------------------------


class JournalFile(Protocol):
    """The journal of one shutdown on disk: events, appended line by line."""

    def append(self, line: bytes) -> None:
        """Hands the line to the kernel before it returns, so that it survives this process.

        OSError if the disk is full.
        """
        ...

    async def sync(self) -> None:
        """Flushes to disk before it returns, so that the lines survive the machine."""
        ...


class Journals(Protocol):
    """The journals of this node's shutdowns; only the newest are kept."""

    def create(self, shutdown_id: str) -> JournalFile:
        """A new, empty journal."""
        ...

    def latest(self) -> tuple[str, list[bytes]] | None:
        """ID and complete lines of the newest journal; a last line that a power cut truncated is left out.

        A journal of this boot is newer than all others, whatever the wall clock was when they were written.
        """
        ...

    def reopen(self, shutdown_id: str) -> JournalFile:
        """Opens a journal to continue it; removes a truncated last line first."""
        ...

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """Writes graceful_node_shutdown_state in the kubelet's own format beside our journals; wall-clock seconds."""
        ...
