"""A pod runtime with scripted containers for virtual time; it records what really happened.

``deliveries`` lists what reached each container and when; tests judge by it, not by the agent's own reports.
"""

import asyncio
import contextvars
import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lastcall.aio import Signal, cancel_and_wait, wait_any, wait_first
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model.base import Facts
from lastcall.model.pods import Container, LifecycleHandler, Pod
from lastcall.ports.node import Clock, HookResult, RunningPod
from lastcall_lab.apiserver.subresources.kubelet_api import ExecSession
from lastcall_lab.processes import pod_addresses


class ContainerScript(Facts, frozen=True):
    """The behavior of a container. Seconds; ``inf`` for never."""

    after_term: float = 0.0  # from SIGTERM to its end
    hook: float = 0.0  # duration of its exec or httpGet preStop hook
    hook_ok: bool = True
    after_kill: float = 0.0  # from SIGKILL to its end; inf: stuck in the kernel
    code: int = 0  # its exit code when it ends by itself
    takes: float = 0.0  # from the start order until it runs
    lives: float = math.inf  # from its start to its own end
    ready_after: float = 0.0  # from its start until its probes succeed
    healthy_for: float = math.inf  # from its start until they fail
    broken: str = ""  # why it cannot start


Script = Callable[[Pod, str, int], ContainerScript]
"""The script of a pod's container for the run with that number, 0 for the first."""


class Delivery(NamedTuple):
    """An event at a container: ``what`` is start, hook, hook over, TERM, KILL or exit.

    ``began``: the start of the hook that is over. Two hooks run at once when kubelet and agent both end a pod.
    """

    at: float
    uid: str
    container: str
    what: str
    began: float | None = None


class _Actor:
    def __init__(self, run: str, uid: str, name: str, behaviour: ContainerScript, began: float) -> None:
        self.run, self.uid, self.name, self.behaviour, self.began = run, uid, name, behaviour, began
        self.term_at: float | None = None
        self.killed = False
        self.ended = asyncio.Event()
        self.code: int | None = None

    def next_probe_turn(self, now: float) -> float:
        """Seconds until its probes begin to succeed, or to fail."""
        age = now - self.began
        return min(
            (at - age for at in (self.behaviour.ready_after, self.behaviour.healthy_for) if at > age), default=math.inf
        )


class ActorLog:
    """``kubelet.runtime.Log`` of an actor, with lines for its start, its signals and its end."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, bytes]] = []

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """All lines since ``position``."""
        return self.lines[position:], len(self.lines)


class ActorRuntime:
    """``ports.node.PodRuntime`` and ``kubelet.runtime.NodeRuntime`` for scripted containers.

    It outlives the agents and kubelets that use it, as containerd does: its tasks belong to its creator
    (``virtual.VirtualProcess``), not to the caller. ``script`` returns the script of containers that are started;
    ``add`` takes those of its own.
    """

    mounts = True
    untimed_logs = False

    def __init__(
        self, clock: Clock, *, kill_margin: float = 0.1, script: Script = lambda *_: ContainerScript(), node: str = ""
    ) -> None:
        self._clock = clock
        self._kill_margin = kill_margin
        self._script = script
        self._node = node
        self._live: dict[str, RunningPod] = {}
        self._actors: dict[str, _Actor] = {}
        self._acting: list[asyncio.Task[None]] = []
        self._logs: dict[tuple[str, str, int], ActorLog] = {}
        self._ended: asyncio.Queue[tuple[str, str, int | None]] = asyncio.Queue()
        self._history: list[tuple[str, str, str]] = []
        self._home = contextvars.copy_context()
        self.forgotten: list[str] = []
        """Ids of the containers that were removed."""
        self.deliveries: list[Delivery] = []
        self.on_delivery: Callable[[Delivery], None] = lambda _: None
        """Hears each."""
        self._away = False
        self._moved = Signal()
        """Set when its answers may change."""

    @property
    def away(self) -> bool:
        """While true, every method raises Unavailable."""
        return self._away

    @away.setter
    def away(self, away: bool) -> None:
        self._away = away
        self._moved.set()

    def add(
        self, pod: Pod, behaviours: dict[str, ContainerScript] | None = None, *, only: Collection[str] | None = None
    ) -> RunningPod:
        """Adds a running pod, with all of its lasting containers or only some of them.

        An init container that is no sidecar runs only if ``behaviours`` has it.
        """
        uid = pod.metadata.uid
        names = [c.name for c in pod.spec.containers]
        names += [
            c.name
            for c in pod.spec.init_containers or ()
            if c.restart_policy == "Always" or c.name in (behaviours or {})
        ]
        names = [name for name in names if only is None or name in only]
        for name in names:
            behaviour = (behaviours or {}).get(name, ContainerScript())
            run = f"{uid}/{name}"
            self._actors[run] = _Actor(run, uid, name, behaviour, self._clock.boottime())
        if not pod.status.pod_ip:
            pod = self._with_address(pod)
        live = RunningPod(pod=pod, containers={name: f"{uid}/{name}" for name in names})
        self._live[uid] = live
        return live

    def exit_container(self, container_id: str, code: int = 0) -> None:
        """Ends a container by itself."""
        self._run_action(self._actors[container_id], 0.0, code)

    def running(self) -> list[str]:
        """The ids of the running containers."""
        return [name for name, actor in self._actors.items() if not actor.ended.is_set()]

    def pull_power(self) -> None:
        """Cuts the power: everything ends at once, without a notification."""
        for task in self._acting:
            task.cancel()
        self._acting = []
        self._live, self._actors, self._history, self._ended = {}, {}, [], asyncio.Queue()

    # -- ports.PodRuntime ----------------------------------------------------------------------------------------------

    async def list_pods(self) -> Sequence[RunningPod]:
        """Pods with at least one running container."""
        self._ensure_reachable()
        return [live for live in map(self._refresh_pod, self._live.values()) if live.containers]

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """As ``list_pods``: nothing is cached here."""
        return await self.list_pods()

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """As ``list_pods``, for one pod."""
        self._ensure_reachable()
        known = self._live.get(live.pod.metadata.uid)
        now = self._refresh_pod(known) if known else None
        return now if now and now.containers else None

    async def ping(self) -> None:
        """Returns at once."""
        self._ensure_reachable()

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs a scripted hook, which ends with its container; a sleep hook sleeps."""
        if self.away:
            return HookResult(ok=False, message="the runtime is away")
        actor = self._actors[live.containers[container]]
        seconds = float(hook.sleep.seconds) if hook.sleep else actor.behaviour.hook
        began = self._clock.boottime()
        self._deliver_signal(actor, "hook")
        try:
            waits = [self._clock.sleep(min(seconds, limit)), *([] if hook.sleep else [actor.ended.wait()])]
            cut = await wait_first(*waits) == 1
        finally:
            self._deliver_signal(actor, "hook over", began)
        if cut:
            return HookResult(ok=False, message="its container has ended")
        if seconds > limit:
            return HookResult(ok=False, timed_out=True, message=f"cut off after {limit:g} s")
        return HookResult(ok=actor.behaviour.hook_ok)

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """Sends SIGTERM once, then waits; kills at the next whole second after ``grace``."""
        self._ensure_reachable()
        actor = self._actors.get(container_id)
        if actor is None:
            return None
        if actor.term_at is None and not actor.ended.is_set():
            actor.term_at = self._clock.boottime()
            self._deliver_signal(actor, "TERM")
            self._run_action(actor, actor.behaviour.after_term, actor.behaviour.code)
        ended = asyncio.ensure_future(actor.ended.wait())
        backstop = asyncio.ensure_future(self._clock.sleep(math.ceil(grace)))
        try:
            await wait_any(ended, backstop)
            if not actor.ended.is_set():
                await self.kill_container(container_id)
                await ended
        finally:
            await cancel_and_wait(ended, backstop)
        return actor.code

    async def kill_container(self, container_id: str) -> None:
        """SIGKILL."""
        self._ensure_reachable()
        actor = self._actors.get(container_id)
        if actor and not actor.ended.is_set() and not actor.killed:
            actor.killed = True
            self._deliver_signal(actor, "KILL")
            self._run_action(actor, actor.behaviour.after_kill, 137)

    async def forget_container(self, container_id: str) -> None:
        """Notes it, if the container has ended."""
        self._ensure_reachable()
        actor = self._actors.get(container_id)
        if actor and actor.ended.is_set():
            self.forgotten.append(container_id)

    async def tear_down_pod(self, live: RunningPod) -> None:
        """Frees its address; its logs stay. A pod with a running container is left alone."""
        self._ensure_reachable()
        known = self._live.get(live.pod.metadata.uid)
        if known and not self._refresh_pod(known).containers:
            del self._live[live.pod.metadata.uid]

    def reserve_stop(self) -> float:
        """No wait."""
        return 0.0

    def kill_seconds(self, containers: int) -> float:
        """The configured value."""
        return self._kill_margin

    # -- ports.PodStarter and kubelet.runtime.NodeRuntime --------------------------------------------------------------

    async def start_pod(self, pod: Pod) -> RunningPod:
        """Starts all containers in sequence, and waits for init containers."""
        await self.create_sandbox(pod)
        for container in (*(pod.spec.init_containers or ()), *pod.spec.containers):
            actor = self._actors[await self.launch_container(pod, container, attempt=0)]
            if container in (pod.spec.init_containers or ()) and container.restart_policy != "Always":
                await actor.ended.wait()
                if actor.code != 0:
                    await self.remove_pod(pod.metadata.uid)
                    message = f'pod {pod.key}: init container "{container.name}" ended with exit code {actor.code}'
                    raise Unavailable(message)
        return self._refresh_pod(self._live[pod.metadata.uid])

    async def create_sandbox(self, pod: Pod) -> RunningPod:
        """Creates the sandbox; addresses are those of the process runtime."""
        self._ensure_reachable()
        uid = pod.metadata.uid
        if uid not in self._live:
            self._live[uid] = RunningPod(pod=self._with_address(pod), containers={})
        return self._refresh_pod(self._live[uid])

    async def launch_container(self, pod: Pod, container: Container, *, attempt: int) -> str:
        """Launches the container by its script."""
        self._ensure_reachable()
        uid, name = pod.metadata.uid, container.name
        if uid not in self._live:
            raise Unavailable(f"pod {pod.key}: it was not created")
        behaviour = self._script(pod, name, attempt)
        if behaviour.takes:
            await self._clock.sleep(behaviour.takes)
        if behaviour.broken:
            raise InvalidInput(f"pod {pod.key}", [f"container {name}: {behaviour.broken}"])
        live = self._live.get(uid)
        if live is None:
            raise Unavailable(f"pod {pod.key}: its sandbox was torn down meanwhile")
        if name in self._refresh_pod(live).containers:
            raise InvalidInput(f"pod {pod.key}", [f"container {name}: runs already"])
        run = f"{uid}/{name}/{attempt}" if attempt else f"{uid}/{name}"
        self._actors[run] = actor = _Actor(run, uid, name, behaviour, self._clock.boottime())
        self._live[uid] = RunningPod(pod=live.pod, containers={**live.containers, name: run})
        self._logs[uid, name, attempt] = ActorLog()
        self._deliver_signal(actor, "start")
        self._run_action(actor, behaviour.lives, behaviour.code)
        return run

    async def probe(self, live: RunningPod, container: str, handler: LifecycleHandler, limit: float) -> HookResult:
        """Answers by its script."""
        actor = self._actors.get(live.containers.get(container, ""))
        if self.away or actor is None or actor.ended.is_set():
            return HookResult(ok=False, message=f'no container "{container}" runs')
        age = self._clock.boottime() - actor.began
        if actor.behaviour.ready_after <= age < actor.behaviour.healthy_for:
            return HookResult(ok=True)
        return HookResult(ok=False, message="HTTP probe failed with statuscode: 503")

    async def wait_for_probe_change(self, container_id: str = "") -> None:
        """Waits for a change in the script's probes, the container's end, or a change of the runtime's availability."""
        actor = self._actors.get(container_id)
        turn = actor.next_probe_turn(self._clock.boottime()) if actor else math.inf
        if turn == math.inf:
            await self._moved.next()
        else:
            await wait_first(self._moved.next(), self._clock.sleep(turn))

    def open_log(self, pod: Pod, container: str, attempt: int) -> ActorLog:
        """The log of its events."""
        return self._logs.get((pod.metadata.uid, container, attempt), ActorLog())

    async def note_log_times(self) -> None:
        """Does nothing: actors log times themselves."""

    async def execute(
        self, live: RunningPod, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Raises an error: actors run no programs."""
        raise InvalidInput(f"pod {live.pod.key}", [f"container {container}: is an actor, which runs no programs"])

    async def remove_pod(self, uid: str) -> None:
        """Kills all containers."""
        live = self._live.get(uid)
        for run in self._refresh_pod(live).containers.values() if live else ():
            await self.kill_container(run)
            await self._actors[run].ended.wait()
        self._live.pop(uid, None)
        for key in [key for key in self._logs if key[0] == uid]:
            del self._logs[key]

    async def next_ended(self) -> tuple[str, str, int | None]:
        """The next end, in order."""
        return await self._ended.get()

    def unmounted_reason(self, run: str) -> str:
        """Empty: a runtime that mounts volumes itself shows them."""
        return ""

    def repeat_ends(self) -> None:
        """All ends, in order."""
        self._ended = asyncio.Queue()
        for uid, name, run in self._history:
            live = self._live.get(uid)
            if live and live.containers.get(name) == run:
                self._ended.put_nowait((uid, name, self._actors[run].code))

    # -- within --------------------------------------------------------------------------------------------------------

    def _refresh_pod(self, live: RunningPod) -> RunningPod:
        alive = {name: run for name, run in live.containers.items() if not self._actors[run].ended.is_set()}
        return replace(live, containers=alive)

    def _with_address(self, pod: Pod) -> Pod:
        taken = {live.pod.status.pod_ip for live in self._live.values()}
        return replace(pod, status=replace(pod.status, pod_ip=pod_addresses.choose_address(self._node, pod.key, taken)))

    def _ensure_reachable(self) -> None:
        if self.away:
            raise Unavailable("the runtime is away")

    def _deliver_signal(self, actor: _Actor, what: str, began: float | None = None) -> None:
        delivery = Delivery(self._clock.boottime(), actor.uid, actor.name, what, began)
        self.deliveries.append(delivery)
        self.on_delivery(delivery)
        newest = [log for (uid, name, _), log in self._logs.items() if (uid, name) == (actor.uid, actor.name)]
        if newest:
            newest[-1].lines.append((self._clock.wall(), f"{what}\n".encode()))

    def _run_action(self, actor: _Actor, after: float, code: int) -> None:
        if after != math.inf:
            work, name = self._end_actor(actor, after, code), f"{actor.uid}/{actor.name}"
            self._acting.append(asyncio.create_task(work, name=name, context=self._home))

    async def _end_actor(self, actor: _Actor, after: float, code: int) -> None:
        await self._clock.sleep(after)
        if not actor.ended.is_set():
            actor.code = code
            self._deliver_signal(actor, "exit")
            actor.ended.set()
            self._moved.set()
            self._ended.put_nowait((actor.uid, actor.name, code))
            self._history.append((actor.uid, actor.name, actor.run))
