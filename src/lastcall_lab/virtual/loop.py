"""An asyncio event loop in virtual time: its clock jumps to the next timer."""

import asyncio
import contextlib
import heapq
import itertools
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from contextvars import Context
from typing import Any, NoReturn, TypeVar, TypeVarTuple
from weakref import WeakSet

from lastcall.aio import cancel_and_wait
from lastcall_lab.virtual.dead_processes import silence_warnings, unwind_coroutine
from lastcall_lab.virtual.handles import StepHandle, StepTimer
from lastcall_lab.virtual.task_owners import OWNER, OwnedTask, TaskOwner
from lastcall_lab.virtual.trace import Trace, step_name

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(RuntimeError):
    """Every task waits, and no timer is set that could wake one."""


class Standstill(RuntimeError):
    """Virtual time does not advance: programs answer each other at one moment without end."""


_MOST_TURNS = 1_000_000
"""Turns of the loop at one moment. Thousands of pods that start at once take tens of thousands."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs what is ready in order of arrival; when nothing is, time jumps to the next timer.

    The order of everything follows from what the programs do: ties in time go to the timer that was set first, and
    nothing depends on addresses, on the machine's speed or on how many loops there were before. Threads, sockets,
    pipes, signals and subprocesses are refused with a RuntimeError.

    What belongs to a process that is dead (``Process``) is not run: no step, no callback, no timer of it.

    ``trace_digest()`` is a hash of all that was marked: the lines of ``mark_trace``, and with ``steps`` each step's time, process
    and name. The same programs with the same seed have the same trace, in every run and on every Python: where they
    do not, something depends on addresses, on the order of a set, on real time or on real randomness. ``listen``
    hears each line.
    """

    _stopping: bool
    _closed: bool
    _debug: bool
    _thread_id: int | None

    def __init__(self, *, steps: bool = False, listen: Callable[[str], object] | None = None) -> None:
        super().__init__()
        self._steps = steps
        self._trace = Trace(listen)
        self._now = 0.0
        self._turns = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()
        self._numbers = itertools.count()
        self._failure: BaseException | None = None
        self._ending = False
        self._living: dict[TaskOwner, None] = {}
        self._nobodys: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._dead_tasks: list[OwnedTask] = []
        self._dead_generators: list[AsyncGenerator[Any, Any]] = []
        self.set_exception_handler(self._on_exception)

    # -- time ----------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A timer; those of one moment run in the order in which they were set."""
        make = asyncio.TimerHandle if self._debug else StepTimer
        handle = make(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """A step of the next turn. As BaseEventLoop's, without its calls for the debug mode when that is off."""
        if self._debug or self._closed:
            handle = super().call_soon(callback, *args, context=context)
            del handle._source_traceback[-1]  # type: ignore[attr-defined]  # noqa: SLF001  (this function)
            return handle
        step = StepHandle(callback, args, self, context)
        self._ready.append(step)  # type: ignore[attr-defined]
        return step

    # -- running -------------------------------------------------------------------------------------------------------

    def run_forever(self) -> None:
        """Until stopped; Deadlock when nothing can happen any more, Standstill when time does not go on. An exception that nobody handles is raised."""
        with self._running_context():
            while not self._stopping:
                self._run_turn()

    @contextlib.contextmanager
    def _running_context(self) -> Generator[None]:
        """As BaseEventLoop does it: ``asyncio.get_running_loop`` and async generators find the loop."""
        previous, hooks = asyncio._get_running_loop(), sys.get_asyncgen_hooks()  # noqa: SLF001
        asyncio._set_running_loop(self)  # noqa: SLF001
        sys.set_asyncgen_hooks(firstiter=self._on_generator_start, finalizer=self._on_generator_garbage)
        self._thread_id = threading.get_ident()
        try:
            yield
        finally:
            self._stopping = False
            self._thread_id = None
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(previous)  # noqa: SLF001

    def _run_turn(self) -> None:
        ready, timers = self._ready, self._timers  # type: ignore[attr-defined]
        if not ready:
            while timers and _is_useless(timers[0][2]):
                heapq.heappop(timers)
            if not timers:
                raise Deadlock(f"at {self._now:.3f} s every task waits and no timer is set")
            if timers[0][0] > self._now:
                self._now, self._turns = timers[0][0], 0
        self._turns += 1
        if self._turns > _MOST_TURNS:
            self._turns = 0
            raise Standstill(
                f"time does not go on at {self._now:.3f} s; next: {', '.join(map(step_name, [*ready][:9]))}"
            )
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:  # noqa: SLF001
                continue
            owner = handle._context.get(OWNER)  # noqa: SLF001
            if owner is None or owner.admit_step(handle):
                if self._steps:
                    self._trace.add(self._now, owner.name if owner else "-", step_name(handle))
                handle._run()  # noqa: SLF001
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure

    def run_soon(self, handles: Iterable[asyncio.Handle]) -> None:
        """Runs handles that were held back, in this order."""
        self._ready.extend(handles)  # type: ignore[attr-defined]

    def _on_exception(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        exception, owner = context.get("exception"), getattr(context.get("future"), "owner", None)
        if owner is not None and not owner.alive:
            return  # who would have looked at it is dead
        if isinstance(exception, BaseException) and not self._failure:
            self._failure = exception

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when their time comes."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""

    # -- the trace -----------------------------------------------------------------------------------------------------

    def mark_trace(self, text: str) -> None:
        """Adds a line to the trace: a request, a delivery, a fault."""
        owner = OWNER.get()
        self._trace.add(self._now, owner.name if owner else "-", text)

    def trace_digest(self) -> str:
        """The hash of all that has been marked so far, in hexadecimal."""
        return self._trace.digest()

    # -- tasks ---------------------------------------------------------------------------------------------------------

    def create_task(  # type: ignore[override]  # newer Pythons add options, which are refused
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        """A task of the process in whose context it is started. Without a name it has that of its function."""
        if self.get_task_factory():
            made = super().create_task(coro, name=name, context=context)
            self._nobodys.add(made)
            return made
        self._check_closed()  # type: ignore[attr-defined]
        task = OwnedTask(coro, loop=self, name=name or getattr(coro, "__qualname__", "task"), context=context)
        task.number = next(self._numbers)
        owner = task.owner = OWNER.get() if context is None else context.get(OWNER)
        if owner is None:
            self._nobodys.add(task)
        else:
            owner.tasks.add(task)
            if not owner.alive:
                self._dead_tasks.append(task)
        return task

    def _unfinished_tasks(self) -> "list[asyncio.Task[Any]]":
        """Those of no process that are not over, in the order in which they were started; by name, a factory's."""
        found = [one for one in self._nobodys if not one.done()]
        ours = [one for one in found if isinstance(one, OwnedTask)]
        others = [one for one in found if not isinstance(one, OwnedTask)]
        return [*sorted(ours, key=lambda one: one.number), *sorted(others, key=lambda one: one.get_name())]

    def _on_generator_start(self, generator: AsyncGenerator[Any, Any]) -> None:
        """An async generator begins."""
        if owner := OWNER.get():
            owner.generators.add(generator)

    def _on_generator_garbage(self, generator: AsyncGenerator[Any, Any]) -> None:
        """One is garbage before its end: its ``finally`` runs in a task, as asyncio has it."""
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())

    # -- the dead ------------------------------------------------------------------------------------------------------

    def add_owner(self, owner: TaskOwner) -> None:
        """Registers a live process."""
        self._living[owner] = None

    def keep_dead(self, owner: TaskOwner) -> None:
        """Keeps a dead process until the run ends, so that garbage collection runs no ``finally`` of it."""
        del self._living[owner]
        dead = sorted((task for task in owner.tasks if not task.done()), key=lambda task: task.number)
        self._dead_tasks += dead
        self._dead_generators += owner.generators
        if self._ending:
            for task in dead:
                task.cancel()  # the end does not wait for them

    def end_run(self) -> None:
        """The run is over: processes stop where they stand, all else is cancelled, in order of start, and ends."""
        self._ending = True
        while self._living or self._unfinished_tasks():
            for owner in [*self._living]:
                owner.end_silently()
            self.run_until_complete(cancel_and_wait(*self._unfinished_tasks()))

    def close(self) -> None:
        """Closes the loop; what dead processes have left is closed without a word."""
        with silence_warnings():
            super().close()
            self._timers.clear()
            for task in self._dead_tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
                unwind_coroutine(task.get_coro())
            self._dead_tasks.clear()
            self._dead_generators.clear()

    # -- what there is not ---------------------------------------------------------------------------------------------

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError("there are no threads, sockets, pipes, signals and subprocesses in virtual time")

    run_in_executor = _refuse
    getaddrinfo = getnameinfo = _refuse
    create_connection = create_server = create_datagram_endpoint = _refuse
    create_unix_connection = create_unix_server = connect_accepted_socket = start_tls = sendfile = _refuse
    sock_accept = sock_connect = sock_recv = sock_recv_into = sock_recvfrom = sock_recvfrom_into = _refuse
    sock_sendall = sock_sendto = sock_sendfile = _refuse
    connect_read_pipe = connect_write_pipe = subprocess_exec = subprocess_shell = _refuse
    add_reader = remove_reader = add_writer = remove_writer = _refuse
    add_signal_handler = remove_signal_handler = _refuse


def run(main: Coroutine[Any, Any, T], *, steps: bool = False, listen: Callable[[str], object] | None = None) -> T:
    """Runs ``main`` to its end in virtual time, which begins at 0.

    What it leaves running ends then: processes stop where they stand, as if killed without anybody hearing of it
    (nothing of them runs on, and nothing is called at their death); all other tasks are cancelled, in order of start,
    and have ended when this returns. ``steps`` and ``listen`` are the loop's.

    What dead processes have left is closed last, outside of the loop: a ``finally`` of theirs that waits or asks for
    the loop does nothing, one that only changes an object does so. So the truth of a run is to be judged within it.
    """
    loop = VirtualLoop(steps=steps, listen=listen)
    try:
        return loop.run_until_complete(main)
    finally:
        try:
            loop.end_run()
        finally:
            loop.close()


def running_loop() -> VirtualLoop:
    """The running loop. RuntimeError if there is none, or if it is no virtual one."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise RuntimeError("this is for virtual time only: see lastcall_lab.virtual.run")  # noqa: TRY004  (as asyncio)
    return loop


def _is_useless(handle: asyncio.TimerHandle) -> bool:
    """Whether a timer is cancelled, or its owner is dead."""
    if handle.cancelled():
        return True
    owner = handle._context.get(OWNER)  # type: ignore[attr-defined]  # noqa: SLF001
    return owner is not None and not owner.alive
