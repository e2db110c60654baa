"""Runs controllers: keeps their view up to date, asks for decisions about what has changed, and carries them out.

A controller never decides about an object before the view shows what its last decision about it has written: that is
what lets decisions be functions of the view alone, without books on what is expected.
"""

import heapq
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lastcall.aio import Group, Signal, any_done, first
from lastcall.errors import LastcallError
from lastcall.lab.controllers.actions import Action, Create, Decision, Tell, Work
from lastcall.lab.controllers.controller import Controller
from lastcall.lab.controllers.view import Object, Ref, View
from lastcall.ports import Clock

RETRY_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""After a decision that could not be carried out; the last one for ever."""

log = logging.getLogger(__name__)


class Seen(NamedTuple):
    """A change: ``now`` is None when the object is gone, ``before`` is None when it is new."""

    now: Object | None
    before: Object | None


class Batch(NamedTuple):
    """Changes in their order; the view is as the resource was at ``revision`` when it has them all."""

    revision: int
    changes: Sequence[Seen]


class Cluster(Protocol):
    """What the runner needs of a client."""

    def follow(self, resource: str) -> AsyncIterator[Batch]:
        """All objects of a resource first, in one batch, then their changes for ever."""
        ...

    async def act(self, action: Action, by: str) -> Object | None:
        """Carries it out in the name of a controller; the object as written, None if nothing was or it is gone. LastcallError if it failed."""
        ...


@dataclass
class _Queue:
    """What one controller has yet to look at."""

    controller: Controller
    due: list[tuple[float, int, Ref]] = field(default_factory=list)
    blocked: dict[Ref, dict[str, int]] = field(default_factory=dict)
    """Keys whose writes the view does not show yet: the revision of each resource that it must have reached."""
    failures: dict[Ref, int] = field(default_factory=dict)
    earliest: dict[Ref, float] = field(default_factory=dict)
    number: int = 0
    said: str = ""

    def add(self, key: Ref, at: float) -> None:
        """To be looked at then, or sooner if that was planned already."""
        if self.earliest.get(key, float("inf")) > at:
            self.earliest[key] = at
            self.number += 1
            heapq.heappush(self.due, (at, self.number, key))

    def next_at(self) -> float:
        """When there is something to do."""
        return self.due[0][0] if self.due else float("inf")

    def take(self, now: float) -> Ref | None:
        """What is due; None if nothing is."""
        while self.due and self.due[0][0] <= now:
            at, _, key = heapq.heappop(self.due)
            if self.earliest.get(key) == at:
                del self.earliest[key]
                return key
        return None


class Runner:
    """Controllers over one view."""

    def __init__(self, cluster: Cluster, clock: Clock, controllers: Sequence[Controller]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._queues = [_Queue(controller) for controller in controllers]
        self._signals = [Signal() for _ in controllers]
        self._missing = {resource for controller in controllers for resource in controller.resources}
        self._resources = sorted(self._missing)
        self._reached: dict[str, int] = {}
        self.view = View()

    @property
    def synced(self) -> bool:
        """Whether every resource has been listed once."""
        return not self._missing

    async def run(self) -> None:
        """Until cancelled, or until one of the controllers fails by a mistake of its own, which is then raised."""
        group = Group()
        tasks = [group.start(self._follow(resource), f"follow {resource}") for resource in self._resources]
        for queue, signal in zip(self._queues, self._signals, strict=True):
            tasks.append(group.start(self._work(queue, signal), queue.controller.name))
        try:
            await any_done(*tasks)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            await group.cancel()

    # -- what is known -------------------------------------------------------------------------------------------------

    async def _follow(self, resource: str) -> None:
        async for batch in self._cluster.follow(resource):
            for change in batch.changes:
                self.view.apply(resource, change.now, change.before)
            self._reached[resource] = max(batch.revision, self._reached.get(resource, 0))
            for change in batch.changes:
                self._changed(resource, change)
            last_one = self._missing == {resource}
            self._missing.discard(resource)
            for queue, signal in zip(self._queues, self._signals, strict=True):
                if last_one or resource in queue.controller.resources:
                    self._unblock(queue)
                    signal.set()

    def _changed(self, resource: str, change: Seen) -> None:
        now = self._clock.boottime()
        for queue in self._queues:
            if resource not in queue.controller.resources:
                continue
            for obj in (change.now, change.before):
                if obj is not None:
                    for key in queue.controller.keys(resource, obj, self.view):
                        queue.add(key, now)

    def _unblock(self, queue: _Queue) -> None:
        for key, revisions in list(queue.blocked.items()):
            if all(self._reached.get(resource, 0) >= revision for resource, revision in revisions.items()):
                del queue.blocked[key]
                queue.add(key, self._clock.boottime())

    # -- what is done --------------------------------------------------------------------------------------------------

    async def _work(self, queue: _Queue, signal: Signal) -> None:
        while True:
            now = self._clock.boottime()
            key = queue.take(now) if self.synced else None
            if key is not None:
                await self._look(queue, key)
                continue
            left = queue.next_at() - now if self.synced else float("inf")
            if left == float("inf"):
                await signal.next()
            else:
                await first(signal.next(), self._clock.sleep(left))

    async def _look(self, queue: _Queue, key: Ref) -> None:
        if key in queue.blocked:
            return  # looked at as soon as the view has caught up
        now = self._clock.boottime()
        try:
            decision = queue.controller.decide(key, self.view, self._clock.wall())
            await self._carry_out(queue, key, decision)
        except LastcallError as error:
            failures = queue.failures.get(key, 0)
            queue.failures[key] = failures + 1
            queue.add(key, now + RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
            log.info("%s: %s: %s; trying again", queue.controller.name, "/".join(key), error)
            return
        queue.failures.pop(key, None)
        if decision.again_in is not None:
            queue.add(key, now + decision.again_in)
        if decision.said and decision.said != queue.said:
            queue.said = decision.said
            log.info("%s: %s", queue.controller.name, decision.said)

    async def _carry_out(self, queue: _Queue, key: Ref, decision: Decision) -> None:
        """One action after the other; what they wrote blocks the key until the view shows it."""
        revisions: dict[str, int] = {}
        try:
            for action in decision.actions:
                written = await self._cluster.act(action, queue.controller.name)
                resource = _resource(action)
                if written and resource in queue.controller.resources:
                    seen = int(written["metadata"].get("resourceVersion", 0))  # an old one, if nothing was changed
                    revisions[resource] = max(seen, revisions.get(resource, 0))
        finally:
            if revisions:
                queue.blocked[key] = revisions
                self._unblock(queue)


def _resource(action: Action) -> str:
    match action:
        case Create(resource=resource):
            return resource
        case Tell():
            return "events"
        case Work():
            return ""
        case _:
            return action.ref.resource
