"""Terminates the containers of one pod: hooks, SIGTERM, sidecars in their turn, SIGKILL at the exact moment.

The times come from ``time_windows``; this loop only waits and acts. The main containers terminate all at once, and the
sidecars after them, in the reverse of their start order (KEP-753). The sidecars' preStop hooks start at once.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from lastcall.aio import OrderedTaskGroup, cancel_and_wait, wait_all, wait_any, wait_first
from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.planning.time_windows import was_killed
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.pod_announcement import PodAnnouncement
from lastcall.model.pods import Container, LifecycleHandler, list_sidecars
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerRecord,
    ContainerSignalled,
    HookEnded,
    HookStarted,
    JournalEvent,
    NoteWritten,
)
from lastcall.ports.node import Clock, HookResult, PodRuntime, RunningPod

Tell = Callable[[JournalEvent], None]

_RETRY = 0.25
"""Seconds between two attempts to reach an unavailable runtime."""


FORGET_SECONDS = 2.0
"""How long the removal of an ended init container is waited for, in seconds."""


class ContainersTermination:
    """The termination of the containers in ``live``; SIGTERM waits for the ``announcement``, if there is one.

    It is announced again after a hook that ran longer than the announcement.
    ``before`` holds, per container, the steps that were taken already, in CLOCK_BOOTTIME seconds.
    """

    def __init__(
        self,
        live: RunningPod,
        *,
        time: AdjustableWindow,
        runtime: PodRuntime,
        clock: Clock,
        tell: Tell,
        announcement: PodAnnouncement | None = None,
        before: Iterable[ContainerRecord] = (),
    ) -> None:
        self.live = live
        self._announcement = announcement
        self.was_spared = False
        """Whether a container was left alone: the shutdown was cancelled during the announcement."""
        self._time = time
        self._runtime = runtime
        self._clock = clock
        self._tell = tell
        before = tuple(before)
        self._before = {c.name: c for c in before if c.is_of(live.containers.get(c.name, c.runtime_id))}
        self._killed_before = any(
            c.kill is not None and c.ended is not None and was_killed(c.exit_code) for c in before
        )
        self._kills = {c.name for c in self._before.values() if c.kill is not None}
        self._uid = live.pod.metadata.uid
        self._init_names = {c.name for c in live.pod.spec.init_containers or () if c.restart_policy != "Always"}
        self.codes: dict[str, int | None] = {}
        """Exit codes of the ended containers, by name."""

    @property
    def any_killed(self) -> bool:
        """Whether SIGKILL ended a container, or was sent to one whose end is unknown."""
        return self._killed_before or any(was_killed(self.codes.get(name)) for name in self._kills)

    async def run(self) -> None:
        """Returns when the containers have ended; cancellation leaves them as they are."""
        if len(self.live.containers) == 1:  # as most are: no task of its own, which shows with a hundred pods at once
            await self._terminate_container(self._container_spec(*self.live.containers), after=())
        else:
            await self._terminate_all()

    async def _terminate_all(self) -> None:
        group = OrderedTaskGroup()
        try:
            self._start_tasks(group)
            await group.join()
        finally:
            await group.cancel()

    def _container_spec(self, name: str) -> Container:
        pod = self.live.pod.spec
        known = (c for c in (*pod.containers, *(pod.init_containers or ())) if c.name == name)
        return next(known, Container(name=name))

    def _start_tasks(self, group: OrderedTaskGroup) -> None:
        pod = self.live.pod
        waiting = [c for c in list_sidecars(pod) if c.name in self.live.containers]
        names = {c.name for c in waiting}
        after = [
            group.start(self._terminate_container(self._container_spec(name), after=()), f"end {pod.key} {name}")
            for name in self.live.containers
            if name not in names
        ]
        for sidecar in reversed(waiting):
            task = group.start(self._terminate_container(sidecar, after=tuple(after)), f"end {pod.key} {sidecar.name}")
            after = [*after, task]

    async def _terminate_container(self, container: Container, after: "tuple[asyncio.Future[Any], ...]") -> None:
        has_run = await self._run_hook(container)
        announcement = self._announcement
        if announcement and announcement.under_way:
            after = (*after, announcement.under_way)
        elif has_run and announcement:
            await self._wait_for_traffic_again(announcement)
        if after:
            await self._wait_for_turn(after)
        if seconds := self._runtime.reserve_stop():
            await self._clock.sleep(seconds)
        if after and announcement and announcement.spares_pod():
            self.was_spared = True
            return
        await self._stop_container(container)

    async def _run_hook(self, container: Container) -> bool:
        """Runs the hook at least once, as Kubernetes promises: a hook whose end was not journalled runs again.

        Whether there was one to run.
        """
        hook, before = container.pre_stop, self._before.get(container.name)
        limit = self._time.window.sigterm_deadline - self._clock.boottime()
        if hook is None or limit <= 0 or (before and (before.hook_ended is not None or before.term is not None)):
            return False
        run = self.live.containers[container.name]
        self._tell(HookStarted(at=self._clock.boottime(), uid=self._uid, container=container.name, runtime_id=run))
        result = await self._execute_hook(container.name, hook, limit)
        self._tell(
            HookEnded(
                at=self._clock.boottime(),
                uid=self._uid,
                container=container.name,
                ok=result.ok,
                message=result.message,
            )
        )
        return True

    async def _execute_hook(self, name: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Runs the hook for at most ``limit`` seconds, and cuts it off if the pod's window shrinks below that."""
        running = asyncio.ensure_future(self._runtime.run_hook(self.live, name, hook, limit))
        try:
            if await wait_first(
                wait_any(running), self._time.wait_until_if_shortened(lambda window: window.sigterm_deadline)
            ):
                return HookResult(ok=False, timed_out=True, message="cut off: its phase was shortened")
            return running.result()
        finally:
            await cancel_and_wait(running)

    async def _wait_for_turn(self, after: "tuple[asyncio.Future[Any], ...]") -> None:
        turn = asyncio.ensure_future(wait_all(*after))
        alarm = asyncio.ensure_future(self._time.wait_until(lambda window: window.sigterm_deadline))
        try:
            await wait_any(turn, alarm)
        finally:
            await cancel_and_wait(alarm, turn)

    async def _wait_for_traffic_again(self, announcement: PodAnnouncement) -> None:
        """Somebody may have started a kubelet during the hook, which has made the pod ready again."""
        again = asyncio.ensure_future(announcement.announce())
        try:
            await self._wait_for_turn((again,))
        finally:
            await cancel_and_wait(again)

    async def _stop_container(self, container: Container) -> None:
        """Has the runtime send the container's stop signal, which it knows since it created the container."""
        name, stop = container.name, container.stop_signal
        before = self._before.get(name)
        term = before.term if before else None
        if term is None:
            term = self._clock.boottime()
            self._tell(
                ContainerSignalled(
                    at=term,
                    uid=self._uid,
                    container=name,
                    signal="TERM",
                    stop_signal=stop,
                    runtime_id=self.live.containers[name],
                )
            )
        killer = asyncio.ensure_future(self._kill_when_due(name, term))
        try:
            code = await self._stop_until_ended(name, term)
        finally:
            await cancel_and_wait(killer)
        if name not in self._kills and self._has_runtime_killed(code, term):
            self._record_kill(name)
        self.codes[name] = code
        self._tell(ContainerEnded(at=self._clock.boottime(), uid=self._uid, container=name, exit_code=code))
        if not code and name in self._init_names:
            await self._forget_init_container(name)

    async def _forget_init_container(self, name: str) -> None:
        """Removes an interrupted init container whose exit code says that its work is done.

        The kubelet would start the next container of the pod, or leave the pod pending for ever
        (pkg/kubelet/kuberuntime: computeInitContainerActions, computePodActions). It runs one that it does not find.
        """
        removing = asyncio.ensure_future(self._runtime.forget_container(self.live.containers[name]))
        try:
            late = await wait_first(wait_any(removing), self._clock.sleep(FORGET_SECONDS))
            why = f"no answer in {FORGET_SECONDS:g} s" if late else str(removing.exception() or "")
        finally:
            await cancel_and_wait(removing)
        if why:
            text = f"{self.live.pod.key}: the interrupted init container {name} counts as completed: {why}"
            self._tell(NoteWritten(at=self._clock.boottime(), text=text))

    async def _stop_until_ended(self, name: str, term: float) -> int | None:
        while True:
            left = max(0.0, self._time.window.kill_time(term) - self._clock.boottime())
            try:
                return await self._runtime.stop_container(self.live.containers[name], left)
            except Unavailable:
                await self._clock.sleep(_RETRY)

    async def _kill_when_due(self, name: str, term: float) -> None:
        await self._time.wait_until(lambda window: window.kill_time(term))
        self._record_kill(name)
        await self._kill_until_accepted(name)

    def _has_runtime_killed(self, code: int | None, term: float) -> bool:
        """The runtime kills at the same time as this task: on a busy machine its answer may come before our own alarm."""
        due = self._clock.boottime() >= self._time.window.kill_time(term)
        return due and code is not None and was_killed(code)

    def _record_kill(self, name: str) -> None:
        self._kills.add(name)
        self._tell(ContainerSignalled(at=self._clock.boottime(), uid=self._uid, container=name, signal="KILL"))

    async def _kill_until_accepted(self, name: str) -> None:
        """Retries while the runtime is unavailable; the end of the phase, not this function, gives up."""
        while True:
            try:
                await self._runtime.kill_container(self.live.containers[name])
                return
            except Unavailable:
                await self._clock.sleep(_RETRY)
            except LastcallError:
                return
