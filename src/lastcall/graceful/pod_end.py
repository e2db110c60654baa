"""Ends the containers of one pod: hooks, SIGTERM, sidecars in their turn, SIGKILL at the exact moment.

The times come from ``termination``; this loop only waits and acts. Containers are ended all at once, sidecars after
the main ones in the reverse of their order of start (KEP-753); their hooks run at once like everybody's.
"""

import asyncio
from collections.abc import Callable, Iterable

from lastcall.aio import Group, all_done, any_done, cancel, first
from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.allotment import Allotment
from lastcall.graceful.termination import was_killed
from lastcall.model.pods import Container, Handler, sidecars
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerRecord,
    Event,
    HookEnded,
    HookStarted,
    Signalled,
)
from lastcall.ports import Clock, HookResult, LivePod, PodRuntime

Tell = Callable[[Event], None]

_RETRY = 0.25
"""Seconds between two attempts to reach a runtime that is away."""


class PodEnd:
    """The end of the containers that ``live`` names.

    ``before`` tells by container what had been done already, in CLOCK_BOOTTIME seconds.
    """

    def __init__(
        self,
        live: LivePod,
        *,
        time: Allotment,
        runtime: PodRuntime,
        clock: Clock,
        tell: Tell,
        before: Iterable[ContainerRecord] = (),
    ) -> None:
        self.live = live
        self._time = time
        self._runtime = runtime
        self._clock = clock
        self._tell = tell
        before = tuple(before)
        self._before = {c.name: c for c in before if c.ended is None}  # one that runs again is another one
        self._killed_before = any(
            c.kill is not None and c.ended is not None and was_killed(c.exit_code) for c in before
        )
        self._kills = {c.name for c in self._before.values() if c.kill is not None}
        self._uid = live.pod.metadata.uid
        self.codes: dict[str, int | None] = {}
        """Of those that have ended, by name."""

    @property
    def killed(self) -> bool:
        """Whether SIGKILL has ended one of them, or went out to one whose end is not known."""
        return self._killed_before or any(was_killed(self.codes.get(name)) for name in self._kills)

    async def run(self) -> None:
        """Returns when they have ended; being cancelled leaves them as they are."""
        if len(self.live.containers) == 1:  # as most are: no task of its own, which shows with a hundred pods at once
            await self._end(self._spec(*self.live.containers), after=())
        else:
            await self._end_all()

    async def _end_all(self) -> None:
        group = Group()
        try:
            self._start_all(group)
            await group.join()
        finally:
            await group.cancel()

    def _spec(self, name: str) -> Container:
        pod = self.live.pod.spec
        known = (c for c in (*pod.containers, *(pod.init_containers or ())) if c.name == name)
        return next(known, Container(name=name))

    def _start_all(self, group: Group) -> None:
        pod = self.live.pod
        waiting = [c for c in sidecars(pod) if c.name in self.live.containers]
        names = {c.name for c in waiting}
        after = [
            group.start(self._end(self._spec(name), after=()), f"end {pod.key} {name}")
            for name in self.live.containers
            if name not in names
        ]
        for sidecar in reversed(waiting):
            task = group.start(self._end(sidecar, after=tuple(after)), f"end {pod.key} {sidecar.name}")
            after = [*after, task]

    async def _end(self, container: Container, after: "tuple[asyncio.Task[None], ...]") -> None:
        await self._run_hook(container)
        if after:
            await self._wait_for_turn(after)
        await self._stop(container.name)

    async def _run_hook(self, container: Container) -> None:
        """At least once, as Kubernetes promises: a hook that an earlier life did not see the end of runs again."""
        hook, before = container.pre_stop, self._before.get(container.name)
        limit = self._time.window.polite_until - self._clock.boottime()
        if hook is None or limit <= 0 or (before and (before.hook_ended is not None or before.term is not None)):
            return
        self._tell(HookStarted(at=self._clock.boottime(), uid=self._uid, container=container.name))
        result = await self._hook(container.name, hook, limit)
        self._tell(
            HookEnded(
                at=self._clock.boottime(),
                uid=self._uid,
                container=container.name,
                ok=result.ok,
                message=result.message,
            )
        )

    async def _hook(self, name: str, hook: Handler, limit: float) -> HookResult:
        """Runs it for ``limit`` seconds at most, for less if the pod's time is shortened meanwhile."""
        running = asyncio.ensure_future(self._runtime.run_hook(self.live, name, hook, limit))
        try:
            if await first(any_done(running), self._time.cut_short(lambda window: window.polite_until)):
                return HookResult(ok=False, timed_out=True, message="cut off: its phase was shortened")
            return running.result()
        finally:
            await cancel(running)

    async def _wait_for_turn(self, after: "tuple[asyncio.Task[None], ...]") -> None:
        turn = asyncio.ensure_future(all_done(*after))
        alarm = asyncio.ensure_future(self._time.until(lambda window: window.polite_until))
        try:
            await any_done(turn, alarm)
        finally:
            await cancel(alarm, turn)

    async def _stop(self, name: str) -> None:
        before = self._before.get(name)
        term = before.term if before else None
        if term is None:
            term = self._clock.boottime()
            self._tell(Signalled(at=term, uid=self._uid, container=name, signal="TERM"))
        killer = asyncio.ensure_future(self._kill(name, term))
        try:
            code = await self._until_ended(name, term)
        finally:
            await cancel(killer)
        self.codes[name] = code
        self._tell(ContainerEnded(at=self._clock.boottime(), uid=self._uid, container=name, exit_code=code))

    async def _until_ended(self, name: str, term: float) -> int | None:
        while True:
            left = max(0.0, self._time.window.kill_at(term) - self._clock.boottime())
            try:
                return await self._runtime.stop(self.live.containers[name], left)
            except Unavailable:
                await self._clock.sleep(_RETRY)

    async def _kill(self, name: str, term: float) -> None:
        await self._time.until(lambda window: window.kill_at(term))
        self._kills.add(name)
        self._tell(Signalled(at=self._clock.boottime(), uid=self._uid, container=name, signal="KILL"))
        await self._until_killed(name)

    async def _until_killed(self, name: str) -> None:
        """Repeats while the runtime is away; the phase's end, not this, is what gives up."""
        while True:
            try:
                await self._runtime.kill(self.live.containers[name])
                return
            except Unavailable:
                await self._clock.sleep(_RETRY)
            except LastcallError:
                return
