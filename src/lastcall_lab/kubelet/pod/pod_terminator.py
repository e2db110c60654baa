"""Ends a pod that is deleted, finished or evicted, by the same rules as the agent."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall.aio import cancel_and_wait, wait_first
from lastcall.graceful.planning.time_windows import TerminationWindow
from lastcall.graceful.shutdown.adjustable_window import AdjustableWindow
from lastcall.graceful.shutdown.container_termination import ContainersTermination
from lastcall.model.pods import DEFAULT_GRACE
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerRecord,
    ContainerSignalled,
    HookEnded,
    HookStarted,
    JournalEvent,
)
from lastcall.ports.node import RunningPod
from lastcall_lab.kubelet.base.settings import KubeletSettings
from lastcall_lab.kubelet.pod.dependencies import KubeletDeps

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TerminationOrder:
    """Ends a pod within ``effective_grace`` seconds. Unless it succeeded, its status gets reason and message."""

    grace: float
    reason: str = ""
    message: str = ""
    conditions: Sequence[Mapping[str, Any]] = ()


def effective_grace(pod: Object, settings: KubeletSettings) -> float:
    """The grace period of a pod to be ended, in seconds (``pod_workers.go: calculateEffectiveGracePeriod``).

    The deletion's grace period takes precedence over the pod's own. The minimum is one second.
    """
    said = pod["metadata"].get("deletionGracePeriodSeconds")
    if said is None:
        said = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    return max(settings.least_grace, float(said))


class PodTerminator:
    """Ends one pod. ``shorten_grace`` may be called while ``run`` runs."""

    def __init__(self, pod: Object, live: RunningPod, order: TerminationOrder, means: KubeletDeps) -> None:
        self._pod = pod
        self._live = live
        self._means = means
        self._started = means.clock.boottime()
        self._deadline = self._started + order.grace
        self._records: dict[str, ContainerRecord] = {}
        self._shorter = asyncio.Event()
        self.codes: dict[str, int | None] = {}
        """The exit codes of the containers."""

    def shorten_grace(self, seconds: float) -> None:
        """Limits the remaining time to that many seconds from now."""
        deadline = self._means.clock.boottime() + seconds
        if deadline < self._deadline:
            self._deadline = deadline
            self._shorter.set()

    async def run(self) -> None:
        """Returns when all containers have ended.

        If the time is shortened, running hooks continue until the new deadline. Then the termination resumes with that
        deadline, so that SIGTERM and SIGKILL follow at once.
        """
        while True:
            deadline = self._deadline
            work = asyncio.create_task(self._new_pod_end(deadline).run(), name=f"end {self._live.pod.key}")
            try:
                await self._until_over(work, deadline)
                if work.done():
                    work.result()
                    return
            finally:
                await cancel_and_wait(work)
            self._release_hooks()

    async def _until_over(self, work: "asyncio.Task[Any]", deadline: float) -> None:
        """Waits for the end, or until a shortened deadline passes."""
        while not work.done():
            self._shorter.clear()
            if self._deadline != deadline and self._current_time() >= self._deadline:
                return
            waits: list[Awaitable[Any]] = [asyncio.shield(work), self._shorter.wait()]
            if self._deadline != deadline:
                waits.append(self._means.clock.sleep(self._deadline - self._current_time()))
            await wait_first(*waits)

    def _current_time(self) -> float:
        return self._means.clock.boottime()

    def _new_pod_end(self, deadline: float) -> ContainersTermination:
        window = TerminationWindow(started=self._started, grace=deadline - self._started, last_kill=float("inf"))
        left = {name: run for name, run in self._live.containers.items() if name not in self.codes}
        return ContainersTermination(
            RunningPod(pod=self._live.pod, containers=left, sandbox=self._live.sandbox),
            time=AdjustableWindow(window, self._means.clock),
            runtime=self._means.runtime,
            clock=self._means.clock,
            tell=self._handle_event,
            before=tuple(self._records.values()),
        )

    def _handle_event(self, event: JournalEvent) -> None:
        match event:
            case HookStarted(at=at, container=name):
                self._records[name] = ContainerRecord(name=name, hook_started=at)
            case HookEnded(container=name, ok=False, message=message):
                self._means.record_event(
                    self._pod, "Warning", "FailedPreStopHook", f"PreStopHook failed: {message}", name
                )
            case ContainerSignalled(at=at, container=name, signal="TERM"):
                self._records[name] = ContainerRecord(name=name, hook_ended=at, term=at)
            case ContainerEnded(container=name, exit_code=code):
                self.codes[name] = code

    def _release_hooks(self) -> None:
        for name, record in self._records.items():
            if record.term is None:
                self._records[name] = ContainerRecord(name=name, hook_ended=self._current_time())
