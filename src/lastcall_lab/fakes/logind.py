"""systemd-logind as an object in this process, for virtual time and for machines without logind.

Its decisions are those observed of the real one (systemd 252 and 257; one contract suite checks both). Descriptors are
its own numbers: ``duplicate`` and ``close`` replace the operating system's calls.
"""

import asyncio
import contextvars
import itertools
import math
from collections.abc import Awaitable, Callable

from lastcall.aio import Signal
from lastcall.errors import NotPermitted, ShutdownUnderWay, Unavailable
from lastcall.names import LOCK_WHO
from lastcall.ports.node import Clock, Inhibitor, LogindChange
from lastcall_lab.fakes.delay_limit_files import FakeLimitFiles
from lastcall_lab.fakes.logind_session import FakeLogindSession
from lastcall_lab.fakes.systemd_calls import SystemdCall, SystemdResponse

_DONE_SECONDS = 0.2
_FIRST_DESCRIPTOR = 1000


class FakeLogind:
    """``ports.node.Logind``, and the machine around it.

    ``version`` is systemd's: before 257 a started shutdown cannot be cancelled, and a schedule causes no signals.
    """

    def __init__(self, clock: Clock, *, version: int = 257, files: FakeLimitFiles | None = None) -> None:
        self.version = version
        self.files = files or FakeLimitFiles()
        self.descriptors: dict[int, Inhibitor] = {}
        """The open copies of locks."""
        self._clock = clock
        self._numbers = itertools.count(_FIRST_DESCRIPTOR)
        self._limit = self.files.effective_seconds()
        self._mode = SystemdResponse.HANG
        self._calls: list[SystemdCall] = []
        self._sessions: list[FakeLogindSession] = []
        self._bus = True
        self._serving = True
        self._preparing = False
        self._kind = ""
        self._scheduled = ""
        self._job = 0
        self._patience: asyncio.Task[None] | None = None
        self._schedule: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []
        self.moved = Signal()
        """Set when the answers to a session may change."""
        self._home = contextvars.copy_context()

    # -- ports.Logind --------------------------------------------------------------------------------------------------

    async def open(self) -> FakeLogindSession:
        """A session. Unavailable if the bus or logind is down."""
        self.check()
        session = FakeLogindSession(self)
        self._sessions.append(session)
        return session

    # -- what people and programs do -----------------------------------------------------------------------------------

    async def power_off(self) -> None:
        """Begins a shutdown. Raises ShutdownUnderWay; NotPermitted if the target is masked."""
        self._shut_down("poweroff")

    async def reboot(self) -> None:
        """Begins a reboot; raises as ``power_off``."""
        self._shut_down("reboot")

    async def shut_down(self, kind: str) -> None:
        """Begins a shutdown of another kind, such as kexec or soft-reboot; raises as ``power_off``."""
        self._shut_down(kind)

    async def schedule(self, kind: str, seconds: float) -> None:
        """Schedules a shutdown of this kind in so many seconds."""
        self.check()
        self._drop_schedule()
        self._scheduled = kind
        self._schedule = self._run_after(seconds, self._run_schedule)
        self._tell_schedule()

    async def cancel_schedule(self) -> None:
        """Cancels a schedule; since systemd 257 also a shutdown that waits for locks, without a signal."""
        self.check()
        self._drop_schedule()
        if self._preparing and not self._job and self.version >= 257:
            self._forget_shutdown()
        self._tell_schedule()

    async def starts(self) -> list[SystemdCall]:
        """The units that logind has started: the machine shuts down at ``at``."""
        return list(self._calls)

    async def wait_for_start(self, number: int = 1, *, seconds: float = 20.0) -> SystemdCall:
        """The ``number``-th StartUnit. Raises TimeoutError if it does not come within so many seconds."""
        deadline = self._clock.boottime() + seconds
        while len(self._calls) < number:
            if self._clock.boottime() > deadline:
                raise TimeoutError(f"no StartUnit number {number} within {seconds:g} s")
            await self._clock.sleep(0.01)
        return self._calls[number - 1]

    async def wait_until_settled(self) -> bool:
        """Waits until no shutdown waits for locks: True if the machine shuts down, False if it was dropped."""
        while self._preparing and not self._job:
            await self.moved.next()
        return bool(self._job)

    async def set_mode(self, mode: SystemdResponse) -> None:
        """Sets how systemd answers from now on."""
        self._mode = mode

    async def end_job(self, number: int = 1, result: str = "canceled") -> None:
        """Ends the ``number``-th job, upon which logind considers its shutdown over."""
        if number == self._job:
            self._forget_shutdown()
            self._notify_sessions(LogindChange.CANCELLED)

    # -- faults --------------------------------------------------------------------------------------------------------

    def stop_logind(self) -> None:
        """Ends logind: a shutdown under way is lost silently. Locks and the schedule stay."""
        self._forget_shutdown()
        self._serving = False

    def start_logind(self) -> None:
        """Starts logind, which reads its files."""
        self._serving = True
        self._limit = self.files.effective_seconds()
        self._notify_sessions(LogindChange.RESTARTED)

    def restart_logind(self) -> None:
        """As ``systemctl restart systemd-logind``."""
        self.stop_logind()
        self.start_logind()

    def stop_bus(self) -> None:
        """Closes every session; logind, too, is off the bus, until it is restarted."""
        self._bus = self._serving = False
        for session in self._sessions:
            session.lose()
        self.moved.set()

    def start_bus(self) -> None:
        """Starts the bus. logind does not reconnect by itself."""
        self._bus = True

    # -- descriptors ---------------------------------------------------------------------------------------------------

    def duplicate(self, descriptor: int) -> int:
        """Makes another copy of the same lock."""
        copy = next(self._numbers)
        self.descriptors[copy] = self.descriptors[descriptor]
        return copy

    def close(self, descriptor: int) -> None:
        """Closes one copy; when no lock has a copy left, a waiting shutdown continues."""
        del self.descriptors[descriptor]
        if self._preparing and not self._job and not self.descriptors:
            self._start_unit()

    # -- for the sessions ----------------------------------------------------------------------------------------------

    def check_bus(self) -> None:
        """Raises Unavailable if nobody can be reached over the bus."""
        if not self._bus:
            raise Unavailable("there is no message bus")

    def check(self) -> None:
        """Raises Unavailable if logind cannot be reached."""
        self.check_bus()
        if not self._serving:
            raise Unavailable("org.freedesktop.login1 is not on the bus")

    @property
    def is_preparing(self) -> bool:
        """The property PreparingForShutdown."""
        return self._preparing

    @property
    def limit(self) -> float:
        """The current limit, in seconds."""
        return self._limit

    @property
    def kind(self) -> str:
        """The type of the shutdown that is scheduled or under way."""
        return self._kind or self._scheduled

    def inhibit(self, why: str) -> int:
        """Makes a new lock."""
        if self._preparing:
            raise ShutdownUnderWay("logind refuses Inhibit, since a shutdown is being prepared")
        descriptor = next(self._numbers)
        self.descriptors[descriptor] = Inhibitor(
            what="shutdown", who=LOCK_WHO, why=why, mode="delay", uid=0, pid=descriptor
        )
        return descriptor

    def reload(self) -> None:
        """Reads the files; a waiting shutdown keeps its limit."""
        self._limit = self.files.effective_seconds()
        self.moved.set()

    def leave(self, session: FakeLogindSession) -> None:
        """Ends the session."""
        if session in self._sessions:
            self._sessions.remove(session)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _shut_down(self, kind: str) -> None:
        self.check()
        if self._preparing:
            raise ShutdownUnderWay("logind refuses PowerOff, since a shutdown is being prepared")
        if self._mode is SystemdResponse.MASKED:
            raise NotPermitted(f"{kind}.target is masked")
        self._kind = kind
        self._notify_sessions(LogindChange.PREPARING)
        if math.isinf(self._limit) and self.version < 253:
            raise Unavailable("PowerOff fails with System.Error.EOVERFLOW")  # the signal is never revoked
        self._preparing = True
        if not self.descriptors or self._limit <= 0:
            self._start_unit()
            if self._mode is SystemdResponse.FAIL:
                raise Unavailable("PowerOff fails: systemd refuses every job")
        elif math.isfinite(self._limit):
            self._patience = self._run_after(self._limit, self._start_unit)

    def _start_unit(self) -> None:
        self._cancel_task(self._patience)
        if self._mode is SystemdResponse.FAIL:
            self._forget_shutdown()
            self._notify_sessions(LogindChange.CANCELLED)
            return
        target = f"{self._kind}.target"
        at = self._clock.boottime()
        self._calls.append(SystemdCall(at=at, member="StartUnit", arguments=[target, "replace-irreversibly"]))
        self._job = len(self._calls)
        self.moved.set()
        if self._mode is SystemdResponse.DONE:
            job = self._job
            self._run_after(_DONE_SECONDS, lambda: self.end_job(job, "done"))

    def _forget_shutdown(self) -> None:
        self._cancel_task(self._patience)
        self._preparing = False
        self._job = 0
        self._kind = ""
        self.moved.set()

    def _run_schedule(self) -> None:
        kind, self._scheduled = self._scheduled, ""
        try:
            self._shut_down(kind)
        except (NotPermitted, ShutdownUnderWay, Unavailable):
            pass  # logind only logs it

    def _drop_schedule(self) -> None:
        self._cancel_task(self._schedule)
        self._schedule, self._scheduled = None, ""

    def _tell_schedule(self) -> None:
        self.moved.set()
        if self.version >= 257:
            self._notify_sessions(LogindChange.SCHEDULED)

    def _notify_sessions(self, change: LogindChange) -> None:
        self.moved.set()
        for session in self._sessions:
            session.hear(change)

    def _run_after(self, seconds: float, action: Callable[[], Awaitable[None] | None]) -> "asyncio.Task[None]":
        async def wait() -> None:
            await self._clock.sleep(seconds)
            result = action()
            if result is not None:
                await result

        task = asyncio.create_task(wait(), name=f"logind in {seconds:g} s", context=self._home)
        self._background = [other for other in self._background if not other.done()]
        self._background.append(task)
        return task

    def _cancel_task(self, task: "asyncio.Task[None] | None") -> None:
        """Cancels a task, except the current one, which ends by itself."""
        if task and task is not asyncio.current_task():
            task.cancel()
