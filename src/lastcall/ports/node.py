"""The roles that the outside plays, one narrow Protocol each; ``adapters`` implement them, programs only know these.

Those of fences stand in ``ports_fences``, those of the watchdog in ``ports_watchdog``.

Times are seconds. ``boottime`` is CLOCK_BOOTTIME: it never jumps and means the same to every process of one boot.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from lastcall.model.base import Facts
from lastcall.model.pods import LifecycleHandler, Pod


class Clock(Protocol):
    """Time, so that it can be a test's."""

    def boottime(self) -> float:
        """Seconds since boot, suspend included; for every budget and deadline."""
        ...

    def wall(self) -> float:
        """Seconds since 1970 UTC; only for what people read."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits; zero or less only lets others run."""
        ...


# -- logind ------------------------------------------------------------------------------------------------------------


class Inhibitor(Facts, frozen=True):
    """One line of logind's ListInhibitors."""

    what: str
    who: str
    why: str
    mode: str
    uid: int
    pid: int


class LogindChange(Enum):
    """What a logind session heard. Always a reason to read the properties again, never a proof by itself."""

    PREPARING = "PrepareForShutdown(true)"
    CANCELLED = "PrepareForShutdown(false)"
    RESTARTED = "logind has another owner on the bus"
    SCHEDULED = "ScheduledShutdown changed"


class LogindSession(Protocol):
    """One connection to the system bus on which logind answers, with its signals already subscribed.

    Every verb raises ``Unavailable`` once the bus is lost or logind does not answer; the session is then of no more
    use and is to be closed. A lock outlives its session: the lock is the descriptor.
    """

    async def is_preparing(self) -> bool:
        """The property PreparingForShutdown."""
        ...

    async def max_delay(self) -> float:
        """The property InhibitDelayMaxUSec in seconds; ``inf`` if unlimited."""
        ...

    async def take_lock(self, why: str) -> int:
        """A new delay lock on shutdown; a descriptor (close-on-exec) that the caller owns.

        ShutdownUnderWay while a shutdown is being prepared, NotPermitted without the right.
        """
        ...

    async def list_inhibitors(self) -> Sequence[Inhibitor]:
        """Everybody's locks."""
        ...

    async def scheduled_shutdown(self) -> str:
        """The type of the shutdown that is scheduled or under way ("poweroff", "reboot", ...), or ""."""
        ...

    async def reload(self) -> None:
        """Has systemd send SIGHUP to logind (KillUnit), which then reads its drop-ins again."""
        ...

    async def next_change(self) -> LogindChange:
        """The next thing heard, in order; none is lost between two calls. Unavailable when the bus is lost."""
        ...

    async def wait_for_change(self) -> None:
        """Returns when properties may be otherwise than now, or the bus be lost. At once if nobody can know."""
        ...

    def close(self) -> None:
        """Leaves the bus; locks stay. May be called twice."""
        ...


class Logind(Protocol):
    """systemd-logind on this machine's system bus."""

    async def open(self) -> LogindSession:
        """A session, its signals subscribed before this returns. Unavailable says what is missing."""
        ...


class LockKeeper(Protocol):
    """Keeps a delay lock so that it outlives this process, and closes every copy when it is released.

    "Released" means that logind sees the end of the lock: no process holds a copy any more.
    """

    @property
    def is_held(self) -> bool:
        """Whether a lock is kept now, by this process or by one before it."""
        ...

    async def recover(self) -> bool:
        """Takes back what an earlier life of this program left; True if a lock is held now."""
        ...

    async def keep_lock(self, descriptor: int) -> None:
        """Takes over the descriptor and places a duplicate where it survives this process.

        A lock kept before is released afterwards, so that there is always one.
        """
        ...

    async def set_deadline(self, boottime: float) -> None:
        """The duplicate closes itself then, whatever becomes of this process."""
        ...

    async def release(self) -> None:
        """Every copy is closed when this returns. Nothing happens if none is held.

        Unavailable if what has the duplicate does not answer: a lock counts as held until another call has worked.
        """
        ...


class DropIn(Facts, frozen=True):
    """A logind configuration file that sets InhibitDelayMaxSec."""

    path: str
    value: str


class DelayLimitFiles(Protocol):
    """The files from which logind takes InhibitDelayMaxSec."""

    def write_limit(self, seconds: int) -> bool:
        """Makes our drop-in (zz-lastcall.conf) say so, atomically; False if it said so already.

        NotPermitted names the path.
        """
        ...

    def list_drop_ins(self) -> Sequence[DropIn]:
        """Every file that sets the limit in the order in which systemd reads them: the last one wins."""
        ...

    async def wait_for_change(self) -> None:
        """Returns when a file that may set the limit has changed since the last call, within a second or so.

        At the first call, since then. What ``write_limit`` changes does not count. logind itself takes no notice before it reads its files again.
        """
        ...


# -- pods --------------------------------------------------------------------------------------------------------------


class RunningPod(Facts, frozen=True):
    """A pod on this node with its running containers.

    ``containers`` maps the names of the containers that run now (sidecars too) to the runtime's ids.
    """

    pod: Pod
    containers: dict[str, str]
    sandbox: str = ""


class HookResult(Facts, frozen=True):
    """How a preStop hook ended. ``ok`` is False also when it outlived its limit (``timed_out``)."""

    ok: bool
    timed_out: bool = False
    message: str = ""


class PodRuntime(Protocol):
    """What runs the pods: containerd through CRI, or plain processes. Only the verbs that end pods.

    A runtime that cannot be reached raises Unavailable. Containers and pods that are unknown or gone count as ended.
    """

    async def list_pods(self) -> Sequence[RunningPod]:
        """The pods with at least one running container, as of now or of the last few seconds; cheap to ask."""
        ...

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """The same, read anew."""
        ...

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """This pod as it is now, asked anew: its containers that run, by its sandbox. None if nothing of it runs."""
        ...

    async def ping(self) -> None:
        """Returns as soon as the runtime answers; cheap to ask, and independent of what its containers do."""
        ...

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs a preStop hook and waits, ``limit`` seconds at most; afterwards nothing of it runs on. Never raises."""
        ...

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """SIGTERM, then waits until the container has ended; its exit code, or None if that is not known.

        SIGTERM is sent once in a container's life, however often this is called and by whichever process, as far as
        the runtime can know. The runtime sends SIGKILL by itself no later than the next whole second after ``grace``;
        the caller kills sooner by ``kill_container``.
        """
        ...

    async def kill_container(self, container_id: str) -> None:
        """SIGKILL now; returns when it was sent. ``stop_container``, if under way, returns when the container has ended."""
        ...

    async def tear_down_pod(self, live: RunningPod) -> None:
        """After the last container has ended: tears down what remains of the pod (its sandbox).

        A pod of which something runs is left alone, also if ``live`` does not know that container.
        """
        ...

    def kill_seconds(self, containers: int) -> float:
        """How long so many kills take to be sent and confirmed: SIGKILL goes out that long before a phase's end."""
        ...


class PodStarter(Protocol):
    """Starts pods; only the lab's node does that. The same object as its PodRuntime."""

    async def start_pod(self, pod: Pod) -> RunningPod:
        """Starts all containers (sidecars first, init containers run to their end); returns when they run.

        InvalidInput for what this runtime cannot do, Unavailable if the runtime cannot be reached.
        """
        ...

    async def remove_pod(self, uid: str) -> None:
        """Kills what still runs of a pod and forgets it."""
        ...

    async def next_ended(self) -> tuple[str, str, int | None]:
        """The next container that has ended, in order: pod uid, container name, exit code."""
        ...


class NodeFace(Protocol):
    """What others see of this node. The lab's node writes all of it; beside a real kubelet, the kubelet does.

    ``begin_shutdown`` and ``mark_ready`` are never asked for at once: the one that is overtaken is cancelled first. ``mark_ready`` is
    tried again if it raises; what the others raise is noted, and the shutdown goes on.
    """

    def refuse_pods(self) -> None:
        """From this moment new pods are refused. At once, no I/O."""
        ...

    async def begin_shutdown(self, deadline: float) -> None:
        """What comes before the first kill: Ready=False, "node is shutting down"; beside a kubelet, its stop.

        Returns when that is done. ``deadline`` (boottime) is when the lock is released at the latest. Called again by
        a later life of the agent that goes on with the shutdown.
        """
        ...

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """The pod's last status: Failed, unless it is Succeeded already.

        Whether all of its volumes are known to be unmounted; False also where nobody says so.
        """
        ...

    async def report_finished(self) -> None:
        """After the last pod: returns when what others are to know of this node is told, or cannot be.

        It is waited for a moment only, before the machine may go down.
        """
        ...

    async def mark_ready(self) -> None:
        """The shutdown was cancelled: ready again, pods are admitted again. Also when ``begin_shutdown`` was never called."""
        ...


# -- disk --------------------------------------------------------------------------------------------------------------


class JournalFile(Protocol):
    """One shutdown's events on disk, appended line by line."""

    def append(self, line: bytes) -> None:
        """In the kernel's hands when this returns: it survives this process. A full disk raises OSError."""
        ...

    async def sync(self) -> None:
        """On the disk when this returns: it survives the machine."""
        ...


class Journals(Protocol):
    """The shutdowns that this node has seen; the newest are kept."""

    def create(self, shutdown_id: str) -> JournalFile:
        """A new, empty journal."""
        ...

    def latest(self) -> tuple[str, list[bytes]] | None:
        """Id and whole lines of the newest journal; a last line that was torn by a power cut is left out.

        One of this boot is newer than all others, whatever the wall clock said when they were written.
        """
        ...

    def reopen(self, shutdown_id: str) -> JournalFile:
        """To go on with it; a torn last line is cut off first."""
        ...

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """The kubelet's own state format (graceful_node_shutdown_state) beside our journals; wall-clock seconds."""
        ...
