"""A program in virtual time that can be killed between any two awaits."""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from lastcall_lab.virtual.loop import running_loop
from lastcall_lab.virtual.task_owners import OWNER, OwnedTask

P = ParamSpec("P")
T = TypeVar("T")


class VirtualProcess:
    """Tasks, callbacks and timers that live and die together, as those of one operating system process do.

    What is started within a process belongs to it: by ``start`` and ``call``, and everything that these start in
    their turn. A process is made on a running ``VirtualLoop``, alive; one that has died stays dead: a restarted
    program is a new Process. One that is made within another is its own, and does not die with it.

    **Death** is SIGKILL. From then on nothing of the process is run: no step of a task, no ``finally``, no
    ``except CancelledError``, no callback (also those that it has set on futures of others), no timer. What others
    await of it never comes, so processes share ports only, and call each other by ``within``; who awaits a task of it
    all the same waits for ever, or until he is cancelled himself, which ends the wait of all who await that task. Its frames are kept until the loop is closed, so
    that nothing of them runs as garbage either.

    Death comes between two steps. A step is what runs from one await that waits to the next, or one callback; what
    happens in it happens wholly or not at all. If a process is killed by its own step, that step goes on to its next
    await, and is the last one.

    Attributes: ``name``; ``alive``; ``steps``, how many it has run; ``fuse``, after how many more it dies by itself,
    before the next one begins (0: it does nothing more; None: it does not). To die between any two awaits of a
    scenario, run it once, read ``steps``, and run it again with each smaller fuse.

    A process that is stopped (``pause``, as by SIGSTOP) does nothing either, and is not told: its timers pass, what
    others send it waits, and all of that happens at once when it goes on (``resume``), in the order in which it came.

    ``on_death`` is called at once when it dies, in the context of who made the process: there the kernel closes
    descriptors and the machine restarts the program. Its exceptions are those of who kills; of a fuse, the loop's.
    """

    def __init__(self, name: str, *, fuse: int | None = None, on_death: Callable[[], object] | None = None) -> None:
        self.name = name
        self.alive = True
        self.steps = 0
        self.fuse = fuse
        self.tasks: WeakSet[OwnedTask] = WeakSet()
        self.generators: WeakSet[AsyncGenerator[Any, Any]] = WeakSet()
        self._loop = running_loop()
        self._context = contextvars.copy_context()
        self._context.run(OWNER.set, self)
        self._at_death: dict[object, Callable[[], object]] = {}
        self._held: list[asyncio.Handle] | None = None
        self._loop.add_owner(self)
        if on_death:
            self.on_death(on_death)

    def __repr__(self) -> str:
        return f"<Process {self.name}{'' if self.alive else ', dead'}>"

    def start(self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """A task of the process. RuntimeError if it is dead; ``work`` is closed then."""
        if not self.alive:
            work.close()
            raise RuntimeError(f"{self.name} is dead: it cannot start {name}")
        return self._loop.create_task(work, name=name, context=self._context.copy())

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls a function at once as the process: what it starts belongs to it. RuntimeError if it is dead."""
        if not self.alive:
            raise RuntimeError(f"{self.name} is dead: it cannot call {function}")
        return self._context.copy().run(function, *args, **kwargs)

    def kill(self) -> None:
        """SIGKILL. What ``on_death`` was told is called, in order, before this returns. A second time it is nothing."""
        if not self.alive:
            return
        self.end_silently()
        told, self._at_death = self._at_death, {}
        for callback in told.values():
            callback()

    def pause(self) -> None:
        """SIGSTOP. A second time it is nothing."""
        if self._held is None:
            self._held = []

    def resume(self) -> None:
        """SIGCONT. Nothing if it is not stopped."""
        held, self._held = self._held, None
        if held and self.alive:
            self._loop.run_soon(held)

    def end_silently(self) -> None:
        """For the loop, when the run is over: it is dead, and nobody hears of it."""
        self.alive = False
        self._loop.keep_dead(self)

    def on_death(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Calls it when the process dies, in the context of who asks for it; at once if it is dead already.

        The answer takes that back.
        """
        if not self.alive:
            callback()
            return lambda: None
        key, context = object(), contextvars.copy_context()
        self._at_death[key] = lambda: context.copy().run(callback)

        def forget() -> None:
            self._at_death.pop(key, None)

        return forget

    def admit_step(self, handle: asyncio.Handle) -> bool:
        """For the loop: whether a step of the process runs now. Nothing of the dead runs; a stopped process keeps it."""
        if not self.alive:
            return False
        if self._held is not None:
            self._held.append(handle)
            return False
        if self.fuse is not None:
            if self.fuse <= 0:
                self.kill()
                return False
            self.fuse -= 1
        self.steps += 1
        return True


def current_process() -> VirtualProcess | None:
    """The process whose step runs now; None outside of all processes. Dead if this is the step that has killed it."""
    owner = OWNER.get()
    assert owner is None or isinstance(owner, VirtualProcess)
    return owner
