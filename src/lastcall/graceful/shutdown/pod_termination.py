"""Terminates one pod: its containers, including those started meanwhile, then its sandbox and its last status."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from lastcall.aio import cancel_and_wait, wait_any, wait_first
from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.planning.time_windows import was_killed
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.container_termination import ContainersTermination, Tell
from lastcall.graceful.shutdown.pod_announcement import PodAnnouncement
from lastcall.graceful.shutdown.resumption import replay_events
from lastcall.model.pods import DEFAULT_GRACE, ObjectMetadata, Pod, asked_grace, pod_priority
from lastcall.model.shutdown import (
    ContainerRecord,
    ContainerSignalled,
    HookStarted,
    JournalEvent,
    PodEnded,
    PodOutcome,
    PodRecord,
    PodStarted,
    PodUnmounted,
)
from lastcall.ports.node import Clock, NodeFace, PodRuntime, RunningPod

SANDBOX_SECONDS = 2.0
"""How long a phase waits, out of its own time, for the sandbox of a pod whose containers have ended.

The teardown removes the pod's network, for which it may need a pod that ends later: without one it is not waited for.
The limit keeps a teardown that hangs from holding up the later phases.
"""

REREAD_SECONDS = 0.25
"""How long SIGTERM waits for a second look at a pod with sidecars, in seconds."""

_RETRY = 0.25
"""Seconds between two attempts to reach an unavailable runtime."""


class PodTermination:
    """One pod's termination.

    ``before`` as in ``ContainersTermination``; ``called_off`` returns whether the shutdown was cancelled.
    """

    def __init__(
        self,
        live: RunningPod,
        *,
        time: AdjustableWindow,
        runtime: PodRuntime,
        node: NodeFace,
        clock: Clock,
        tell: Tell,
        called_off: Callable[[], bool],
        before: Iterable[ContainerRecord] = (),
    ) -> None:
        self._live = live
        self._time = time
        self._runtime = runtime
        self._node = node
        self._clock = clock
        self._tell = tell
        self._called_off = called_off
        self._before = tuple(before)
        self._announcement = PodAnnouncement(
            live,
            time,
            node=node,
            clock=clock,
            tell=tell,
            called_off=called_off,
            is_touched=any(one.hook_started is not None or one.term is not None for one in self._before),
        )
        self._over: set[str] = set()
        self._killed = False
        self._codes: dict[str, int | None] = {}

    @property
    def ended_containers(self) -> frozenset[str]:
        """The ids of the containers that have ended."""
        return frozenset(self._over)

    async def terminate_containers(self) -> bool:
        """Returns True when no container of the pod runs any more and the pod's end is recorded.

        False if the shutdown was cancelled while the pod waited for its Services, and nothing was done that the
        cancellation does not take back: the pod goes on.

        The initial list may be seconds old. A container that the kubelet has started since, as a replacement or after
        an init container, also gets its hook, its SIGTERM and the rest of the pod's time.
        """
        self._announcement.start()
        try:
            await self._clock.sleep(0)  # with nothing to wait for it is done now, and SIGTERM needs no further turn
            now: RunningPod | None = await self._reread_with_sidecars()
            before: Iterable[ContainerRecord] = self._before
            while now:
                end = ContainersTermination(
                    now,
                    time=self._time,
                    runtime=self._runtime,
                    clock=self._clock,
                    tell=self._record_step,
                    announcement=self._announcement,
                    before=before,
                )
                await end.run()
                if end.was_spared:
                    return False
                self._over.update(now.containers.values())
                self._killed = self._killed or end.any_killed
                self._codes |= end.codes
                now, before = await self._find_restarted(), ()
        finally:
            await self._announcement.cancel()
        outcome = PodOutcome.KILLED if self._killed else PodOutcome.GRACEFUL
        self._tell(PodEnded(at=self._clock.boottime(), uid=self._live.pod.metadata.uid, outcome=outcome))
        return True

    def _record_step(self, event: JournalEvent) -> None:
        if isinstance(event, HookStarted | ContainerSignalled):
            self._announcement.mark_touched()
        self._tell(event)

    async def tear_down_sandbox(self) -> None:
        """Tears the sandbox down, and retries while the runtime is unavailable.

        Not after a cancellation: the kubelet then owns the sandbox, and may be starting a container in it.
        """
        while not self._called_off():
            try:
                return await self._runtime.tear_down_pod(self._live)
            except Unavailable:
                await self._clock.sleep(_RETRY)
            except LastcallError:
                return None
        return None

    async def write_last_status(self) -> None:
        """Reports the pod's end to the node; returns when the last status is written."""
        if await self._node.report_pod_ended(self._live, self._codes):
            self._tell(PodUnmounted(at=self._clock.boottime(), uid=self._live.pod.metadata.uid))

    async def _reread_with_sidecars(self) -> RunningPod:
        """The pod as it is now, if it has sidecars: a container that began after the list must not outlive them.

        The list stands if the runtime does not answer in ``REREAD_SECONDS``.
        """
        if not any(one.restart_policy == "Always" for one in self._live.pod.spec.init_containers or ()):
            return self._live
        reading = asyncio.ensure_future(self._runtime.reread_pod(self._live))
        try:
            if await wait_first(wait_any(reading), self._clock.sleep(REREAD_SECONDS)):
                return self._live
            return reading.result() or self._live
        except LastcallError:
            return self._live
        finally:
            await cancel_and_wait(reading)

    async def _find_restarted(self) -> RunningPod | None:
        """The containers that still run. None after a cancellation: they then belong to the kubelet."""
        while not self._called_off():
            try:
                now = await self._runtime.reread_pod(self._live)
            except Unavailable:
                await self._clock.sleep(_RETRY)
            else:
                found = now.containers.items() if now else ()
                left = {name: run for name, run in found if run not in self._over}
                return replace(now, containers=left) if now and left and not self._called_off() else None
        return None


def initial_events(
    live: RunningPod, index: int, time: AdjustableWindow, record: PodRecord | None, *, clock: Clock
) -> Iterator[JournalEvent]:
    """The pod's first journal events, made when its turn comes, so that no pod waits for the events of all others."""
    at = clock.boottime() if record else time.window.started
    asked = asked_grace(live.pod)
    yield PodStarted(
        at=at,
        uid=live.pod.metadata.uid,
        namespace=live.pod.metadata.namespace,
        name=live.pod.metadata.name,
        priority=pod_priority(live.pod),
        phase=index,
        grace=round(time.window.grace, 3),
        asked=DEFAULT_GRACE if asked is None else asked,
        containers=tuple(live.containers),
    )
    yield from replay_events(record, at) if record else ()


async def record_absent_pod(record: PodRecord, *, node: NodeFace, clock: Clock, tell: Tell) -> None:
    """Records the end of a pod that ended while no agent ran, or whose end an earlier agent did not finish.

    Raises what ``node.report_pod_ended`` raises.
    """
    if record.outcome in (None, PodOutcome.UNCONFIRMED):
        killed = any(container.kill is not None and was_killed(container.exit_code) for container in record.containers)
        outcome = PodOutcome.KILLED if killed else PodOutcome.GRACEFUL
        tell(PodEnded(at=clock.boottime(), uid=record.uid, outcome=outcome))
    pod = Pod(metadata=ObjectMetadata(name=record.name, namespace=record.namespace, uid=record.uid))
    if await node.report_pod_ended(RunningPod(pod=pod, containers={}), {}):
        tell(PodUnmounted(at=clock.boottime(), uid=record.uid))
