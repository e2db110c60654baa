"""Keeps a FakeLogind's lock beyond the death of a simulated process."""

import asyncio
import contextvars
import math
from collections.abc import Callable

from lastcall.errors import Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.fakes.logind import FakeLogind


class FakeLockHolder:
    """The surviving part: it has one copy of the lock at most, and closes it at its deadline.

    ``on_death`` is called when it is killed.
    """

    def __init__(self, logind: FakeLogind, clock: Clock) -> None:
        self.logind = logind
        self.descriptor: int | None = None
        self.deadline = math.inf
        self.on_death: Callable[[], None] | None = None
        self.clock = clock
        self._closing: asyncio.Task[None] | None = None
        self._home = contextvars.copy_context()

    def take(self, descriptor: int) -> None:
        """Takes this copy in place of the previous one, without a deadline."""
        before, self.descriptor = self.descriptor, descriptor
        self._forget_deadline()
        self.deadline = math.inf
        if before is not None:
            self.logind.close(before)

    def drop(self) -> None:
        """Closes its copy, if it has one."""
        self._forget_deadline()
        if self.descriptor is not None:
            descriptor, self.descriptor = self.descriptor, None
            self.logind.close(descriptor)

    def drop_at(self, boottime: float) -> None:
        """Closes its copy at that time."""
        self._forget_deadline()
        self.deadline = boottime
        self._closing = asyncio.create_task(self._drop_at(boottime), name="the lock's deadline", context=self._home)

    def die(self, *, noticed: bool = True) -> None:
        """This process is killed, and the kernel closes its copy. ``noticed``: by a keeper that still runs."""
        self.drop()
        if noticed and self.on_death:
            self.on_death()

    async def _drop_at(self, boottime: float) -> None:
        await self.clock.sleep(boottime - self.clock.boottime())
        self._closing = None
        self.drop()

    def _forget_deadline(self) -> None:
        if self._closing:
            self._closing.cancel()
            self._closing = None


class FakeLockKeeper:
    """``ports.node.LockKeeper`` of one simulated process; those of one node share the holder."""

    def __init__(self, holder: FakeLockHolder) -> None:
        self._holder = holder
        self._clock = holder.clock
        self._own: int | None = None
        self._dead = False
        self.refusing = 0
        """The next calls of ``release`` that raise Unavailable and leave the holder's copy open."""

    @property
    def is_held(self) -> bool:
        """Whether a lock is held now."""
        return self._own is not None or self._holder.descriptor is not None

    async def recover(self) -> bool:
        """Takes back the lock of an earlier process."""
        if self._own is None and self._holder.descriptor is not None:
            self._own = self._holder.logind.duplicate(self._holder.descriptor)
            self._holder.on_death = self._replace_holder
        return self.is_held

    async def keep_lock(self, descriptor: int) -> None:
        """Takes ownership of the descriptor and leaves a copy with the holder; then closes the previous lock."""
        before, self._own = self._own, descriptor
        self._holder.take(self._holder.logind.duplicate(descriptor))
        self._holder.on_death = self._replace_holder
        if before is not None:
            self._holder.logind.close(before)

    async def set_deadline(self, boottime: float) -> None:
        """Has the holder's copy closed then, even if this process dies."""
        if self._holder.descriptor is not None:
            self._holder.drop_at(boottime)

    async def release(self) -> None:
        """Closes every copy before it returns; late requests of a killed process do not reach the holder."""
        if not self._dead:
            self._close_copy()
            if self.refusing:
                self.refusing -= 1
                raise Unavailable("what keeps the lock does not answer")
            self._holder.drop()

    def _replace_holder(self) -> None:
        """The holder has died: a new one gets a copy, and the deadline, if that is not past."""
        deadline = self._holder.deadline
        if self._own is not None and self._clock.boottime() < deadline:
            self._holder.take(self._holder.logind.duplicate(self._own))
            if deadline < math.inf:
                self._holder.drop_at(deadline)

    def die(self) -> None:
        """This process is killed: the kernel closes its copy, the holder's stays."""
        self._dead = True
        self._close_copy()

    def _close_copy(self) -> None:
        self._holder.on_death = None
        if self._own is not None:
            descriptor, self._own = self._own, None
            self._holder.logind.close(descriptor)
