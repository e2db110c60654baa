"""The requests of a drain for its pods, evictions and deletions, and what their answers mean for the pods."""

import asyncio
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from lastcall import names
from lastcall.aio import OrderedTaskGroup
from lastcall.drain.decisions.eviction_answers import read_answer
from lastcall.drain.decisions.pod_progress import (
    RETRY_SECONDS,
    AnswerKind,
    PodAnswer,
    PodProgress,
    PodTarget,
    apply_answer,
)
from lastcall.drain.decisions.steps import DeletePod, EvictPod
from lastcall.drain.execution.drain_observer import DrainObserver
from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.ports.drain import DrainCluster, DrainEvent, PodEvictions
from lastcall.ports.node import Clock

_MOST_EVENTS = 8
"""So many Events are written at once: they must not delay evictions."""


class RequestParts(Facts, frozen=True):
    """The outside of the requests.

    ``tell_answer`` is called after each answer, ``tell_spent`` when a budget may be what has refused a pod.
    """

    cluster: DrainCluster
    evictions: PodEvictions
    clock: Clock
    observer: DrainObserver
    tell_answer: Callable[[], None]
    tell_spent: Callable[[], None]


class PodRequests:
    """The chosen pods with their progress.

    ``grace`` is what an eviction asks for; None: each pod's own. ``has_end``: pods are given up at some time.
    """

    def __init__(self, parts: RequestParts, *, grace: int | None, has_end: bool) -> None:
        self._parts, self._grace, self._has_end = parts, grace, has_end
        self._tasks = OrderedTaskGroup()
        self._writing = asyncio.Semaphore(_MOST_EVENTS)
        self._pods: dict[str, PodProgress] = {}
        self._asked: frozenset[str] = frozenset()

    @property
    def pods(self) -> tuple[PodProgress, ...]:
        """The pods, in the order in which they were added."""
        return tuple(self._pods.values())

    @property
    def uids_under_way(self) -> frozenset[str]:
        """The uids for which a request is under way."""
        return self._asked

    def add(self, targets: Iterable[PodTarget]) -> None:
        """Adds pods for which nothing was asked yet."""
        for one in targets:
            self._pods[one.uid] = PodProgress(target=one)

    def is_refused(self, uid: str) -> bool:
        """Whether a budget may be what has refused the pod, as the last answer says."""
        pod = self._pods.get(uid)
        return pod is not None and bool(pod.refusal) and not pod.is_held

    def start(self, step: EvictPod | DeletePod) -> None:
        """Sends a request; its answer changes the progress of the pod later."""
        now, uid = self._parts.clock.boottime(), step.target.uid
        pod = self._pods[uid]
        first = now if pod.first_asked is None else pod.first_asked
        self._pods[uid] = replace(pod, first_asked=first, last_asked=now)
        self._asked |= {uid}
        self._parts.observer.tell_asked(step.target, evicts=isinstance(step, EvictPod))
        self._tasks.start(self._request(step), f"ask for {step.target.key}")

    def skip(self, target: PodTarget, why: str) -> None:
        """Waits for a pod no longer."""
        self._pods[target.uid] = replace(self._pods[target.uid], is_gone=True)
        self._parts.observer.tell_skipped(target, why)

    def fail(self, target: PodTarget, why: str) -> None:
        """Gives a pod up, says so in an Event, and withdraws what was asked for it."""
        self._pods[target.uid] = replace(self._pods[target.uid], failure=why)
        self._tell_failed(target, why)

    def withdraw(self, target: PodTarget) -> None:
        """Withdraws what was asked for a pod that stays."""
        withdrawal = self._parts.evictions.withdraw_eviction(target.namespace, target.name, uid=target.uid)
        self._tasks.start(withdrawal, f"withdraw {target.key}")

    async def join(self) -> None:
        """Waits until nothing is under way."""
        await self._tasks.join()

    async def cancel(self) -> None:
        """Ends what is under way."""
        await self._tasks.cancel()

    async def _request(self, step: EvictPod | DeletePod) -> None:
        target, failure, parts = step.target, None, self._parts
        try:
            if isinstance(step, EvictPod):
                await parts.evictions.evict_pod(target.namespace, target.name, uid=target.uid, grace=self._grace)
            else:
                await parts.cluster.delete_pod(target.namespace, target.name, uid=target.uid, grace=step.grace)
        except LastcallError as error:
            failure = error
        self._hear(step, read_answer(failure, has_end=self._has_end))

    def _hear(self, step: EvictPod | DeletePod, answer: PodAnswer) -> None:
        target = step.target
        forced = isinstance(step, DeletePod) and step.forced
        now = self._parts.clock.boottime()
        self._pods[target.uid] = apply_answer(self._pods[target.uid], answer, forced=forced, now=now)
        self._asked -= {target.uid}
        if answer.kind is AnswerKind.REFUSED:
            seconds = RETRY_SECONDS if answer.retry_after is None else answer.retry_after
            self._parts.observer.tell_refused(target, answer.message, seconds)
            if isinstance(step, EvictPod) and not answer.is_held:
                self._parts.tell_spent()
        elif answer.kind is AnswerKind.FAILED:
            self._tell_failed(target, answer.message)
        self._parts.tell_answer()

    def _tell_failed(self, target: PodTarget, why: str) -> None:
        self._parts.observer.tell_failed(target, why)
        self._tasks.start(self._write_event(target, names.E_EVICTION_FAILED, why), f"event of {target.key}")
        self.withdraw(target)

    async def _write_event(self, target: PodTarget, reason: str, message: str) -> None:
        event = DrainEvent(
            name=target.name,
            namespace=target.namespace,
            uid=target.uid,
            reason=reason,
            message=message,
            is_warning=True,
        )
        async with self._writing:
            await self._parts.cluster.write_event(event)
