"""Runs controllers: maintains their view, asks for decisions about changed objects, and carries them out.

A controller never decides about an object before the view shows what its last decision about it has written. This makes
decisions functions of the view alone, without bookkeeping of expected changes.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from lastcall.aio import OrderedTaskGroup, Signal, wait_any
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock
from lastcall_lab.controllers.framework.actions import (
    Action,
    CreateObject,
    Decision,
    DeleteObject,
    IfOwnersGone,
    RecordEvent,
    RunWork,
)
from lastcall_lab.controllers.framework.controller import CUSTOM, Controller
from lastcall_lab.controllers.framework.view import ActionRefusal, Object, ObjectRef, View
from lastcall_lab.controllers.objects.served_kinds import DEFINITIONS, custom_kinds
from lastcall_lab.controllers.runner.work_queue import WorkQueue

log = logging.getLogger(__name__)


class ViewChange(NamedTuple):
    """One change: ``now`` is None if the object was deleted, ``before`` is None if it is new."""

    now: Object | None
    before: Object | None


class ChangeBatch(NamedTuple):
    """Changes in order. After all of them the view equals the resource at ``revision``."""

    revision: int
    changes: Sequence[ViewChange]


class ClusterApi(Protocol):
    """What the runner needs from an API client."""

    def follow(self, resource: str, version: str = "") -> AsyncIterator[ChangeBatch]:
        """All objects of a resource in one batch, then their changes without end.

        ``version`` is a served one; built-in resources need none.
        """
        ...

    async def act(self, action: Action, by: str) -> int | None:
        """Carries out an action in the name of a controller. LastcallError if it fails.

        Returns the revision of the object as written, 0 if the response has none, None if nothing was written or the
        object is gone.
        """
        ...


class ControllerRunner:
    """Runs controllers over one shared view."""

    def __init__(self, cluster: ClusterApi, clock: Clock, controllers: Sequence[Controller]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._queues = [WorkQueue(controller) for controller in controllers]
        self._signals = [Signal() for _ in controllers]
        named = {resource for controller in controllers for resource in controller.resources}
        self._missing = named - {CUSTOM} | ({DEFINITIONS} if CUSTOM in named else set())
        self._resources = sorted(self._missing)
        pairs = list(zip(self._queues, self._signals, strict=True))
        self._listeners = {
            one: [pair for pair in pairs if one in pair[0].controller.resources] for one in self._missing
        }
        self._reached: dict[str, int] = {}
        self._alarms: dict[str, float] = {}
        self._custom: dict[str, str] = {}
        self._group = OrderedTaskGroup()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._others = Signal()
        self.view = View()

    @property
    def has_synced(self) -> bool:
        """Whether every built-in resource has been listed once."""
        return not self._missing

    async def run(self) -> None:
        """Runs until cancelled. Raises the first programming error of a controller."""
        for resource in self._resources:
            self._start_to_follow(resource)
        for queue, signal in zip(self._queues, self._signals, strict=True):
            name = queue.controller.name
            self._tasks[f"controller {name}"] = self._group.start(self._work_queue(queue, signal), name)
        try:
            while not any(task.done() for task in self._tasks.values()):
                await wait_any(*self._tasks.values(), self._others.next())
            for task in self._tasks.values():
                if task.done():
                    task.result()
        finally:
            await self._group.cancel()

    # -- view ----------------------------------------------------------------------------------------------------------

    def _start_to_follow(self, resource: str, version: str = "") -> None:
        self._tasks[resource] = self._group.start(self._follow_resource(resource, version), f"follow {resource}")
        self._others.set()

    async def _follow_resource(self, resource: str, version: str) -> None:
        async for batch in self._cluster.follow(resource, version):
            for change in batch.changes:
                self.view.apply(resource, change.now, change.before)
            self.view.mark_listed(resource)
            self._reached[resource] = max(batch.revision, self._reached.get(resource, 0))
            self._enqueue_changes(resource, batch.changes)
            if resource == DEFINITIONS:
                self._follow_custom_resources()

    def _enqueue_changes(self, resource: str, changes: Sequence[ViewChange]) -> None:
        """Queues the affected keys of each controller."""
        now, last_one = self._clock.boottime(), self._missing == {resource}
        self._missing.discard(resource)
        objects = [obj for change in changes for obj in _relevant_objects(resource, change) if obj is not None]
        for queue, signal in self._interested_queues(resource):
            for obj in objects:
                for key in queue.controller.affected_keys(resource, obj, self.view):
                    queue.add(key, now)
            if queue.blocked:
                self._unblock_keys(queue)
            if not last_one and queue.next_at() <= now:  # most changes concern few controllers
                signal.set()
        for signal in self._signals if last_one else ():
            signal.set()

    def _interested_queues(self, resource: str) -> Sequence[tuple[WorkQueue, Signal]]:
        """The queues of the controllers that watch a resource."""
        if resource not in self._custom:
            return self._listeners[resource]
        pairs = zip(self._queues, self._signals, strict=True)
        return [(queue, signal) for queue, signal in pairs if self._is_interested(queue.controller, resource)]

    def _is_interested(self, controller: Controller, resource: str) -> bool:
        """Whether the controller watches a resource."""
        return resource in controller.resources or (resource in self._custom and CUSTOM in controller.resources)

    def _unblock_keys(self, queue: WorkQueue) -> None:
        for key, revisions in list(queue.blocked.items()):
            if all(self._reached.get(resource, 0) >= revision for resource, revision in revisions.items()):
                del queue.blocked[key]
                queue.add(key, self._clock.boottime())

    # -- custom resources ----------------------------------------------------------------------------------------------

    def _follow_custom_resources(self) -> None:
        """Follows the custom resources served now, in their storage version if possible; stops following others."""
        if not any(CUSTOM in queue.controller.resources for queue in self._queues):
            return
        wanted = {one.resource: one.versions[0] for one in custom_kinds(self.view)}
        for resource in [name for name, version in self._custom.items() if wanted.get(name) != version]:
            self._stop_following(resource)
        for resource, version in wanted.items():
            if resource not in self._custom:
                self._custom[resource] = version
                self._start_to_follow(resource, version)

    def _stop_following(self, resource: str) -> None:
        self._tasks.pop(resource).cancel()
        self._reached.pop(resource, None)
        gone = self.view.get(DEFINITIONS, "", resource) is None
        known = [ViewChange(None, obj) for obj in self.view.drop(resource, gone=gone)]
        for queue in self._queues:
            queue.forget(resource)
        self._enqueue_changes(resource, known)
        del self._custom[resource]

    # -- actions -------------------------------------------------------------------------------------------------------

    async def _work_queue(self, queue: WorkQueue, signal: Signal) -> None:
        while True:
            now = self._clock.boottime()
            key = queue.take(now) if self.has_synced else None
            if key is not None:
                await self._process_key(queue, key)
                continue
            due, name = queue.next_at() if self.has_synced else float("inf"), queue.controller.name
            if due < self._alarms.get(name, float("inf")):
                self._alarms[name] = due
                self._group.start(self._set_alarm(name, signal, due), f"alarm {name}")
            await signal.next()

    async def _set_alarm(self, name: str, signal: Signal, due: float) -> None:
        """Keeps an earlier alarm in place of a later one: a task that wakes too soon sets it again."""
        await self._clock.sleep(due - self._clock.boottime())
        if self._alarms.get(name) == due:
            del self._alarms[name]
        signal.set()

    async def _process_key(self, queue: WorkQueue, key: ObjectRef) -> None:
        if key in queue.blocked:
            return  # reconciled as soon as the view has caught up
        now, name = self._clock.boottime(), queue.controller.name
        try:
            decision = queue.controller.decide(key, self.view, self._clock.wall())
            await self._carry_out(queue, key, decision)
        except LastcallError as error:
            queue.retry_later(key, now)
            self._unblock_keys(queue)
            log.info("%s: %s: %s; trying again", name, "/".join(key), error)
            return
        again = queue.record_success(key, decision.actions, now)
        self._unblock_keys(queue)
        if again == 1:
            log.warning("%s: %s: the same decision again, without any effect", name, "/".join(key))
        if decision.again_in is not None and not again:
            queue.add(key, now + decision.again_in)
        if decision.said and decision.said != queue.said:
            queue.said = decision.said
            log.info("%s: %s", name, decision.said)

    async def _carry_out(self, queue: WorkQueue, key: ObjectRef, decision: Decision) -> None:
        """Carries out actions in sequence. What they wrote blocks the key until the view shows it."""
        revisions: dict[str, int] = {}
        by = queue.controller.name
        try:
            for action in decision.actions:
                try:
                    written = await self._cluster.act(action, by)
                except LastcallError as error:
                    if isinstance(action, CreateObject | DeleteObject):
                        self.view.set_refusal(by, key, ActionRefusal(_object_name(action), str(error)))
                    raise
                resource = _action_resource(action)
                if written is not None and self._is_interested(queue.controller, resource):
                    revisions[resource] = max(written, revisions.get(resource, 0))  # old if unchanged
            self.view.set_refusal(by, key, None)
        finally:
            if revisions:
                queue.blocked[key] = revisions


def _relevant_objects(resource: str, change: ViewChange) -> Sequence[Object | None]:
    """The versions that determine the affected keys.

    A pod affected the same keys before a new status, and the status changes most often.
    """
    now, before = change
    if resource != "pods" or now is None or before is None:
        return change
    own, old = now["metadata"], before["metadata"]
    same = all(own.get(name) == old.get(name) for name in ("uid", "labels", "ownerReferences"))
    return (now,) if same and now["spec"] == before["spec"] else change


def _object_name(action: CreateObject | DeleteObject) -> str:
    return str(action.obj["metadata"].get("name", "")) if isinstance(action, CreateObject) else action.ref.name


def _action_resource(action: Action) -> str:
    match action:
        case CreateObject(resource=resource):
            return resource
        case RecordEvent():
            return "events"
        case RunWork():
            return ""
        case IfOwnersGone(then=then):
            return then.ref.resource
        case _:
            return action.ref.resource
