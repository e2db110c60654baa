"""A pod runtime whose containers are scripted actors: for virtual time, with a record of the truth.

``deliveries`` is what really reached whom and when; tests judge by it and not by what the agent says of itself.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import NamedTuple

from lastcall.aio import any_done, cancel
from lastcall.errors import Unavailable
from lastcall.model.base import Facts
from lastcall.model.pods import Handler, Pod
from lastcall.ports import Clock, HookResult, LivePod


class Behaviour(Facts, frozen=True):
    """What a container does. Seconds; ``inf`` for never."""

    after_term: float = 0.0  # from SIGTERM to its end
    hook: float = 0.0  # how long its exec or httpGet preStop hook takes
    hook_ok: bool = True
    after_kill: float = 0.0  # from SIGKILL to its end; inf: stuck in the kernel
    code: int = 0  # its exit code when it ends by itself


class Delivery(NamedTuple):
    """Something that reached a container: ``what`` is hook, hook over, TERM, KILL or exit."""

    at: float
    uid: str
    container: str
    what: str


class _Actor:
    def __init__(self, uid: str, name: str, behaviour: Behaviour) -> None:
        self.uid, self.name, self.behaviour = uid, name, behaviour
        self.term_at: float | None = None
        self.killed = False
        self.ended = asyncio.Event()
        self.code: int | None = None


class ActorRuntime:
    """``ports.PodRuntime`` for scripted containers. Outlives the agents that use it, as containerd does."""

    def __init__(self, clock: Clock, *, kill_margin: float = 0.1) -> None:
        self._clock = clock
        self._kill_margin = kill_margin
        self._live: dict[str, LivePod] = {}
        self._actors: dict[str, _Actor] = {}
        self._acting: list[asyncio.Task[None]] = []
        self.deliveries: list[Delivery] = []
        self.away = False
        """While true, every verb raises Unavailable."""

    def add(self, pod: Pod, behaviours: dict[str, Behaviour] | None = None) -> LivePod:
        """A pod that runs from now on."""
        uid = pod.metadata.uid
        names = [c.name for c in pod.spec.containers]
        names += [c.name for c in pod.spec.init_containers or () if c.restart_policy == "Always"]
        for name in names:
            self._actors[f"{uid}/{name}"] = _Actor(uid, name, (behaviours or {}).get(name, Behaviour()))
        live = LivePod(pod=pod, containers={name: f"{uid}/{name}" for name in names})
        self._live[uid] = live
        return live

    def exit(self, container_id: str, code: int = 0) -> None:
        """A container ends by itself."""
        self._act(self._actors[container_id], 0.0, code)

    def running(self) -> list[str]:
        """The ids of the containers that have not ended."""
        return [name for name, actor in self._actors.items() if not actor.ended.is_set()]

    async def pods(self) -> Sequence[LivePod]:
        """Pods with at least one container that has not ended."""
        self._reach()
        found = []
        for live in self._live.values():
            alive = {n: i for n, i in live.containers.items() if not self._actors[i].ended.is_set()}
            if alive:
                found.append(LivePod(pod=live.pod, containers=alive))
        return found

    async def refresh(self) -> Sequence[LivePod]:
        """The same: nothing is cached here."""
        return await self.pods()

    async def run_hook(self, live: LivePod, container: str, hook: Handler, limit: float) -> HookResult:
        """A scripted hook; a sleep hook sleeps."""
        if self.away:
            return HookResult(ok=False, message="the runtime is away")
        actor = self._actors[live.containers[container]]
        seconds = float(hook.sleep.seconds) if hook.sleep else actor.behaviour.hook
        self._deliver(actor, "hook")
        try:
            await self._clock.sleep(min(seconds, limit))
        finally:
            self._deliver(actor, "hook over")
        if seconds > limit:
            return HookResult(ok=False, timed_out=True, message=f"cut off after {limit:g} s")
        return HookResult(ok=actor.behaviour.hook_ok)

    async def stop(self, container_id: str, grace: float) -> int | None:
        """SIGTERM once, then waits; kills by itself at the next whole second after ``grace``."""
        self._reach()
        actor = self._actors[container_id]
        if actor.term_at is None and not actor.ended.is_set():
            actor.term_at = self._clock.boottime()
            self._deliver(actor, "TERM")
            self._act(actor, actor.behaviour.after_term, actor.behaviour.code)
        ended = asyncio.ensure_future(actor.ended.wait())
        backstop = asyncio.ensure_future(self._clock.sleep(math.ceil(grace)))
        try:
            await any_done(ended, backstop)
            if not actor.ended.is_set():
                await self.kill(container_id)
                await ended
        finally:
            await cancel(ended, backstop)
        return actor.code

    async def kill(self, container_id: str) -> None:
        """SIGKILL."""
        self._reach()
        actor = self._actors[container_id]
        if not actor.ended.is_set() and not actor.killed:
            actor.killed = True
            self._deliver(actor, "KILL")
            self._act(actor, actor.behaviour.after_kill, 137)

    async def finish(self, live: LivePod) -> None:
        """Nothing is left of an actor."""
        self._reach()

    def kill_seconds(self, containers: int) -> float:
        """As it was told to be."""
        return self._kill_margin

    def _reach(self) -> None:
        if self.away:
            raise Unavailable("the runtime is away")

    def _deliver(self, actor: _Actor, what: str) -> None:
        self.deliveries.append(Delivery(self._clock.boottime(), actor.uid, actor.name, what))

    def _act(self, actor: _Actor, after: float, code: int) -> None:
        if after != math.inf:
            self._acting.append(asyncio.create_task(self._end(actor, after, code), name=f"{actor.uid}/{actor.name}"))

    async def _end(self, actor: _Actor, after: float, code: int) -> None:
        await self._clock.sleep(after)
        if not actor.ended.is_set():
            actor.code = code
            self._deliver(actor, "exit")
            actor.ended.set()
